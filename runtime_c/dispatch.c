// The extension module `tinyfuse._dispatch`: calls of jitted functions by CPython's vectorcall.
//
// A DirectCall knows the arguments that a compiled program takes, where they come from, and what
// becomes of its outputs. A Dispatcher, the base class of jitted functions, tries the few that it
// was called with last. Whatever fits none of them is a matter for the Python method `_slowly`:
// it finds or compiles the program, words errors, and may add a DirectCall.
#define TF_IMPORTS_NUMPY
#include "dispatch.h"
#include <stddef.h>
#include <structmember.h>

enum {
  INTERFACE = 2,  // between these files and tinyfuse/dispatch.py, which has the same number
  MOST_CALLS = 8, // of one Dispatcher
};

typedef struct {
  PyObject_HEAD
      vectorcallfunc vectorcall;
  Py_ssize_t count;
  direct_call *calls[MOST_CALLS]; // the one added last comes first
  unsigned long long uses;
} dispatcher;

const tf_pool *tf_default_pool;

static int paused; // then every call is a matter for Python
static PyObject *slowly_name;

static PyObject *slowly(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
  PyObject *method = PyObject_GetAttr(self, slowly_name);
  if (!method) return NULL;
  PyObject *result = PyObject_Vectorcall(method, args, PyVectorcall_NARGS(flags), names);
  Py_DECREF(method);
  return result;
}

static PyObject *dispatch(PyObject *self, PyObject *const *args, size_t flags, PyObject *names) {
  dispatcher *function = (dispatcher *)self;
  Py_ssize_t given = PyVectorcall_NARGS(flags);
  for (Py_ssize_t i = 0; !paused && i < function->count; i++) {
    if (!tf_has_form(function->calls[i], given, names)) continue;
    PyObject *result = tf_call(function->calls[i], args, function->uses + 1);
    if (result) function->uses++;
    if (result || PyErr_Occurred()) return result;
  }
  return slowly(self, args, flags, names);
}

static PyObject *dispatcher_new(PyTypeObject *type, PyObject *Py_UNUSED(args), PyObject *Py_UNUSED(keywords)) {
  dispatcher *function = (dispatcher *)type->tp_alloc(type, 0);
  if (function) function->vectorcall = dispatch;
  return (PyObject *)function;
}

static int dispatcher_traverse(PyObject *self, visitproc visit, void *arg) {
  dispatcher *function = (dispatcher *)self;
  for (Py_ssize_t i = 0; i < function->count; i++) Py_VISIT(function->calls[i]);
  return 0;
}

// Dropping one may run any code, which must not meet it in the list.
static int dispatcher_clear(PyObject *self) {
  dispatcher *function = (dispatcher *)self;
  while (function->count) Py_DECREF(function->calls[--function->count]);
  return 0;
}

static void dispatcher_dealloc(PyObject *self) {
  PyObject_GC_UnTrack(self);
  dispatcher_clear(self);
  Py_TYPE(self)->tp_free(self);
}

static void take_out(dispatcher *function, Py_ssize_t at) {
  direct_call *call = function->calls[at];
  function->count--;
  memmove(&function->calls[at], &function->calls[at + 1], (function->count - at) * sizeof call);
  Py_DECREF(call);
}

static PyObject *forget(PyObject *self, PyObject *call) {
  dispatcher *function = (dispatcher *)self;
  for (Py_ssize_t i = function->count - 1; i >= 0; i--)
    if ((PyObject *)function->calls[i] == call) {
      take_out(function, i);
      break;
    }
  Py_RETURN_NONE;
}

static PyObject *remember(PyObject *self, PyObject *call) {
  dispatcher *function = (dispatcher *)self;
  if (!Py_IS_TYPE(call, &tf_direct_call_type)) {
    PyErr_SetString(PyExc_TypeError, "only a DirectCall can be remembered");
    return NULL;
  }
  Py_INCREF(call);
  Py_XDECREF(forget(self, call));
  while (function->count >= MOST_CALLS) take_out(function, function->count - 1);
  memmove(&function->calls[1], &function->calls[0], function->count * sizeof function->calls[0]);
  function->calls[0] = (direct_call *)call;
  function->count++;
  Py_RETURN_NONE;
}

static PyObject *forget_all(PyObject *self, PyObject *Py_UNUSED(nothing)) {
  dispatcher_clear(self);
  Py_RETURN_NONE;
}

