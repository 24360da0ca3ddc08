/* transformer.c: two blocks of a transformer learn to sort digits: they read eight, then write the same eight in order. AdamW
 * with weight decay for matrices alone, a warm-up and a cosine, clipped gradients; half-way everything is saved, thrown away,
 * read again and goes on.
 *
 *     transformer [--steps 400] */
#include <ember/ember.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 10, COUNT = 8, TIME = 2 * COUNT - 1, WIDTH = 48, HEADS = 4, BLOCKS = 2, BATCH = 64 };
/* Of a block: two layer norms, the attention's two matrices, the two of the feed-forward part. Matrices first. */
enum { QKV, PROJECT, UP, DOWN, LN1, LN1_B, LN2, LN2_B, PER_BLOCK };
enum { TOKEN = BLOCKS * PER_BLOCK, PLACE, LN, LN_B, WEIGHTS };

static void check(em_status st) {
  if (st == EM_OK) return;
  fprintf(stderr, "%s: %s\n", em_status_exception(st), em_error_message());
  exit(1);
}

static em_tensor *matrix(int64_t out, int64_t in) { return em_init_normal_(em_empty(EM_INTS(out, in)), 0, 0.08, NULL); }
static void make(em_tensor *w[WEIGHTS]) {
  em_scope *s = em_scope_begin();
  for (int b = 0; b < BLOCKS; b++) {
    em_tensor **p = w + b * PER_BLOCK;
    p[QKV] = matrix(3 * WIDTH, WIDTH), p[PROJECT] = matrix(WIDTH, WIDTH);
    p[UP] = matrix(4 * WIDTH, WIDTH), p[DOWN] = matrix(WIDTH, 4 * WIDTH);
    p[LN1] = em_ones(EM_INTS(WIDTH)), p[LN1_B] = em_zeros(EM_INTS(WIDTH));
    p[LN2] = em_ones(EM_INTS(WIDTH)), p[LN2_B] = em_zeros(EM_INTS(WIDTH));
  }
  w[TOKEN] = matrix(DIGITS, WIDTH), w[PLACE] = matrix(TIME, WIDTH);
  w[LN] = em_ones(EM_INTS(WIDTH)), w[LN_B] = em_zeros(EM_INTS(WIDTH));
  for (int i = 0; i < WEIGHTS; i++) w[i] = em_keep(em_requires_grad_(w[i]));
  check(em_scope_end(s));
}

static em_tensor *norm(em_tensor *x, em_tensor *w, em_tensor *b) { return em_layer_norm_with(x, EM_INTS(WIDTH), w, b, 1e-5, true); }
static em_tensor *block(em_tensor *const *p, em_tensor *x) {
  int64_t n = em_tensor_size(x, 0), t = em_tensor_size(x, 1);
  em_tensor *qkv = em_reshape(em_linear(norm(x, p[LN1], p[LN1_B]), p[QKV]), EM_INTS(n, t, 3, HEADS, WIDTH / HEADS)), *part[3];
  for (int i = 0; i < 3; i++) part[i] = em_transpose(em_select(qkv, 2, i), 1, 2); /* [n, HEADS, t, WIDTH / HEADS] */
  em_tensor *seen = em_scaled_dot_product_attention_with(part[0], part[1], part[2], NULL, 0, true, em_no_double(), false);
  x = em_add(x, em_linear(em_reshape(em_transpose(seen, 1, 2), EM_INTS(n, t, WIDTH)), p[PROJECT]));
  return em_add(x, em_linear(em_gelu(em_linear(norm(x, p[LN2], p[LN2_B]), p[UP])), p[DOWN]));
}
/* Scores [n, t, DIGITS] of what follows each of tokens [n, t]. The embedding is the last layer too. */
static em_tensor *network(em_tensor *const w[WEIGHTS], em_tensor *tokens) {
  em_tensor *x = em_add(em_embedding(w[TOKEN], tokens), w[PLACE]);
  for (int b = 0; b < BLOCKS; b++) x = block(w + b * PER_BLOCK, x);
  return em_linear(norm(x, w[LN], w[LN_B]), w[TOKEN]);
}

/* tokens [n, TIME]: eight digits and the sorted ones but the last; wanted [n, COUNT]: the sorted ones. */
static void draw(int64_t n, em_tensor **tokens, em_tensor **wanted) {
  em_tensor *digits = em_randint(DIGITS, EM_INTS(n, COUNT)), *order;
  *wanted = em_sort(digits, &order);
  *tokens = em_cat_with(EM_TENSORS(digits, em_narrow(*wanted, 1, 0, COUNT - 1)), 1);
}
static em_tensor *answers(em_tensor *const w[WEIGHTS], em_tensor *tokens) {
  return em_narrow(network(w, tokens), 1, COUNT - 1, COUNT);
}

