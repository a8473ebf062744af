// DirectCall, the type of objects that describe a call of a compiled program.
#include "dispatch.h"
#include <stddef.h>
#include <structmember.h>

static int fill_type(array_type *type, PyObject *dtype, PyObject *shape) {
  if (!PyArray_DescrCheck(dtype) || !PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) > NPY_MAXDIMS) {
    PyErr_SetString(PyExc_TypeError, "the type of an array is a dtype and a shape");
    return -1;
  }
  type->dimensions = (int)PyTuple_GET_SIZE(shape);
  for (int axis = 0; axis < type->dimensions; axis++)
    type->extents[axis] = PyLong_AsSsize_t(PyTuple_GET_ITEM(shape, axis));
  type->dtype = (PyArray_Descr *)Py_NewRef(dtype);
  type->bytes = PyDataType_ELSIZE(type->dtype);
  for (int axis = 0; axis < type->dimensions; axis++)
    type->bytes *= (size_t)type->extents[axis]; // no overflow: numpy has had an array of this type
  return PyErr_Occurred() ? -1 : 0;
}

static int are_steps(PyObject *steps) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); i++) {
    PyObject *step = PyTuple_GET_ITEM(steps, i);
    if (!PyTuple_Check(step) || PyTuple_GET_SIZE(step) != 2 || !PyBool_Check(PyTuple_GET_ITEM(step, 0))) return 0;
  }
  return 1;
}

static int is_argument(const argument *argument, Py_ssize_t width) {
  int source = argument->source, kind = argument->kind;
  return source >= GIVEN && source <= CELL && kind >= ARRAY && kind <= WITH_KEYS && are_steps(argument->steps) &&
         (source != GIVEN || (argument->position >= 0 && argument->position < width)) &&
         (source != GLOBAL || PyDict_Check(argument->holder)) && (source != CELL || PyCell_Check(argument->holder)) &&
         (kind != WITH_KEYS || PyTuple_Check(argument->value));
}

// (source, position, holder, name, steps, kind, value or class or dtype or keys, shape)
static int fill_argument(argument *argument, PyObject *row, Py_ssize_t width) {
  PyObject *holder, *name, *steps, *value, *shape;
  int source, kind;
  if (!PyArg_ParseTuple(row, "inOOO!iOO", &source, &argument->position, &holder, &name, &PyTuple_Type, &steps, &kind,
                        &value, &shape))
    return -1;
  argument->source = source;
  argument->kind = kind;
  argument->holder = Py_NewRef(holder);
  argument->name = Py_NewRef(name);
  argument->steps = Py_NewRef(steps);
  argument->value = Py_NewRef(value);
  if (!is_argument(argument, width)) {
    PyErr_SetString(PyExc_ValueError, "there is no such argument");
    return -1;
  }
  return kind == ARRAY ? fill_type(&argument->type, value, shape) : 0;
}

// (kind, dtype, shape)
static int fill_output(output *output, PyObject *row) {
  PyObject *dtype, *shape;
  int kind;
  if (!PyArg_ParseTuple(row, "iOO", &kind, &dtype, &shape) || fill_type(&output->type, dtype, shape)) return -1;
  output->kind = kind;
  if (kind >= AS_ARRAY && kind <= AS_CHECK && (kind == AS_ARRAY || !output->type.dimensions)) return 0;
  PyErr_SetString(PyExc_ValueError, "there is no such output");
  return -1;
}

// (kind, position, constant)
static int fill_leaf(leaf *leaf, PyObject *row, const direct_call *call) {
  PyObject *constant;
  int kind;
  if (!PyArg_ParseTuple(row, "inO", &kind, &leaf->position, &constant)) return -1;
  Py_ssize_t count = kind == FROM_OUTPUT ? call->output_count : kind == FROM_ARGUMENT ? call->argument_count
                                                                                      : 1;
  if (kind < FROM_OUTPUT || kind > CONSTANT || leaf->position < 0 || leaf->position >= count) {
    PyErr_SetString(PyExc_ValueError, "there is no such leaf");
    return -1;
  }
  leaf->kind = kind;
  leaf->constant = Py_NewRef(constant);
  return 0;
}

