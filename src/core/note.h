// note.h: what kernels say about the way they chose, for whoever listens (ember.fall, EMBER_LOG=kernels). A note is one line:
//     PATH: what it does (OTHER refused: why; ANOTHER refused: why)
// Nobody listens most of the time: then a note is one load and one branch, and its words are never made.
#ifndef EMBER_CORE_NOTE_H
#define EMBER_CORE_NOTE_H
#include "status.h"

EM_PRIV extern bool em_priv_notes_wanted;
EM_PRIV extern const char *em_priv_note_isa;  // the build of the loops that runs; the backend that chose it says so
EM_PRIV void em_note_write(const char *format, ...) __attribute__((format(printf, 1, 2), cold));
// Said by em_threads_for at the end of the line that the kernel began: n pieces of at least `grain` went to `workers` threads.
EM_PRIV void em_note_threads(int workers, int64_t n, int64_t grain) __attribute__((cold));
// Notes of the calling thread go to the end of the text in `buffer` until this is called again; NULL: to nobody.
EM_PRIV void em_note_into(char *buffer, size_t size);
EM_PRIV void em_note_to_stderr(bool on);  // of all threads
#define EM_NOTE_S(n) ((n) == 1 ? "" : "s")  // "1 row", "2 rows"
#define EM_NOTE(...) do { if (EM_UNLIKELY(em_priv_notes_wanted)) em_note_write(__VA_ARGS__); } while (0)
#endif
