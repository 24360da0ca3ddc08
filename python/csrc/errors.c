// errors.c: em_status to Python exceptions, core warnings to Python warnings, and references dropped from any thread.
#include "bridge.h"

static PyObject *out_of_memory_error, *linalg_error;

static PyObject *exception_class(em_status st) {
  switch (st) {
    case EM_ERR_TYPE: return PyExc_TypeError;
    case EM_ERR_VALUE: return PyExc_ValueError;
    case EM_ERR_INDEX: return PyExc_IndexError;
    case EM_ERR_NOT_IMPLEMENTED: return PyExc_NotImplementedError;
    case EM_ERR_OOM: return out_of_memory_error;
    case EM_ERR_OVERFLOW: return PyExc_OverflowError;
    case EM_ERR_ZERO_DIVISION: return PyExc_ZeroDivisionError;
    case EM_ERR_ATTRIBUTE: return PyExc_AttributeError;
    case EM_ERR_LINALG: return linalg_error;
    default: return PyExc_RuntimeError;
  }
}

// Which operator failed is a note: a traceback shows it (Python 3.11), and str(error) stays PyTorch's, word for word.
static int add_note(PyObject *error, const char *op) {
  PyObject *notes = Py_BuildValue("[N]", PyUnicode_FromFormat("[in operator %s]", op));
  int failed = notes == NULL || PyObject_SetAttrString(error, "__notes__", notes) < 0;
  Py_XDECREF(notes);
  return failed ? -1 : 0;
}

PyObject *em_py_raise(em_status st) {
  if (st == EM_ERR_FOREIGN) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_SystemError, "EM_ERR_FOREIGN without a pending exception");
    return NULL;
  }
  PyObject *class = exception_class(st);
  const char *words = em_error_message(), *op = em_error_operator();
  PyObject *text = PyUnicode_DecodeUTF8(words, (Py_ssize_t)strlen(words), "replace");
  PyObject *error = text == NULL ? NULL : PyObject_CallOneArg(class, text);
  if (error != NULL && (op == NULL || strstr(words, op) != NULL || add_note(error, op) == 0)) PyErr_SetObject(class, error);
  Py_XDECREF(text);
  Py_XDECREF(error);
  em_error_clear();
  return NULL;
}

em_status em_py_foreign(void) {
  return PyErr_Occurred() ? EM_ERR_FOREIGN : em_fail(EM_ERR_INTERNAL, "a Python callback failed without an exception");
}

// The core warns from any place that holds the GIL or from a kernel that gave it up.
static em_status warn_handler(const char *message) {
  PyGILState_STATE gil = PyGILState_Ensure();
  int bad = PyErr_WarnEx(PyExc_UserWarning, message, 1);
  PyGILState_Release(gil);
  return bad ? EM_ERR_FOREIGN : EM_OK;
}

void em_py_decref_anywhere(void *object) {
  if (object == NULL || !Py_IsInitialized()) return;
  PyGILState_STATE gil = PyGILState_Ensure();
  Py_DECREF((PyObject *)object);
  PyGILState_Release(gil);
}

// Around long kernels. A thread that does not hold the GIL (a worker of the pool) has nothing to give up.
static void *unlock_host(void) { return PyGILState_Check() ? PyEval_SaveThread() : NULL; }
static void lock_host(void *token) { PyEval_RestoreThread(token); }

int em_py_errors_init(PyObject *module) {
  out_of_memory_error = PyErr_NewExceptionWithDoc(
      "ember.OutOfMemoryError", "Exception raised when a device is out of memory", PyExc_RuntimeError, NULL);
  linalg_error = PyErr_NewExceptionWithDoc("ember._C._LinAlgError",
                                           "Error raised by ember.linalg function when the cause "
                                           "of error is a numerical inconsistency in the data.",
                                           PyExc_RuntimeError, NULL);
  if (out_of_memory_error == NULL || linalg_error == NULL) return -1;
  if (PyModule_AddObjectRef(module, "OutOfMemoryError", out_of_memory_error) < 0) return -1;
  if (PyModule_AddObjectRef(module, "_LinAlgError", linalg_error) < 0) return -1;
  em_warn_set_handler(warn_handler);
  em_priv_unlock_host = unlock_host;
  em_priv_lock_host = lock_host;
  return 0;
}
