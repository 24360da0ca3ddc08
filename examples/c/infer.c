/* infer.c: reads weights that Python (or train_digits) saved, and digits, and says what it sees.
 *
 *     infer [out/digits.pt] [out/digits.csv] [how many to show] */
#include "digits.h"

int main(int argc, char **argv) {
  const char *from = argc > 1 ? argv[1] : "out/digits.pt", *data = argc > 2 ? argv[2] : "out/digits.csv";
  int shown = argc > 3 ? atoi(argv[3]) : 3;
  em_tensor *images, *labels, *w[WEIGHTS];
  int64_t n = read_digits(data, &images, &labels);
  make_network(w);
  em_weights *file;
  check(em_weights_load(from, &file));
  for (int i = 0; i < WEIGHTS; i++) { /* the file also has batch norm's counters, which eval does not need */
    em_tensor *found = em_weights_find(file, names[i]);
    if (found == NULL) {
      fprintf(stderr, "%s has no weight \"%s\"\n", from, names[i]);
      return 1;
    }
    bool was = em_grad_set_enabled(false);
    check(em_call_copy_(w[i], found, false));
    em_grad_set_enabled(was);
  }
  em_weights_free(file);
  em_scope *s = em_scope_begin();
  for (int64_t i = 0; i < shown && i < n; i++) {
    em_tensor *image = em_narrow(images, 0, i, 1), *chances = em_softmax(network(w, image, false), 1), *best;
    float grey[PIXELS];
    double chance = 0, digit = 0;
    em_tensor *largest = em_max_dim(chances, 1, &best);
    check(em_tensor_read(image, EM_F32, grey, sizeof grey));
    check(em_tensor_to_double(largest, &chance));
    check(em_tensor_to_double(best, &digit));
    for (int p = 0; p < PIXELS; p++) printf("%c%s", " .:-=+*#%@"[(int)(grey[p] * 9.99f)], p % 8 == 7 ? "\n" : "");
    printf("a %.0f, with a chance of %.1f%%\n\n", digit, 100 * chance);
  }
  check(em_scope_end(s));
  em_tensor *test, *truth;
  check(em_call_narrow(images, 0, 0, HELD_OUT, &test));
  check(em_call_narrow(labels, 0, 0, HELD_OUT, &truth));
  printf("accuracy %.1f%% on %d held-out digits\n", accuracy(w, test, truth), HELD_OUT);
  em_tensor *all[] = {test, truth, images, labels};
  release_all(all, 4);
  release_all(w, WEIGHTS);
  return 0;
}