static int allocate(direct_call *call, Py_ssize_t arguments, Py_ssize_t operands, Py_ssize_t outputs,
                    Py_ssize_t leaves) {
  if (arguments > MOST_ARGUMENTS || operands > MOST_ARGUMENTS || outputs > MOST_OUTPUTS || leaves < 1) {
    PyErr_SetString(PyExc_ValueError, "there are too many arguments or outputs, or no leaves");
    return -1;
  }
  call->arguments = PyMem_Calloc(arguments + 1, sizeof(argument));
  call->operands = PyMem_Calloc(operands + 1, sizeof(int));
  call->outputs = PyMem_Calloc(outputs + 1, sizeof(output));
  call->leaves = PyMem_Calloc(leaves, sizeof(leaf));
  if (!call->arguments || !call->operands || !call->outputs || !call->leaves) {
    PyErr_NoMemory();
    return -1;
  }
  call->argument_count = arguments;
  call->operand_count = operands;
  call->output_count = outputs;
  call->leaf_count = leaves;
  return 0;
}

static int fill_operand(const direct_call *call, int *operand, PyObject *position) {
  long at = PyLong_AsLong(position);
  if (PyErr_Occurred()) return -1;
  if (at < 0 || at >= call->argument_count || call->arguments[at].kind > INTEGER) {
    PyErr_SetString(PyExc_ValueError, "there is no such operand");
    return -1;
  }
  *operand = (int)at;
  return 0;
}

static int are_rows(PyObject *rows) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(rows); i++)
    if (!PyTuple_Check(PyTuple_GET_ITEM(rows, i))) {
      PyErr_SetString(PyExc_TypeError, "arguments, outputs and leaves are tuples");
      return 0;
    }
  return 1;
}

static int fill(direct_call *call, PyObject *arguments, PyObject *operands, PyObject *outputs, PyObject *leaves) {
  Py_ssize_t width = call->given + PyTuple_GET_SIZE(call->names);
  if (allocate(call, PyTuple_GET_SIZE(arguments), PyTuple_GET_SIZE(operands), PyTuple_GET_SIZE(outputs),
               PyTuple_GET_SIZE(leaves)))
    return -1;
  if (!are_rows(arguments) || !are_rows(outputs) || !are_rows(leaves)) return -1;
  for (Py_ssize_t i = 0; i < call->argument_count; i++)
    if (fill_argument(&call->arguments[i], PyTuple_GET_ITEM(arguments, i), width)) return -1;
  for (Py_ssize_t i = 0; i < call->operand_count; i++)
    if (fill_operand(call, &call->operands[i], PyTuple_GET_ITEM(operands, i))) return -1;
  for (Py_ssize_t i = 0; i < call->output_count; i++)
    if (fill_output(&call->outputs[i], PyTuple_GET_ITEM(outputs, i))) return -1;
  for (Py_ssize_t i = 0; i < call->leaf_count; i++)
    if (fill_leaf(&call->leaves[i], PyTuple_GET_ITEM(leaves, i), call)) return -1;
  return 0;
}

