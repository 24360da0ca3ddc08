// environment.c: see environment.h. python/ember/_env.py has the same names with what they do; a test compares the two lists.
#include "environment.h"
#include <dlfcn.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

typedef enum kind { ANYTHING, NUMBER, COUNT, ONE_OF, LIST_OF, A_TOOLS } kind;  // COUNT: a number from 1 on
static const struct { const char *name; kind kind; const char *words; } known[] = {
    {"EMBER_LOG", LIST_OF, "dispatch, ops, kernels, libs"},
    {"EMBER_ISA", ANYTHING, NULL},  // isa.c knows what this processor has, and tells
    {"EMBER_NUM_THREADS", COUNT, NULL},
    {"EMBER_OPENBLAS", ANYTHING, NULL},
    {"EMBER_ONEDNN", ANYTHING, NULL},
    {"EMBER_ALLOC", ONE_OF, "plain"},
    {"EMBER_CACHE_LIMIT_MB", NUMBER, NULL},
    // read by the build, tests and benchmarks of a checkout
    {"EMBER_BUILD", A_TOOLS, NULL},
    {"EMBER_ORACLE", A_TOOLS, NULL},
    {"EMBER_PARITY_CACHE", A_TOOLS, NULL},
    {"EMBER_TEST_FAST", A_TOOLS, NULL},
    {"EMBER_TEST_FULL", A_TOOLS, NULL},
    {"EMBER_TEST_MODULE", A_TOOLS, NULL},
    {"EMBER_UPDATE_GOLDEN", A_TOOLS, NULL},
};
enum { KNOWN = sizeof known / sizeof *known, LONGEST = 64 };

// Letters to change, add, drop or exchange with a neighbour to make b of a; LONGEST for long words.
static int distance(const char *a, size_t na, const char *b, size_t nb) {
  int row[3][LONGEST + 1];
  if (na > LONGEST || nb > LONGEST) return LONGEST;
  for (size_t j = 0; j <= nb; j++) row[0][j] = (int)j;
  for (size_t i = 1; i <= na; i++) {
    int *now = row[i % 3], *before = row[(i - 1) % 3], *earlier = row[(i + 1) % 3];
    now[0] = (int)i;
    for (size_t j = 1; j <= nb; j++) {
      int least = before[j - 1] + (a[i - 1] != b[j - 1]);
      if (before[j] + 1 < least) least = before[j] + 1;
      if (now[j - 1] + 1 < least) least = now[j - 1] + 1;
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && earlier[j - 2] + 1 < least) least = earlier[j - 2] + 1;
      now[j] = least;
    }
  }
  return row[na % 3][nb];
}
static em_status warn_name(const char *name, size_t n) {
  const size_t prefix = sizeof "EMBER_" - 1;
  int best = LONGEST, at = 0;
  for (int i = 0; i < KNOWN; i++) {
    int d = distance(name + prefix, n - prefix, known[i].name + prefix, strlen(known[i].name) - prefix);
    char word[LONGEST];
    snprintf(word, sizeof word, "%.*s", (int)(n - prefix), name + prefix);
    if (n - prefix >= 4 && strstr(known[i].name + prefix, word) != NULL) d = 1;  // THREADS for NUM_THREADS
    if (d < best) best = d, at = i;
  }
  if (best < LONGEST && (size_t)best <= (n - prefix) / 3 + 1 && (size_t)best < n - prefix) {
    return em_warn("%.*s is set, but Ember knows no such variable (did you mean %s?)", (int)n, name, known[at].name);
  }
  char all[256] = "";
  for (int i = 0; i < KNOWN && known[i].kind != A_TOOLS; i++)
    snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i > 0 ? ", " : "", known[i].name);
  return em_warn("%.*s is set, but Ember knows no such variable (known: %s)", (int)n, name, all);
}
static bool is_among(const char *word, size_t n, const char *words) {
  for (; *words != 0; words += strcspn(words, ","), words += strspn(words, ", "))
    if (strcspn(words, ",") == n && strncmp(words, word, n) == 0) return true;
  return false;
}
static bool is_number(const char *value, bool from_one) {
  size_t n = 0;
  while (isdigit((unsigned char)value[n])) n++;
  return n > 0 && n <= 12 && value[n] == 0 && (!from_one || strtoll(value, NULL, 10) > 0);
}
static em_status check_value(int i, const char *value) {
  const char *words = known[i].words;
  if (*value == 0) return EM_OK;  // as good as not set
  switch (known[i].kind) {
    case NUMBER:
    case COUNT:
      if (!is_number(value, known[i].kind == COUNT))
        return em_warn("%s=%s is not a number%s: it is not used", known[i].name, value, known[i].kind == COUNT ? " from 1 on" : "");
      break;
    case ONE_OF:
      if (!is_among(value, strlen(value), words)) return em_warn("%s=%s is not %s: it is not used", known[i].name, value, words);
      break;
    case LIST_OF:
      for (const char *w = value; *w != 0; w += strcspn(w, ","), w += *w == ',')
        if (!is_among(w, strcspn(w, ","), words))
          EM_PASS(em_warn("%s: unknown subject '%.*s' (known: %s)", known[i].name, (int)strcspn(w, ","), w, words));
      break;
    case ANYTHING: case A_TOOLS: break;
  }
  return EM_OK;
}

// Python's executable or library exports this for whatever it loads.
bool em_environment_host_checks(void) { return dlsym(RTLD_DEFAULT, "Py_IsInitialized") != NULL; }

em_status em_environment_check(void) {
  for (char **e = environ; e != NULL && *e != NULL; e++) {
    if (strncmp(*e, "EMBER_", 6) != 0) continue;
    const size_t n = strcspn(*e, "=");
    int i = 0;
    while (i < KNOWN && (strlen(known[i].name) != n || strncmp(known[i].name, *e, n) != 0)) i++;
    if (i == KNOWN) EM_PASS(warn_name(*e, n));
    else if ((*e)[n] == '=') EM_PASS(check_value(i, *e + n + 1));
  }
  return EM_OK;
}