// Before 3.12 Python's own subclasses do not inherit that they are called by vectorcall.
static PyObject *init_subclass(PyObject *subclass, PyObject *Py_UNUSED(args)) {
  PyTypeObject *type = (PyTypeObject *)subclass;
  if (type->tp_call == PyVectorcall_Call) {
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified(type);
  }
  Py_RETURN_NONE;
}

static PyMethodDef dispatcher_methods[] = {
    {"_remember", remember, METH_O, "Try this DirectCall first from now on."},
    {"_forget", forget, METH_O, "Do not try this DirectCall any more."},
    {"_forget_all", forget_all, METH_NOARGS, "Try none from now on."},
    {"__init_subclass__", init_subclass, METH_CLASS | METH_NOARGS, NULL},
    {NULL},
};

static PyMemberDef dispatcher_members[] = {
    {"_uses", T_ULONGLONG, offsetof(dispatcher, uses), 0, "How many calls found a program."},
    {NULL},
};

static PyTypeObject dispatcher_type = {
    PyVarObject_HEAD_INIT(NULL, 0) //
        .tp_name = "tinyfuse._dispatch.Dispatcher",
    .tp_doc = "Base of functions that call compiled code as directly as their arguments allow.",
    .tp_basicsize = sizeof(dispatcher),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL,
    .tp_new = dispatcher_new,
    .tp_traverse = dispatcher_traverse,
    .tp_clear = dispatcher_clear,
    .tp_dealloc = dispatcher_dealloc,
    .tp_call = PyVectorcall_Call,
    .tp_vectorcall_offset = offsetof(dispatcher, vectorcall),
    .tp_methods = dispatcher_methods,
    .tp_members = dispatcher_members,
};

// -- the module

static PyObject *set_paused(PyObject *Py_UNUSED(module), PyObject *value) {
  int truth = PyObject_IsTrue(value);
  if (truth < 0) return NULL;
  paused = truth;
  Py_RETURN_NONE;
}

static PyObject *set_default_pool(PyObject *Py_UNUSED(module), PyObject *address) {
  const void *pool = PyLong_AsVoidPtr(address);
  if (PyErr_Occurred()) return NULL;
  tf_default_pool = pool;
  Py_RETURN_NONE;
}

static PyObject *keep_at_most(PyObject *Py_UNUSED(module), PyObject *bytes) {
  size_t limit = PyLong_AsSize_t(bytes);
  if (PyErr_Occurred()) return NULL;
  tf_keep_at_most(limit);
  Py_RETURN_NONE;
}

static PyObject *kept_bytes(PyObject *Py_UNUSED(module), PyObject *Py_UNUSED(nothing)) {
  return PyLong_FromSize_t(tf_kept_bytes());
}

static PyMethodDef functions[] = {
    {"set_paused", set_paused, METH_O, "Whether no call may go straight to compiled code."},
    {"set_default_pool", set_default_pool, METH_O, "The address of the pool of calls that name none."},
    {"keep_at_most", keep_at_most, METH_O, "How many bytes of large outputs that were dropped are kept for others."},
    {"kept_bytes", kept_bytes, METH_NOARGS, "How many there are."},
    {NULL},
};

// What is above is one for the process, as numpy is.
static int execute(PyObject *module) {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_ImportError, "tinyfuse._dispatch works in the main interpreter only");
    return -1;
  }
  import_array1(-1);
  if (tf_prepare_memory()) return -1;
  slowly_name = PyUnicode_InternFromString("_slowly");
  if (!slowly_name || PyModule_AddIntMacro(module, INTERFACE) || PyModule_AddIntMacro(module, MOST_CALLS) ||
      PyModule_AddIntMacro(module, MOST_ARGUMENTS) || PyModule_AddIntMacro(module, MOST_OUTPUTS))
    return -1;
  return PyModule_AddType(module, &tf_direct_call_type) || PyModule_AddType(module, &dispatcher_type) ? -1 : 0;
}

static PyModuleDef_Slot slots_of_module[] = {
    {Py_mod_exec, execute},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "tinyfuse._dispatch",
    .m_methods = functions,
    .m_slots = slots_of_module,
};

PyMODINIT_FUNC PyInit__dispatch(void) { return PyModuleDef_Init(&definition); }
