/* digits.h: what train_digits.c and infer.c share: reading the digits, and the network of examples/python/train_digits.py
 * with the names that its state_dict has. */
#ifndef DIGITS_H
#define DIGITS_H
#include <ember/ember.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIXELS = 64, MAX_DIGITS = 4096, HELD_OUT = 359 }; /* the first 359 lines of the file are the held-out fifth */

/* Ends the program with what went wrong, if something did. */
static inline void check(em_status st) {
  if (st == EM_OK) return;
  fprintf(stderr, "%s: %s\n", em_status_exception(st), em_error_message());
  exit(1);
}

/* Reads lines of 64 grey values from 0 to 16 and a label. images [n, 1, 8, 8] between 0 and 1, labels [n]; both are yours. */
static inline int64_t read_digits(const char *path, em_tensor **images, em_tensor **labels) {
  static float grey[MAX_DIGITS][PIXELS];
  static int64_t label[MAX_DIGITS];
  FILE *file = fopen(path, "r");
  if (file == NULL) {
    fprintf(stderr, "%s is not there: `make demo` writes out/digits.csv\n", path);
    exit(77);
  }
  int64_t n = 0;
  for (int value, i = 0; n < MAX_DIGITS && fscanf(file, "%d%*[,\n]", &value) == 1;) {
    if (i < PIXELS) {
      grey[n][i++] = (float)value / 16;
    } else {
      label[n++] = value;
      i = 0;
    }
  }
  fclose(file);
  check(em_tensor_from_data(grey, EM_F32, 4, (const int64_t[]){n, 1, 8, 8}, images));
  check(em_tensor_from_data(label, EM_I64, 1, &n, labels));
  return n;
}

/* Parameters first, then the running statistics. */
enum { CONV1, CONV1_B, BN1, BN1_B, CONV2, CONV2_B, BN2, BN2_B, FC1, FC1_B, FC2, FC2_B, PARAMS };
enum { BN1_MEAN = PARAMS, BN1_VAR, BN2_MEAN, BN2_VAR, WEIGHTS };
static const char *const names[WEIGHTS] = {
    "0.weight", "0.bias", "1.weight", "1.bias", "4.weight", "4.bias", "5.weight", "5.bias", "9.weight", "9.bias", "12.weight",
    "12.bias", "1.running_mean", "1.running_var", "5.running_mean", "5.running_var"};

/* A layer's weight and bias as PyTorch makes them: uniform within one over the root of what feeds an output. */
static inline void make_layer(em_tensor **w, em_ints sizes) {
  double fan_in = 1;
  for (int64_t i = 1; i < sizes.n; i++) fan_in *= (double)sizes.p[i];
  double bound = 1 / __builtin_sqrt(fan_in);
  w[0] = em_keep(em_init_uniform_(em_empty(sizes), -bound, bound, NULL));
  w[1] = em_keep(em_init_uniform_(em_empty(EM_INTS(sizes.p[0])), -bound, bound, NULL));
}

/* Fresh weights; the parameters record what is done to them. */
static inline void make_network(em_tensor *w[WEIGHTS]) {
  em_scope *s = em_scope_begin();
  make_layer(&w[CONV1], EM_INTS(32, 1, 3, 3));
  make_layer(&w[CONV2], EM_INTS(64, 32, 3, 3));
  make_layer(&w[FC1], EM_INTS(128, 256));
  make_layer(&w[FC2], EM_INTS(10, 128));
  const int64_t widths[] = {32, 64};
  for (int i = 0; i < 2; i++) {
    w[i == 0 ? BN1 : BN2] = em_keep(em_ones(EM_INTS(widths[i])));
    w[i == 0 ? BN1_B : BN2_B] = em_keep(em_zeros(EM_INTS(widths[i])));
    w[i == 0 ? BN1_MEAN : BN2_MEAN] = em_keep(em_zeros(EM_INTS(widths[i])));
    w[i == 0 ? BN1_VAR : BN2_VAR] = em_keep(em_ones(EM_INTS(widths[i])));
  }
  check(em_scope_end(s));
  for (int i = 0; i < PARAMS; i++) check(em_tensor_set_requires_grad(w[i], true));
}

/* Scores [n, 10] of images [n, 1, 8, 8]. */
static inline em_tensor *network(em_tensor *const w[WEIGHTS], em_tensor *x, bool training) {
  const em_ints one = EM_INTS(1, 1), two = EM_INTS(2, 2);
  x = em_conv2d_with(x, w[CONV1], w[CONV1_B], one, one, one, 1);
  x = em_batch_norm(x, w[BN1], w[BN1_B], w[BN1_MEAN], w[BN1_VAR], training, 0.1, 1e-5, false);
  x = em_max_pool2d(em_relu(x), two);
  x = em_conv2d_with(x, w[CONV2], w[CONV2_B], one, one, one, 1);
  x = em_batch_norm(x, w[BN2], w[BN2_B], w[BN2_MEAN], w[BN2_VAR], training, 0.1, 1e-5, false);
  x = em_max_pool2d(em_relu(x), two);
  x = em_relu(em_linear_with(em_flatten_with(x, 1, -1), w[FC1], w[FC1_B]));
  return em_linear_with(em_dropout(x, 0.3, training), w[FC2], w[FC2_B]);
}

/* Percent of the images that are read right. */
static inline double accuracy(em_tensor *const w[WEIGHTS], em_tensor *images, em_tensor *labels) {
  double right = 0;
  bool was = em_grad_set_enabled(false);
  em_scope *s = em_scope_begin();
  em_tensor *said = em_argmax_with(network(w, images, false), em_some_int(1), false), *mean;
  mean = em_mean(em_to_dtype(em_eq(said, labels), EM_F64));
  em_scope_check(em_tensor_to_double(mean, &right));
  check(em_scope_end(s));
  em_grad_set_enabled(was);
  return 100 * right;
}

static inline void release_all(em_tensor **tensors, int n) {
  for (int i = 0; i < n; i++) em_tensor_release(tensors[i]);
}
#endif
