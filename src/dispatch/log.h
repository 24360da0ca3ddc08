// log.h: switches of the dispatcher's log (EMBER_LOG=dispatch,ops,kernels,libs).
#ifndef EMBER_DISPATCH_LOG_H
#define EMBER_DISPATCH_LOG_H
#include "../core/shape.h"

// Turns a subject on or off, for all threads, under the host's lock. EM_ERR_VALUE for unknown subjects.
EM_PRIV em_status em_log_enable(const char *what, bool on);
// Reads EMBER_LOG; called once, after all operators are registered (the bridge's module init). Unknown subjects warn.
EM_PRIV em_status em_log_from_environment(void);

// What a kernel has to say about the way it chose, and why it refused others: into the buffer that somebody set, for the thread that set
// it, one note a line. Nothing is asked, and nothing is written, without a buffer.
EM_PRIV extern bool em_priv_notes_wanted;
EM_PRIV void em_log_note(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
EM_PRIV void em_log_notes_into(char *buffer, size_t size);  // NULL: no more notes. The buffer is emptied
#define EM_NOTE(...) do { if (EM_UNLIKELY(em_priv_notes_wanted)) em_log_note(__VA_ARGS__); } while (0)
#endif
