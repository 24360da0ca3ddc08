// check.h: assertions of the C tests. A test program runs its cases in order and exits 0 when all held.
#ifndef EMBER_TESTS_CHECK_H
#define EMBER_TESTS_CHECK_H
#include <stdio.h>
#include <stdlib.h>

static int check_failures;
#define CHECK(x)                                                          \
  do {                                                                    \
    if (!(x)) {                                                           \
      check_failures++;                                                   \
      fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #x); \
    }                                                                     \
  } while (0)
#define CHECK_OK(call)                                                                              \
  do {                                                                                              \
    em_status check_st_ = (call);                                                                   \
    if (check_st_ != EM_OK) {                                                                       \
      check_failures++;                                                                             \
      fprintf(stderr, "%s:%d: %s failed: %s\n", __FILE__, __LINE__, #call, em_error_message());      \
    }                                                                                               \
  } while (0)
#define CHECK_DONE() return check_failures == 0 ? 0 : 1
#endif
