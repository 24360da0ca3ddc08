/* char_lstm.c: a recurrent network learns to write a verse, letter by letter: an embedding, two LSTM layers, a linear layer.
 *
 *     char_lstm [--steps 300] */
#include <ember/ember.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "one for sorrow, two for joy, three for a girl, four for a boy, five for silver, six for gold, "
                           "seven for a secret never to be told. ";
enum { LETTERS = 128, WIDTH = 64, LAYERS = 2, LENGTH = 32, BATCH = 16, GATES = 4 * WIDTH };
enum { EMBED, LSTM, OUT = LSTM + 4 * LAYERS, OUT_B, WEIGHTS };

static void check(em_status st) {
  if (st == EM_OK) return;
  fprintf(stderr, "%s: %s\n", em_status_exception(st), em_error_message());
  exit(1);
}

/* Weights that outlive the scope; all record what is done to them. */
static void make(em_tensor *w[WEIGHTS]) {
  em_scope *s = em_scope_begin();
  double bound = 1 / sqrt(WIDTH);
  w[EMBED] = em_init_normal_(em_empty(EM_INTS(LETTERS, WIDTH)), 0, 1, NULL);
  for (int l = 0; l < LAYERS; l++) { /* of each layer: input to gates, state to gates, and their biases */
    em_tensor **layer = w + LSTM + 4 * l;
    for (int i = 0; i < 4; i++) layer[i] = em_empty(i < 2 ? EM_INTS(GATES, WIDTH) : EM_INTS(GATES));
    for (int i = 0; i < 4; i++) em_init_uniform_(layer[i], -bound, bound, NULL);
  }
  w[OUT] = em_init_uniform_(em_empty(EM_INTS(LETTERS, WIDTH)), -bound, bound, NULL);
  w[OUT_B] = em_init_uniform_(em_empty(EM_INTS(LETTERS)), -bound, bound, NULL);
  for (int i = 0; i < WEIGHTS; i++) w[i] = em_keep(em_requires_grad_(w[i]));
  check(em_scope_end(s));
}

/* Scores of the letter after each. letters [n, t] of int64; state: h and c [LAYERS, n, WIDTH], replaced by those after the last. */
static em_tensor *network(em_tensor *const w[WEIGHTS], em_tensor *letters, em_tensor *state[2], bool training) {
  em_tensors weights = {w + LSTM, 4 * LAYERS};
  em_tensor *x = em_embedding(w[EMBED], letters);
  x = em_lstm(x, EM_TENSORS(state[0], state[1]), weights, true, LAYERS, 0.0, training, false, true, &state[0], &state[1]);
  return em_linear_with(x, w[OUT], w[OUT_B]);
}
static void begin(em_tensor *state[2], int64_t n) {
  for (int i = 0; i < 2; i++) state[i] = em_zeros(EM_INTS(LAYERS, n, WIDTH));
}

static double train(em_tensor *w[WEIGHTS], int steps) {
  static int64_t code[sizeof text - 1];
  int64_t n = sizeof text - 1;
  for (int64_t i = 0; i < n; i++) code[i] = (unsigned char)text[i];
  em_tensor *corpus, *places;
  check(em_tensor_from_data(code, EM_I64, 1, &n, &corpus));
  check(em_call_arange(em_scalar_int(LENGTH + 1), EM_I64, -1, EM_DEVICE_NONE, -1, &places));
  em_optimizer *adam;
  check(em_adam_new(w, WEIGHTS, em_adam_defaults(1e-2), &adam));
  double loss = 0;
  for (int step = 0; step < steps; step++) {
    em_scope *s = em_scope_begin();
    em_tensor *state[2], *start = em_unsqueeze(em_randint(n, EM_INTS(BATCH)), 1);
    em_tensor *piece = em_remainder_Scalar(em_add(start, places), EM_NUM(n)); /* [BATCH, LENGTH + 1]: the text is a ring */
    piece = em_reshape(em_index_select(corpus, 0, em_reshape(piece, EM_INTS(-1))), EM_INTS(BATCH, LENGTH + 1));
    begin(state, BATCH);
    em_tensor *scores = network(w, em_narrow(piece, 1, 0, LENGTH), state, true);
    em_tensor *next = em_reshape(em_narrow(piece, 1, 1, LENGTH), EM_INTS(-1));
    em_tensor *error = em_cross_entropy_loss(em_reshape(scores, EM_INTS(-1, LETTERS)), next);
    check(em_optimizer_zero_grad(adam));
    check(em_backward(error, NULL, 0));
    check(em_clip_grad_norm(w, WEIGHTS, 1, 2, NULL));
    check(em_optimizer_step(adam));
    check(em_tensor_to_double(error, &loss));
    check(em_scope_end(s));
    if (step % 50 == 49) fprintf(stderr, "step %d loss %.3f\n", step + 1, loss);
  }
  em_optimizer_free(adam);
  em_tensor_release(corpus);
  em_tensor_release(places);
  return loss;
}

/* The likeliest letter after each, from `seed` on. */
static void write_on(em_tensor *const w[WEIGHTS], const char *seed, int letters) {
  bool was = em_grad_set_enabled(false);
  em_scope *s = em_scope_begin();
  em_tensor *state[2];
  begin(state, 1);
  printf("%s", seed);
  int64_t letter = 0;
  for (size_t i = 0; i + 1 < strlen(seed) + (size_t)letters; i++) {
    em_scope *inner = em_scope_begin();
    em_tensor *one, *last[2] = {state[0], state[1]};
    if (i < strlen(seed)) letter = (unsigned char)seed[i];
    check(em_tensor_from_data(&letter, EM_I64, 2, (const int64_t[]){1, 1}, &one));
    check(em_tensor_to_int(em_argmax(network(w, one, state, false)), &letter));
    for (int k = 0; k < 2; k++) em_keep(state[k]); /* they go on; what was before them does not */
    if (i > 0) em_tensor_release(last[0]), em_tensor_release(last[1]);
    em_tensor_release(one);
    check(em_scope_end(inner));
    if (i + 1 >= strlen(seed)) putchar((int)letter);
  }
  for (int k = 0; k < 2; k++) em_tensor_release(state[k]);
  putchar('\n');
  check(em_scope_end(s));
  em_grad_set_enabled(was);
}

int main(int argc, char **argv) {
  int steps = argc > 2 && strcmp(argv[1], "--steps") == 0 ? atoi(argv[2]) : 300;
  em_tensor *w[WEIGHTS];
  em_manual_seed(0);
  make(w);
  double loss = train(w, steps);
  write_on(w, "one for ", 60);
  printf("loss %.3f\n", loss);
  for (int i = 0; i < WEIGHTS; i++) em_tensor_release(w[i]);
  return 0;
}
