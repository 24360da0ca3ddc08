// profile.h: times of operators, for ember.profiler. See profile.c.
#ifndef EMBER_DISPATCH_PROFILE_H
#define EMBER_DISPATCH_PROFILE_H
#include "operator.h"

typedef struct em_profile_event {
  const char *name;       // owned copy unless `op` is set, then the operator's
  const em_operator *op;  // NULL: a range of the user's
  int64_t begin, end;     // nanoseconds of CLOCK_MONOTONIC
  int64_t bytes;          // of results that are new; 0 unless asked for, and for ranges
  int thread;             // 1, 2, ... in the order in which threads were first seen
  char *shapes;           // owned, "[[2, 3], []]": sizes of tensor arguments; NULL unless asked for
  size_t shapes_size;
} em_profile_event;

// One recording at a time for the process. EM_ERR_RUNTIME if there is one.
EM_PRIV em_status em_profile_start(bool shapes, bool memory);
// Ends it: the events in the order in which they ended, the caller's to free. Nothing happens if there is no recording.
EM_PRIV void em_profile_stop(em_profile_event **events, int64_t *n);
EM_PRIV void em_profile_free(em_profile_event *events, int64_t n);
EM_PRIV bool em_profile_active(void);
// A range of the user's, from em_profile_now() to now. Ranges of no recording are dropped.
EM_PRIV int64_t em_profile_now(void);
EM_PRIV em_status em_profile_range(const char *name, int64_t begin);
#endif
