// generator.c: ember.Generator, a stream of random numbers.
#include "bridge.h"
#include "core/rng.h"

typedef struct generator_object {
  PyObject_HEAD em_generator *g;
} generator_object;
static PyTypeObject generator_type;
static PyObject *default_generator;
#define G(o) (((generator_object *)(o))->g)

bool em_py_is_generator(PyObject *o) { return PyObject_TypeCheck(o, &generator_type); }
struct em_generator *em_py_to_generator(PyObject *o) {
  return G(o);
}

static PyObject *wrap(em_generator *g) {  // steals
  if (g == NULL) return PyErr_NoMemory();
  generator_object *o = (generator_object *)generator_type.tp_alloc(&generator_type, 0);
  if (o == NULL) em_generator_release(g);
  else o->g = g;
  return (PyObject *)o;
}
PyObject *em_py_generator_new_ref(struct em_generator *g) {
  if (g == em_default_generator()) return Py_NewRef(default_generator);
  return wrap(em_generator_retain(g));
}

static PyObject *generator_new(PyTypeObject *Py_UNUSED(type), PyObject *args, PyObject *kw) {
  static char *names[] = {"device", NULL};
  PyObject *device = NULL;
  em_device d = {EM_DEVICE_CPU, -1};
  if (!PyArg_ParseTupleAndKeywords(args, kw, "|O:Generator", names, &device)) return NULL;
  if (device != NULL && device != Py_None && em_py_to_device(device, &d) < 0) return NULL;
  if (d.type != EM_DEVICE_CPU) {
    PyErr_SetString(PyExc_RuntimeError, "Device type is not supported for torch.Generator() api.");
    return NULL;
  }
  return wrap(em_generator_new());
}
static void generator_dealloc(PyObject *o) {
  if (G(o) != NULL) em_generator_release(G(o));
  Py_TYPE(o)->tp_free(o);
}

static PyObject *g_manual_seed(PyObject *o, PyObject *seed) {
  int overflow = 0;
  PyObject *index = PyNumber_Index(seed);
  if (index == NULL) {
    PyErr_Clear();
    return PyErr_Format(PyExc_RuntimeError, "manual_seed expected a long, but got %s", Py_TYPE(seed)->tp_name);
  }
  long long v = PyLong_AsLongLongAndOverflow(index, &overflow);  // negative seeds wrap, as two's complement does
  uint64_t u = (uint64_t)v;
  if (overflow > 0) u = PyLong_AsUnsignedLongLong(index);
  Py_DECREF(index);
  if (overflow < 0 || PyErr_Occurred()) {
    PyErr_Clear();
    PyErr_SetString(PyExc_RuntimeError, "Overflow when unpacking unsigned long long");
    return NULL;
  }
  em_rng_seed(G(o), u);
  return Py_NewRef(o);
}
static PyObject *g_seed(PyObject *o, PyObject *Py_UNUSED(none)) {
  return PyLong_FromUnsignedLongLong(em_rng_seed_fresh(G(o)));
}
static PyObject *g_initial_seed(PyObject *o, PyObject *Py_UNUSED(none)) {
  return PyLong_FromUnsignedLongLong(em_rng_initial_seed(G(o)));
}
static PyObject *g_get_state(PyObject *o, PyObject *Py_UNUSED(none)) {
  em_tensor *t = NULL;
  int64_t n = EM_RNG_STATE_SIZE;
  em_status st = em_tensor_new(1, &n, EM_U8, (em_device){EM_DEVICE_CPU, -1}, &t);
  if (st != EM_OK) return em_py_raise(st);
  // lint: allow data, because the state is copied out byte for byte
  em_rng_get_state(G(o), em_tensor_data(t));
  return em_py_wrap(t);
}
static PyObject *g_set_state(PyObject *o, PyObject *state) {
  if (!em_py_is_tensor(state) || em_py_t(state)->dtype != EM_U8 || em_py_t(state)->device.type != EM_DEVICE_CPU) {
    PyErr_SetString(PyExc_TypeError, "RNG state must be a torch.ByteTensor");
    return NULL;
  }
  em_tensor *t = em_py_t(state);
  if (!em_tensor_is_contiguous(t)) {
    PyErr_SetString(PyExc_RuntimeError, "RNG state must be contiguous");
    return NULL;
  }
  // lint: allow data, because the state is copied in byte for byte
  em_status st = em_rng_set_state(G(o), em_tensor_data(t), (size_t)t->numel);
  return st == EM_OK ? Py_NewRef(o) : em_py_raise(st);
}
static PyObject *g_clone(PyObject *o, PyObject *Py_UNUSED(none)) { return wrap(em_generator_clone(G(o))); }
static PyObject *g_device(PyObject *Py_UNUSED(o), void *Py_UNUSED(c)) {
  return em_py_device_new((em_device){EM_DEVICE_CPU, -1});
}
static PyObject *g_reduce(PyObject *o, PyObject *Py_UNUSED(none)) {
  // As PyTorch: the class with its device, then (initial seed, philox offset, state).
  PyObject *state = g_get_state(o, NULL), *seed = g_initial_seed(o, NULL), *device = g_device(o, NULL);
  return Py_BuildValue("(O(N)(NON))", Py_TYPE(o), device, seed, Py_None, state);
}
static PyObject *g_setstate(PyObject *o, PyObject *state) {
  if (PyTuple_Check(state) && PyTuple_GET_SIZE(state) == 3) state = PyTuple_GET_ITEM(state, 2);
  PyObject *r = g_set_state(o, state);
  Py_XDECREF(r);
  if (r == NULL) return NULL;
  Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"manual_seed", g_manual_seed, METH_O,
                                 "manual_seed(seed): draws begin as after every other time with this seed. Returns the generator."},
                                {"seed", g_seed, METH_NOARGS, "seed(): takes a seed from the system, and returns it."},
                                {"initial_seed", g_initial_seed, METH_NOARGS,
                                 "initial_seed(): the seed that the generator was last given."},
                                {"get_state", g_get_state, METH_NOARGS,
                                 "get_state(): a uint8 tensor in PyTorch's layout, for set_state()."},
                                {"set_state", g_set_state, METH_O,
                                 "set_state(state): puts back what get_state() returned. RuntimeError for bytes that are no state."},
                                {"clone_state", g_clone, METH_NOARGS, NULL},
                                {"__reduce__", g_reduce, METH_NOARGS, NULL},
                                {"__setstate__", g_setstate, METH_O, NULL},
                                {NULL}};
static PyGetSetDef getset[] = {{"device", g_device}, {NULL}};
static PyTypeObject generator_type = {PyVarObject_HEAD_INIT(NULL, 0).tp_name = "ember._C.Generator",
                                      .tp_basicsize = sizeof(generator_object),
                                      .tp_new = generator_new,
                                      .tp_dealloc = generator_dealloc,
                                      .tp_methods = methods,
                                      .tp_getset = getset,
                                      .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE};

int em_py_generator_init(PyObject *module) {
  if (PyType_Ready(&generator_type) < 0) return -1;
  if ((default_generator = wrap(em_generator_retain(em_default_generator()))) == NULL) return -1;
  if (PyModule_AddObjectRef(module, "default_generator", default_generator) < 0) return -1;
  return PyModule_AddObjectRef(module, "Generator", (PyObject *)&generator_type);
}
