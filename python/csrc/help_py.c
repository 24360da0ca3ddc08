// help_py.c: the texts of help(ember.add). gen/emit_help.py writes them into a file that lies beside this library; it is mapped and
// its pages are read when somebody asks. Without the file, or with another version's, there is no help: nothing else changes.
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "bridge.h"
#include "gen_python.h"

// Offsets of texts follow the header: one for each em_py_functions, then for each em_py_written.
typedef struct help_header {
  char magic[4];
  uint32_t key, count, size;
} help_header;

static bool fits(const help_header *h, size_t size) {
  if (size < sizeof *h || memcmp(h->magic, "EMHP", 4) != 0 || h->key != em_py_help_key || h->size != size) return false;
  return h->count == em_py_function_count + em_py_written_count && h->count <= (size - sizeof *h) / sizeof(uint32_t) &&
         ((const char *)h)[size - 1] == '\0';
}

// The mapped file, kept for as long as the process lives, or NULL.
static const help_header *help_file(void) {
  static const help_header *mapped;
  char path[PATH_MAX];
  Dl_info self;
  struct stat st;
  if (mapped != NULL || dladdr(&em_py_function_count, &self) == 0 || self.dli_fname == NULL) return mapped;
  const char *slash = strrchr(self.dli_fname, '/');
  int folder = slash == NULL ? 0 : (int)(slash - self.dli_fname + 1);
  if (snprintf(path, sizeof path, "%.*s_gen_help.bin", folder, self.dli_fname) >= (int)sizeof path) return NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return NULL;
  void *p = fstat(fd, &st) == 0 && st.st_size > 0 ? mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
  close(fd);
  if (p == MAP_FAILED) return NULL;
  if (fits(p, (size_t)st.st_size)) mapped = p;
  else munmap(p, (size_t)st.st_size);
  return mapped;
}

static const char *text(const help_header *h, size_t i) {
  const uint32_t at = ((const uint32_t *)(h + 1))[i];
  return at < h->size ? (const char *)h + at : NULL;
}
const char *em_py_help_text(size_t i) {
  const help_header *h = help_file();
  return h == NULL ? NULL : text(h, i);
}

// Gives a function, method, attribute or class that was written by hand its words, unless it has some.
void em_py_describe(PyObject *o, const char *words) {
  if (o == NULL || words == NULL) return;
  if (PyCFunction_Check(o)) {
    PyMethodDef *d = ((PyCFunctionObject *)o)->m_ml;
    if (d->ml_doc == NULL) d->ml_doc = words;
  } else if (Py_IS_TYPE(o, &PyMethodDescr_Type)) {
    PyMethodDef *d = ((PyMethodDescrObject *)o)->d_method;
    if (d->ml_doc == NULL) d->ml_doc = words;
  } else if (Py_IS_TYPE(o, &PyGetSetDescr_Type)) {
    PyGetSetDef *d = ((PyGetSetDescrObject *)o)->d_getset;
    if (d->doc == NULL) d->doc = words;
  } else if (PyType_Check(o)) {
    PyTypeObject *type = (PyTypeObject *)o;
    PyObject *doc = PyUnicode_FromString(words);  // without memory the class has no words
    if (doc == NULL || PyDict_SetItemString(type->tp_dict, "__doc__", doc) < 0) PyErr_Clear();
    Py_XDECREF(doc);
    PyType_Modified(type);
  }
}

int em_py_help_init(PyObject *module) {
  const help_header *h = help_file();
  for (size_t i = 0; h != NULL && i < em_py_written_count; i++) {
    const em_py_written_name *w = &em_py_written[i];
    PyObject *dict = w->where == EM_PY_METHOD ? em_py_base_type.tp_dict : PyModule_GetDict(module);
    em_py_describe(PyDict_GetItemString(dict, w->name), text(h, em_py_function_count + i));
  }
  return 0;
}
