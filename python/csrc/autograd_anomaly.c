// autograd_anomaly.c: anomaly mode: where a node was made is kept with it, and told when its backward fails.
#include "bridge.h"

// The Python stack as one text, or NULL without an exception: anomaly mode must not fail what it watches.
static PyObject *stack_text(void) {
  PyObject *module = PyImport_ImportModule("traceback"), *lines = NULL, *text = NULL;
  PyObject *empty = PyUnicode_FromString("");
  if (module != NULL) lines = PyObject_CallMethod(module, "format_stack", NULL);
  if (lines != NULL && empty != NULL) text = PyUnicode_Join(empty, lines);
  Py_XDECREF(module);
  Py_XDECREF(lines);
  Py_XDECREF(empty);
  if (text == NULL) PyErr_Clear();
  return text;
}

static void record(em_node *n) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject *text = stack_text();
  em_value *v = text == NULL ? NULL : em_alloc(sizeof *v);
  if (v != NULL) {
    *v = (em_value){.tag = EM_TAG_OPAQUE, .owned = 1};
    v->opaque.ptr = text;
    v->opaque.release = em_py_decref_anywhere;
    n->anomaly = v;
  } else {
    Py_XDECREF(text);
  }
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(gil);
}

static void warn_about(const em_node *n, bool parent) {
  PyObject *text = n->anomaly == NULL ? NULL : n->anomaly->opaque.ptr;
  if (text == NULL)
    PyErr_WarnFormat(
        PyExc_UserWarning, 1,
        "Error detected in %s. No forward pass information available. Enable detect anomaly during forward "
        "pass for more information.",
        n->cls->name);
  else if (parent)
    PyErr_WarnFormat(PyExc_UserWarning, 1,
                     "\n\nPrevious calculation was induced by %s. Traceback of forward call that induced the previous "
                     "calculation:\n%U",
                     n->cls->name, text);
  else
    PyErr_WarnFormat(PyExc_UserWarning, 1, "Error detected in %s. Traceback of forward call that caused the error:\n%U",
                     n->cls->name, text);
  PyErr_Clear();  // warnings made errors give way to the error itself
}

static void report(em_node *n) {
  PyGILState_STATE gil = PyGILState_Ensure();
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  warn_about(n, false);
  for (const em_node *p = n->anomaly_parent; p != NULL; p = p->anomaly_parent) warn_about(p, true);
  PyErr_Restore(type, value, traceback);
  PyGILState_Release(gil);
}

void em_py_anomaly_init(void) {
  em_priv_anomaly_record = record;
  em_priv_anomaly_report = report;
}
