// lib_path.c: candidates in order, and a line in the log for each.
#include "lib_path.h"
#include "../../core/alloc.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FOLDERS 16
static char *folders[MAX_FOLDERS];
static int nfolders;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

em_status em_priv_lib_add_folder(const char *folder) {
  em_status st = EM_OK;
  pthread_mutex_lock(&lock);
  bool known = false;
  for (int i = 0; i < nfolders; i++) known |= strcmp(folders[i], folder) == 0;
  if (!known && nfolders == MAX_FOLDERS) {
    st = em_fail(EM_ERR_RUNTIME, "at most %d folders are searched for math libraries; '%s' is one too many", MAX_FOLDERS, folder);
  } else if (!known) {
    folders[nfolders] = strdup(folder);
    if (folders[nfolders] == NULL) st = EM_NOMEM(strlen(folder) + 1);
    else nfolders++;
  }
  pthread_mutex_unlock(&lock);
  return st;
}

#define MAX_FOUND 4
static struct { const char *name; char text[4400]; } found_libraries[MAX_FOUND];
static int nfound;

static void remember(const char *name, const char *file, const char *version) {
  pthread_mutex_lock(&lock);
  if (nfound < MAX_FOUND) {
    snprintf(found_libraries[nfound].text, sizeof found_libraries[nfound].text, "%s (%s)", file, version);
    found_libraries[nfound++].name = name;
  }
  pthread_mutex_unlock(&lock);
}
const char *em_priv_lib_found(const char *name) {
  const char *text = NULL;
  pthread_mutex_lock(&lock);  // entries are only ever added, and stay
  for (int i = 0; i < nfound; i++)
    if (strcmp(found_libraries[i].name, name) == 0) text = found_libraries[i].text;
  pthread_mutex_unlock(&lock);
  return text;
}

bool em_priv_lib_logged(void) {
  const char *text = getenv("EMBER_LOG");
  while (text != NULL) {
    size_t n = strcspn(text, ",");
    if (n == 4 && strncmp(text, "libs", 4) == 0) return true;
    text = text[n] == ',' ? text + n + 1 : NULL;
  }
  return false;
}

static bool try_file(const em_lib_spec *spec, const char *file, bool demanded) {
  char why[256] = "";
  void *handle = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) {
    const char *text = dlerror();
    snprintf(why, sizeof why, "%s", text == NULL ? "cannot be opened" : text);
  } else if (spec->accept(handle, why, sizeof why)) {
    remember(spec->name, file, why);
    if (em_priv_lib_logged()) {
      const char *at = why;  // accept leaves the version there
      fprintf(stderr, "[libs] %s: %s (%s)\n", spec->name, file, at);
    }
    return true;
  } else {
    dlclose(handle);
  }
  if (em_priv_lib_logged() || demanded) fprintf(stderr, "[libs] %s: refused %s: %s\n", spec->name, file, why);
  return false;
}

static bool try_folder(const em_lib_spec *spec, const char *folder, const char *up) {
  char file[4096];
  for (const char *const *name = spec->in_folders; *name != NULL; name++) {
    int n = snprintf(file, sizeof file, "%s/%s%s", folder, up, *name);
    if (n > 0 && (size_t)n < sizeof file && try_file(spec, file, false)) return true;
  }
  return false;
}

// libember.so lies in site-packages/ember when it was installed: site-packages is one folder up, <prefix>/lib three.
static bool try_beside_self(const em_lib_spec *spec) {
  Dl_info info;
  if (dladdr((void *)(uintptr_t)&em_priv_lib_open, &info) == 0 || info.dli_fname == NULL) return false;
  const char *slash = strrchr(info.dli_fname, '/');
  if (slash == NULL) return false;
  char folder[4096];
  int n = snprintf(folder, sizeof folder, "%.*s", (int)(slash - info.dli_fname), info.dli_fname);
  if (n < 0 || (size_t)n >= sizeof folder) return false;
  return try_folder(spec, folder, "../") || try_folder(spec, folder, "../../../");
}

bool em_priv_lib_open(const em_lib_spec *spec) {
  const char *given = getenv(spec->variable);
  bool found = false;
  if (given != NULL && given[0] != '\0') {
    if (strcmp(given, "none") != 0) found = try_file(spec, given, true);
    else if (em_priv_lib_logged()) fprintf(stderr, "[libs] %s: switched off by %s=none\n", spec->name, spec->variable);
  } else {
    pthread_mutex_lock(&lock);
    int n = nfolders;  // folders are only ever added
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < n && !found; i++) found = try_folder(spec, folders[i], "");
    if (!found) found = try_beside_self(spec);
    for (const char *const *name = spec->on_system; *name != NULL && !found; name++) found = try_file(spec, *name, false);
  }
  if (!found && em_priv_lib_logged())
    fprintf(stderr, "[libs] %s: not in use; plain C kernels do its work (see docs/dependencies.md)\n", spec->name);
  return found;
}