// DirectCall(entry, owner, given, names, arguments, operands, outputs, leaves, build, scratch_bytes,
//            pool, releases); entry and pool are addresses, pool None is that of the moment.
static PyObject *direct_call_new(PyTypeObject *type, PyObject *args, PyObject *keywords) {
  static char *none[] = {"", "", "", "", "", "", "", "", "", "", "", "", NULL};
  unsigned long long entry;
  Py_ssize_t given, scratch_bytes;
  PyObject *owner, *names, *arguments, *operands, *outputs, *leaves, *build, *pool;
  int releases;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "KOnO!O!O!O!O!OnOp", none, &entry, &owner, &given, &PyTuple_Type,
                                   &names, &PyTuple_Type, &arguments, &PyTuple_Type, &operands, &PyTuple_Type,
                                   &outputs, &PyTuple_Type, &leaves, &build, &scratch_bytes, &pool, &releases))
    return NULL;
  const void *address = pool == Py_None ? NULL : PyLong_AsVoidPtr(pool);
  if (PyErr_Occurred()) return NULL;
  direct_call *call = (direct_call *)type->tp_alloc(type, 0);
  if (!call) return NULL;
  call->entry = (tf_entry *)(uintptr_t)entry;
  call->owner = Py_NewRef(owner);
  call->given = given;
  call->names = Py_NewRef(names);
  call->build = Py_NewRef(build);
  call->scratch_bytes = (size_t)scratch_bytes;
  call->pool = address;
  call->default_pool = pool == Py_None;
  call->releases = releases;
  if (fill(call, arguments, operands, outputs, leaves)) Py_CLEAR(call);
  return (PyObject *)call;
}

static int direct_call_traverse(PyObject *self, visitproc visit, void *arg) {
  direct_call *call = (direct_call *)self;
  Py_VISIT(call->owner);
  Py_VISIT(call->names);
  Py_VISIT(call->build);
  for (Py_ssize_t i = 0; i < call->argument_count; i++) {
    Py_VISIT(call->arguments[i].holder);
    Py_VISIT(call->arguments[i].name);
    Py_VISIT(call->arguments[i].steps);
    Py_VISIT(call->arguments[i].value);
    Py_VISIT(call->arguments[i].type.dtype);
  }
  for (Py_ssize_t i = 0; i < call->output_count; i++) Py_VISIT(call->outputs[i].type.dtype);
  for (Py_ssize_t i = 0; i < call->leaf_count; i++) Py_VISIT(call->leaves[i].constant);
  return 0;
}

// Whoever holds a DirectCall may still look at it, so that nothing is cleared before the end; the
// cycles that it is part of go through a Dispatcher, which is.
static void direct_call_dealloc(PyObject *self) {
  direct_call *call = (direct_call *)self;
  PyObject_GC_UnTrack(self);
  Py_CLEAR(call->owner);
  Py_CLEAR(call->names);
  Py_CLEAR(call->build);
  for (Py_ssize_t i = 0; i < call->argument_count; i++) {
    Py_CLEAR(call->arguments[i].holder);
    Py_CLEAR(call->arguments[i].name);
    Py_CLEAR(call->arguments[i].steps);
    Py_CLEAR(call->arguments[i].value);
    Py_CLEAR(call->arguments[i].type.dtype);
  }
  for (Py_ssize_t i = 0; i < call->output_count; i++) Py_CLEAR(call->outputs[i].type.dtype);
  for (Py_ssize_t i = 0; i < call->leaf_count; i++) Py_CLEAR(call->leaves[i].constant);
  PyMem_Free(call->arguments);
  PyMem_Free(call->operands);
  PyMem_Free(call->outputs);
  PyMem_Free(call->leaves);
  Py_TYPE(self)->tp_free(self);
}

static PyMemberDef direct_call_members[] = {
    {"used", T_ULONGLONG, offsetof(direct_call, used), READONLY, "How many uses its Dispatcher had at its last one."},
    {NULL},
};

PyTypeObject tf_direct_call_type = {
    PyVarObject_HEAD_INIT(NULL, 0) //
        .tp_name = "tinyfuse._dispatch.DirectCall",
    .tp_doc = "What a call needs that goes straight to compiled code.",
    .tp_basicsize = sizeof(direct_call),
    .tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
    .tp_new = direct_call_new,
    .tp_traverse = direct_call_traverse,
    .tp_dealloc = direct_call_dealloc,
    .tp_members = direct_call_members,
};
