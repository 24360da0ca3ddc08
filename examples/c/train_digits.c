/* train_digits.c: trains the convolutional network of `make demo` on the digits, without Python.
 *
 *     train_digits [--data out/digits.csv] [--out out/digits_c.safetensors] [--epochs 20] [--steps N]
 *
 * --steps stops after N steps (for checkers). The weights that it saves load in Python with the same accuracy. */
#include "digits.h"
#include <time.h>

enum { BATCH = 64 };

static double train(em_tensor *w[WEIGHTS], em_tensor *images, em_tensor *labels, int64_t n, int epochs, int most) {
  em_optimizer *adam;
  em_adam_options options = em_adam_defaults(5e-3);
  options.weight_decay = 1e-4;
  check(em_adam_new(w, PARAMS, options, &adam));
  int per_epoch = (int)((n - HELD_OUT) / BATCH), total = epochs * per_epoch, step = 0;
  double loss = 0;
  for (int epoch = 0; epoch < epochs && (most == 0 || step < most); epoch++) {
    em_scope *of_epoch = em_scope_begin();
    em_tensor *order = em_add_Scalar(em_randperm(n - HELD_OUT), em_scalar_int(HELD_OUT));
    for (int i = 0; i < per_epoch && (most == 0 || step < most); i++, step++) {
      em_scope *s = em_scope_begin();
      em_tensor *batch = em_narrow(order, 0, (int64_t)i * BATCH, BATCH);
      em_tensor *x = em_index_select(images, 0, batch), *y = em_index_select(labels, 0, batch);
      em_tensor *error = em_cross_entropy_loss_with(network(w, x, true), y, NULL, 1, -100, 0.05);
      check(em_optimizer_set_lr(adam, em_lr_one_cycle(5e-3, step, total)));
      check(em_optimizer_set_momentum(adam, em_momentum_one_cycle(step, total)));
      check(em_optimizer_zero_grad(adam));
      check(em_backward(error, NULL, 0));
      check(em_optimizer_step(adam));
      check(em_tensor_to_double(error, &loss));
      check(em_scope_end(s));
    }
    check(em_scope_end(of_epoch));
    fprintf(stderr, "epoch %d/%d loss %.4f\n", epoch + 1, epochs, loss);
  }
  em_optimizer_free(adam);
  return loss;
}

int main(int argc, char **argv) {
  const char *data = "out/digits.csv", *out = "out/digits_c.safetensors";
  int epochs = 20, steps = 0;
  for (int i = 1; i < argc; i++) {
    bool more = i + 1 < argc;
    if (more && strcmp(argv[i], "--data") == 0) data = argv[++i];
    else if (more && strcmp(argv[i], "--out") == 0) out = argv[++i];
    else if (more && strcmp(argv[i], "--epochs") == 0) epochs = atoi(argv[++i]);
    else if (more && strcmp(argv[i], "--steps") == 0) steps = atoi(argv[++i]);
    else {
      bool help = strcmp(argv[i], "--help") == 0;
      fprintf(help ? stdout : stderr, "usage: %s [--data FILE] [--out FILE] [--epochs N] [--steps N]\n", argv[0]);
      return help ? 0 : 2;
    }
  }
  em_manual_seed(0);
  em_tensor *images, *labels, *w[WEIGHTS];
  int64_t n = read_digits(data, &images, &labels);
  make_network(w);
  struct timespec start, end;
  timespec_get(&start, TIME_UTC);
  train(w, images, labels, n, epochs, steps);
  timespec_get(&end, TIME_UTC);
  double seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
  check(em_save_safetensors(out, names, w, WEIGHTS));
  em_tensor *test, *truth;
  check(em_call_narrow(images, 0, 0, HELD_OUT, &test));
  check(em_call_narrow(labels, 0, 0, HELD_OUT, &truth));
  printf("accuracy %.1f%% on %d held-out digits, %d epochs in %.2f s, weights in %s\n", accuracy(w, test, truth), HELD_OUT,
         epochs, seconds, out);
  em_tensor *all[] = {test, truth, images, labels};
  release_all(all, 4);
  release_all(w, WEIGHTS);
  return 0;
}
