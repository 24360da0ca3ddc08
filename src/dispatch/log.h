// log.h: switches of the dispatcher's log (EMBER_LOG=dispatch,ops,kernels,libs).
#ifndef EMBER_DISPATCH_LOG_H
#define EMBER_DISPATCH_LOG_H
#include "../core/note.h"
#include "../core/shape.h"

// Turns a subject on or off, for all threads, under the host's lock. EM_ERR_VALUE for unknown subjects.
EM_PRIV em_status em_log_enable(const char *what, bool on);
// Reads EMBER_LOG, when the library's operators are registered. Subjects that nobody knows were warned of (core/environment.c).
EM_PRIV em_status em_log_from_environment(void);

#endif