/* Matrices decay, norms do not: as two parameter groups do in PyTorch, two optimizers. */
typedef struct training { em_tensor *w[WEIGHTS], *decayed[WEIGHTS], *plain[WEIGHTS]; int decays, rest; em_optimizer *both[2]; } training;
static void prepare(training *t) {
  em_adam_options options = em_adamw_defaults(0);
  options.weight_decay = 0.1;
  options.beta2 = 0.98;
  make(t->w);
  t->decays = t->rest = 0;
  for (int i = 0; i < WEIGHTS; i++) *(em_tensor_ndim(t->w[i]) > 1 ? &t->decayed[t->decays++] : &t->plain[t->rest++]) = t->w[i];
  check(em_adam_new(t->decayed, t->decays, options, &t->both[0]));
  options.weight_decay = 0;
  check(em_adam_new(t->plain, t->rest, options, &t->both[1]));
}
static void finish(training *t) {
  for (int i = 0; i < 2; i++) em_optimizer_free(t->both[i]);
  for (int i = 0; i < WEIGHTS; i++) em_tensor_release(t->w[i]);
}

static double step(training *t, double lr) {
  double loss = 0;
  em_scope *s = em_scope_begin();
  em_tensor *tokens, *wanted;
  draw(BATCH, &tokens, &wanted);
  em_tensor *scores = em_reshape(answers(t->w, tokens), EM_INTS(-1, DIGITS));
  em_tensor *error = em_cross_entropy_loss(scores, em_reshape(wanted, EM_INTS(-1)));
  check(em_backward(error, NULL, 0));
  check(em_clip_grad_norm(t->w, WEIGHTS, 1, 2, NULL));
  for (int i = 0; i < 2; i++) {
    check(em_optimizer_set_lr(t->both[i], lr));
    check(em_optimizer_step(t->both[i]));
    check(em_optimizer_zero_grad(t->both[i]));
  }
  check(em_tensor_to_double(error, &loss));
  check(em_scope_end(s));
  return loss;
}

/* Weights and what the optimizers remember go into three files, and come back into fresh ones. */
static void save_and_load(training *t) {
  const char *files[] = {"transformer.safetensors", "adamw_0.safetensors", "adamw_1.safetensors"};
  static char texts[WEIGHTS][16];
  const char *names[WEIGHTS];
  for (int i = 0; i < WEIGHTS; i++) snprintf(texts[i], sizeof texts[i], "w%d", i), names[i] = texts[i];
  check(em_save_safetensors(files[0], names, t->w, WEIGHTS));
  for (int i = 0; i < 2; i++) check(em_optimizer_save(t->both[i], files[1 + i]));
  finish(t);
  prepare(t);
  for (int i = 0; i < 3; i++) {
    em_weights *file;
    check(em_weights_load(files[i], &file));
    check(i == 0 ? em_weights_copy_to(file, names, t->w, WEIGHTS) : em_optimizer_load(t->both[i - 1], file, ""));
    em_weights_free(file);
    remove(files[i]);
  }
}

int main(int argc, char **argv) {
  int steps = argc > 2 && strcmp(argv[1], "--steps") == 0 ? atoi(argv[2]) : 400, warm = steps / 10 + 1;
  training t;
  em_manual_seed(0);
  prepare(&t);
  for (int i = 0; i < steps; i++) {
    double rate = i < warm ? em_lr_linear(3e-3, i, 0.1, 1, warm) : em_lr_cosine(3e-3, i - warm, steps - warm, 1e-4);
    double loss = step(&t, rate);
    if (i % 50 == 49) fprintf(stderr, "step %d loss %.3f rate %.5f\n", i + 1, loss, rate);
    if (i == steps / 2) save_and_load(&t);
  }
  em_grad_set_enabled(false);
  em_scope *s = em_scope_begin();
  em_tensor *tokens, *wanted;
  double right = 0;
  draw(500, &tokens, &wanted);
  em_tensor *hits = em_eq(em_argmax_with(answers(t.w, tokens), em_some_int(-1), false), wanted);
  check(em_tensor_to_double(em_mean(em_to_dtype(hits, EM_F32)), &right));
  check(em_print(em_narrow(tokens, 0, 0, 1)));
  printf("%.1f%% of the digits are where they belong\n", 100 * right);
  check(em_scope_end(s));
  finish(&t);
  return 0;
}
