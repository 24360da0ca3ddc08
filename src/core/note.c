// note.c: see note.h. A line that stands in the buffer already is not written again: kernels that go through many matrices or steps
// say the same thing for each.
#include "note.h"
#include "threads.h"
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool em_priv_notes_wanted;
const char *em_priv_note_isa = "baseline";
static struct { char *text; size_t size, line; pthread_t owner; bool to_stderr; } notes;  // line: where the last one begins

static bool mine(void) { return notes.text != NULL && pthread_equal(notes.owner, pthread_self()); }

void em_note_into(char *buffer, size_t size) {
  notes.text = buffer;
  notes.size = size;
  notes.line = buffer == NULL ? 0 : strlen(buffer);
  notes.owner = pthread_self();
  em_priv_notes_wanted = buffer != NULL || notes.to_stderr;
}
void em_note_to_stderr(bool on) {
  notes.to_stderr = on;
  em_priv_notes_wanted = on || notes.text != NULL;
}
static const char *find_line(const char *line) {  // one that begins so, whatever was said of threads behind it
  const size_t n = strlen(line);
  for (const char *at = notes.text; *at != 0;) {
    if (strncmp(at, line, n) == 0 && (at[n] == 0 || at[n] == '\n' || at[n] == ';')) return at;
    at += strcspn(at, "\n");
    at += *at == '\n';
  }
  return NULL;
}
static void append(const char *words) {
  size_t at = strlen(notes.text), n = strlen(words);
  if (at >= 4 && strcmp(notes.text + at - 4, "\n...") == 0) return;  // there was more: nothing follows
  if (at + n + 5 <= notes.size) memcpy(notes.text + at, words, n + 1);
  else if (at + 5 <= notes.size) memcpy(notes.text + at, "\n...", 5);
}
void em_note_write(const char *format, ...) {
  char line[513] = "\n";
  va_list args;
  va_start(args, format);
  vsnprintf(line + 1, sizeof line - 1, format, args);
  va_end(args);
  if (notes.to_stderr) fprintf(stderr, "[kernels] %s\n", line + 1);
  if (!mine()) return;
  const char *before = find_line(line + 1);
  const size_t end = strlen(notes.text);
  notes.line = before != NULL ? (size_t)(before - notes.text) : end + (end > 0);
  if (before == NULL) append(end > 0 ? line : line + 1);
}
void em_note_threads(int workers, int64_t n, int64_t grain) {
  char words[160];
  if (em_threads_in_region()) return;  // it is part of a loop that was told already
  if (workers > 1) snprintf(words, sizeof words, "; on %d threads", workers);
  else if (em_threads_get() == 1) snprintf(words, sizeof words, "; on 1 thread, all that there is");
  else if (grain == INT64_MAX) snprintf(words, sizeof words, "; on 1 thread (more refused: the order matters)");
  else if (n == 1) snprintf(words, sizeof words, "; on 1 thread (more refused: one piece of work)");
  else
    snprintf(words, sizeof words, "; on 1 thread (more refused: %lld to share, a thread gets %lld or more)", (long long)n,
             (long long)grain);
  if (notes.to_stderr) fprintf(stderr, "[kernels]   %s\n", words + 2);
  if (!mine()) return;
  const char *line = notes.text + notes.line;
  if (*line == 0) {  // the kernel had no choice to tell
    append(notes.line > 0 ? "\nloop" : "loop");
    append(words);
  } else if (strchr(line, '\n') == NULL && strstr(line, "; on ") == NULL) {
    append(words);
  }
}
