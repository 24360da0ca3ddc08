// lib_path.h: finding and opening a math library at its first use. One place knows where libraries may lie.
#ifndef EMBER_BACKEND_CPU_LIB_PATH_H
#define EMBER_BACKEND_CPU_LIB_PATH_H
#include "../../core/status.h"

// A folder that the host knows about (site-packages, sys.prefix/lib), searched in the order given, before those that
// libember finds from its own place. Call it before the first operator that may open a library; the text is copied.
EM_PRIV em_status em_priv_lib_add_folder(const char *folder);

typedef struct em_lib_spec {
  const char *name;                // "OpenBLAS", for the log
  const char *variable;            // "EMBER_OPENBLAS": a file, or `none`
  const char *const *in_folders;   // file names below a folder, best first, NULL at the end
  const char *const *on_system;    // names for the dynamic linker's own search, NULL at the end
  // Takes the symbols out of an opened library. False: refused, with the reason in `why`.
  bool (*accept)(void *handle, char *why, size_t size);
} em_lib_spec;

// Tries the candidates in order: the variable's file (alone, when it is set), the folders, the system. Says with EMBER_LOG=libs what was
// opened and why others were refused; a file that the variable names and that does not open is reported without asking.
// Not thread-safe: callers use pthread_once. Returns whether one was accepted; it stays open until the process ends.
EM_PRIV bool em_priv_lib_open(const em_lib_spec *spec);
EM_PRIV const char *em_priv_lib_found(const char *name);  // "file (version)" of an opened library; NULL
EM_PRIV bool em_priv_lib_logged(void);  // EMBER_LOG names `libs`
#endif
