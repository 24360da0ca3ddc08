// test_environment.c: a C program whose environment has a name that Ember does not know, or a value that it does not take, is told so once,
// on stderr, when the library is loaded; and EMBER_LOG works for it as it does for Python.
#include <ember/ember.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "check.h"

static char told[8192];

// What this program writes to stderr as a child that has one variable more.
static void run(const char *self, const char *variable) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    dup2(ends[1], 2);
    execve(self, (char *[]){(char *)(uintptr_t)self, "child", NULL}, (char *[]){(char *)(uintptr_t)variable, "EMBER_ALLOC=plain", NULL});
    _exit(127);
  }
  close(ends[1]);
  size_t n = 0;
  for (ssize_t got; n + 1 < sizeof told && (got = read(ends[0], told + n, sizeof told - 1 - n)) > 0;) n += (size_t)got;
  told[n] = 0;
  close(ends[0]);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
static int times(const char *words) {
  int n = 0;
  for (const char *at = told; (at = strstr(at, words)) != NULL; at += strlen(words)) n++;
  return n;
}
static int child(void) {
  em_tensor *a, *b;
  const float numbers[] = {1, 2, 3};
  CHECK(em_tensor_from_data(numbers, EM_F32, 1, (const int64_t[]){3}, &a) == EM_OK);
  CHECK(em_call_add_Tensor(a, a, em_scalar_int(1), &b) == EM_OK);
  em_tensor_release(a);
  em_tensor_release(b);
  return check_failures != 0;
}

int main(int argc, char **argv) {
  if (argc > 1) return child();
  static const struct { const char *variable, *words; } cases[] = {
      {"EMBER_OPENBLASS=none", "EMBER_OPENBLASS is set, but Ember knows no such variable (did you mean EMBER_OPENBLAS?)"},
      {"EMBER_IAS=avx2", "EMBER_IAS is set, but Ember knows no such variable (did you mean EMBER_ISA?)"},
      {"EMBER_THREADS=2", "EMBER_THREADS is set, but Ember knows no such variable (did you mean EMBER_NUM_THREADS?)"},
      {"EMBER_QQQQ", "EMBER_QQQQ is set, but Ember knows no such variable (known: EMBER_LOG, EMBER_ISA, "},
      {"EMBER_=1", "EMBER_ is set, but Ember knows no such variable (known: EMBER_LOG, "},
      {"EMBER_ISA=avx3", "EMBER_ISA=avx3 is not baseline, avx2 or avx512: using "},
      {"EMBER_NUM_THREADS=0", "EMBER_NUM_THREADS=0 is not a number from 1 on: it is not used"},
      {"EMBER_NUM_THREADS=two", "EMBER_NUM_THREADS=two is not a number from 1 on: it is not used"},
      {"EMBER_CACHE_LIMIT_MB=1G", "EMBER_CACHE_LIMIT_MB=1G is not a number: it is not used"},
      {"EMBER_LOG=kernels,parser", "EMBER_LOG: unknown subject 'parser' (known: dispatch, ops, kernels, libs)"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    run(argv[0], cases[i].variable);
    if (times("ember: warning: ") != 1 || times(cases[i].words) != 1) {
      fprintf(stderr, "%s: told\n%s", cases[i].variable, told);
      return 1;
    }
  }
  static const char *const fine[] = {"EMBER_LOG=", "EMBER_ISA=baseline", "EMBER_NUM_THREADS=2", "EMBER_CACHE_LIMIT_MB=0", "EMBER_ORACLE=x",
                                     "EMBERS=1", "EMBER_OPENBLAS=none", "HOME=/"};
  for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
    run(argv[0], fine[i]);
    if (told[0] != 0) {
      fprintf(stderr, "%s: told\n%s", fine[i], told);
      return 1;
    }
  }
  run(argv[0], "EMBER_LOG=dispatch,ops,kernels");
  CHECK(times("[dispatch] aten::add.Tensor  Capture(log) > CPU(em_cpu_add_Tensor)  12 bytes\n") == 1);
  CHECK(times("[ops] aten::add.Tensor(float32[3], float32[3], 1)\n") == 1);
  CHECK(times("[kernels] short path: one run of 3 float32 elements") == 1);
  return check_failures != 0;
}
