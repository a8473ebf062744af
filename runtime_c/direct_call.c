// Calls that go straight to compiled code: whether the arguments fit, outputs, the call, the result.
#include "dispatch.h"
#include <stddef.h>
#include <structmember.h>

// Where an argument is found, and what it has to be.
typedef enum { GIVEN,
               HELD,
               GLOBAL,
               CELL } source_kind;
typedef enum { ARRAY,
               SCALAR,
               FLOAT,
               EQUAL,
               IDENTICAL,
               OF_TYPE,
               WITH_KEYS } argument_kind;
// What becomes of an output, and what a leaf of the result is.
typedef enum { AS_ARRAY,
               AS_SCALAR,
               AS_FLOAT,
               AS_CHECK } output_kind;
typedef enum { FROM_OUTPUT,
               FROM_ARGUMENT,
               CONSTANT } leaf_kind;

typedef struct {
  source_kind source;
  argument_kind kind;
  Py_ssize_t position; // of a given one
  PyObject *holder;    // the object itself, the dictionary of global variables, or the closure's cell
  PyObject *name;      // of a global variable
  PyObject *steps;     // that lead on from there: (whether to an attribute, its name or the key)
  PyObject *value;     // what it is equal or identical to, its class, or its keys
  array_type type;     // of an array
} argument;

typedef struct {
  output_kind kind;
  array_type type;
} output;

typedef struct {
  leaf_kind kind;
  Py_ssize_t position;
  PyObject *constant;
} leaf;

typedef union {
  double number;
  npy_uint64 bits;
} slot;

struct direct_call {
  PyObject_HEAD tf_entry *entry;
  PyObject *owner; // keeps the library of the entry loaded
  Py_ssize_t given;
  PyObject *names; // of keywords, which follow the positional arguments
  Py_ssize_t argument_count, operand_count, output_count, leaf_count;
  argument *arguments;
  int *operands;
  output *outputs;
  leaf *leaves;
  PyObject *build; // makes the result of a list of its leaves; None: the only leaf is the result
  size_t scratch_bytes;
  const tf_pool *pool;
  int default_pool; // whether the pool is that of the moment, not its own
  int releases;     // whether other threads may run Python meanwhile
  unsigned long long used;
};

// The arguments of a call that is running.
typedef struct {
  Py_ssize_t count;
  PyObject *objects[MOST_ARGUMENTS];
  void *addresses[MOST_ARGUMENTS];
  slot slots[MOST_ARGUMENTS];
} found;

// -- matching

static int is_dtype(PyArray_Descr *dtype, PyArray_Descr *wanted) {
  if (dtype == wanted) return 1;
  return dtype->kind == wanted->kind && PyDataType_ELSIZE(dtype) == PyDataType_ELSIZE(wanted) &&
         dtype->type_num < NPY_OBJECT && PyArray_ISNBO(dtype->byteorder);
}

static int is_array(PyObject *object, const array_type *type) {
  if (!PyArray_CheckExact(object)) return 0;
  PyArrayObject *array = (PyArrayObject *)object;
  if (PyArray_NDIM(array) != type->dimensions) return 0;
  for (int axis = 0; axis < type->dimensions; axis++)
    if (PyArray_DIM(array, axis) != type->extents[axis]) return 0;
  return is_dtype(PyArray_DESCR(array), type->dtype) && PyArray_ISCARRAY_RO(array);
}

// Of values that cannot be but of Python's own classes, so that comparing runs no other code.
static int is_equal(PyObject *object, PyObject *value) {
  if (object == value) return 1;
  if (Py_TYPE(object) != Py_TYPE(value)) return 0;
  if (PyFloat_CheckExact(object)) {
    double one = PyFloat_AS_DOUBLE(object), other = PyFloat_AS_DOUBLE(value);
    return !memcmp(&one, &other, sizeof one); // -0.0 is another value than 0.0
  }
  if (!PyLong_CheckExact(object) && !PyUnicode_CheckExact(object) && !PyBytes_CheckExact(object)) return 0;
  return PyObject_RichCompareBool(object, value, Py_EQ) == 1;
}

// Dictionaries must have these keys in this order, lists and tuples so many items.
static int has_keys(PyObject *object, PyObject *keys) {
  Py_ssize_t count = PyTuple_GET_SIZE(keys), at = 0, place = 0;
  if (PyList_CheckExact(object)) return PyList_GET_SIZE(object) == count;
  if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object) == count;
  if (!PyDict_CheckExact(object) || PyDict_GET_SIZE(object) != count) return 0;
  for (PyObject *key; PyDict_Next(object, &place, &key, NULL);)
    if (key != PyTuple_GET_ITEM(keys, at++)) return 0;
  return 1;
}

static PyObject *variable(const argument *wanted, PyObject *const *args) {
  switch (wanted->source) {
  case GIVEN:
    return args[wanted->position];
  case HELD:
    return wanted->holder;
  case GLOBAL:
    return PyDict_GetItemWithError(wanted->holder, wanted->name);
  case CELL:
    return PyCell_GET(wanted->holder);
  }
  return NULL;
}

// A new reference: variables may be set anew by another thread while the program runs.
static PyObject *argument_found(const argument *wanted, PyObject *const *args) {
  PyObject *object = variable(wanted, args);
  Py_XINCREF(object);
  for (Py_ssize_t i = 0; object && i < PyTuple_GET_SIZE(wanted->steps); i++) {
    PyObject *step = PyTuple_GET_ITEM(wanted->steps, i), *key = PyTuple_GET_ITEM(step, 1);
    int to_attribute = PyTuple_GET_ITEM(step, 0) == Py_True;
    PyObject *next = to_attribute ? PyObject_GetAttr(object, key) : PyObject_GetItem(object, key);
    Py_SETREF(object, next);
  }
  return object;
}

static int matches(const argument *wanted, PyObject *object, void **address, slot *place) {
  switch (wanted->kind) {
  case ARRAY:
    if (!is_array(object, &wanted->type)) return 0;
    *address = PyArray_DATA((PyArrayObject *)object);
    return 1;
  case SCALAR:
    if ((PyObject *)Py_TYPE(object) != wanted->value) return 0;
    PyArray_ScalarAsCtype(object, place);
    *address = place;
    return 1;
  case FLOAT:
    if (!PyFloat_CheckExact(object)) return 0;
    place->number = PyFloat_AS_DOUBLE(object);
    *address = place;
    return 1;
  case EQUAL:
    return is_equal(object, wanted->value);
  case IDENTICAL:
    return object == wanted->value;
  case OF_TYPE:
    return (PyObject *)Py_TYPE(object) == wanted->value;
  case WITH_KEYS:
    return has_keys(object, wanted->value);
  }
  return 0;
}

static void let_go(found *it) {
  while (it->count) Py_DECREF(it->objects[--it->count]);
}

static int find_arguments(const direct_call *call, PyObject *const *args, found *it) {
  for (it->count = 0; it->count < call->argument_count;) {
    Py_ssize_t i = it->count;
    const argument *wanted = &call->arguments[i];
    PyObject *object = argument_found(wanted, args);
    if (object) it->objects[it->count++] = object;
    if (!object || !matches(wanted, object, &it->addresses[i], &it->slots[i])) {
      PyErr_Clear();
      let_go(it);
      return 0;
    }
  }
  return 1;
}

int tf_has_form(const direct_call *call, Py_ssize_t given, PyObject *names) {
  Py_ssize_t count = PyTuple_GET_SIZE(call->names);
  if (call->given != given || (names ? PyTuple_GET_SIZE(names) : 0) != count) return 0;
  for (Py_ssize_t i = 0; i < count; i++)
    if (PyTuple_GET_ITEM(names, i) != PyTuple_GET_ITEM(call->names, i)) return 0;
  return 1;
}

// -- running

static void drop(PyObject **objects, Py_ssize_t count) {
  for (Py_ssize_t i = 0; i < count; i++) Py_CLEAR(objects[i]);
}

static int compute(const direct_call *call, void *const *buffers) {
  void *scratch = NULL;
  if (call->scratch_bytes && !(scratch = tf_scratch(call->scratch_bytes))) {
    PyErr_Format(PyExc_MemoryError, "there are no %zu bytes of memory for intermediate arrays", call->scratch_bytes);
    return -1;
  }
  const tf_pool *pool = call->default_pool ? tf_default_pool : call->pool;
  if (!call->releases) return call->entry(buffers, scratch, pool);
  PyThreadState *thread = PyEval_SaveThread();
  int status = call->entry(buffers, scratch, pool);
  PyEval_RestoreThread(thread);
  return status;
}

static PyObject *finished(const output *output, PyObject *array, slot *place) {
  switch (output->kind) {
  case AS_ARRAY:
    return Py_NewRef(array);
  case AS_SCALAR:
    return PyArray_Scalar(place, output->type.dtype, NULL);
  default:
    return PyFloat_FromDouble(place->number);
  }
}

static PyObject *leaf_of(const direct_call *call, const leaf *leaf, const found *it, PyObject **made, slot *slots) {
  if (leaf->kind == CONSTANT) return Py_NewRef(leaf->constant);
  Py_ssize_t at = leaf->position;
  if (leaf->kind == FROM_ARGUMENT) return Py_NewRef(it->objects[at]);
  return finished(&call->outputs[at], made[at], &slots[at]);
}

static PyObject *result_of(const direct_call *call, const found *it, PyObject **made, slot *slots) {
  if (call->build == Py_None) return leaf_of(call, &call->leaves[0], it, made, slots);
  int as_tuple = call->build == (PyObject *)&PyTuple_Type;
  PyObject *leaves = as_tuple ? PyTuple_New(call->leaf_count) : PyList_New(call->leaf_count);
  for (Py_ssize_t i = 0; leaves && i < call->leaf_count; i++) {
    PyObject *leaf = leaf_of(call, &call->leaves[i], it, made, slots);
    if (!leaf)
      Py_CLEAR(leaves);
    else if (as_tuple)
      PyTuple_SET_ITEM(leaves, i, leaf);
    else
      PyList_SET_ITEM(leaves, i, leaf);
  }
  if (!leaves || as_tuple || call->build == (PyObject *)&PyList_Type) return leaves;
  PyObject *result = PyObject_CallOneArg(call->build, leaves);
  Py_DECREF(leaves);
  return result;
}

static int fails_a_check(const direct_call *call, const slot *slots) {
  for (Py_ssize_t i = 0; i < call->output_count; i++)
    if (call->outputs[i].kind == AS_CHECK && *(const npy_bool *)&slots[i]) return 1;
  return 0;
}

// The result; NULL without an exception where Python has to say what is wrong.
static PyObject *run(direct_call *call, const found *it) {
  void *buffers[MOST_ARGUMENTS + MOST_OUTPUTS];
  PyObject *made[MOST_OUTPUTS] = {NULL};
  slot slots[MOST_OUTPUTS];
  PyObject *result = NULL;
  for (Py_ssize_t i = 0; i < call->operand_count; i++) buffers[i] = it->addresses[call->operands[i]];
  for (Py_ssize_t i = 0; i < call->output_count; i++) {
    buffers[call->operand_count + i] = &slots[i];
    if (call->outputs[i].kind != AS_ARRAY) continue;
    made[i] = tf_new_array(&call->outputs[i].type);
    if (!made[i]) goto done;
    buffers[call->operand_count + i] = PyArray_DATA((PyArrayObject *)made[i]);
  }
  if (!compute(call, buffers) && !fails_a_check(call, slots)) result = result_of(call, it, made, slots);
done:
  drop(made, call->output_count);
  return result;
}

PyObject *tf_call(direct_call *call, PyObject *const *args, unsigned long long uses) {
  found it;
  Py_INCREF(call); // whatever runs meanwhile may forget it
  PyObject *result = NULL;
  if (find_arguments(call, args, &it)) {
    result = run(call, &it);
    let_go(&it);
  }
  if (result) call->used = uses;
  Py_DECREF(call);
  return result;
}

// -- DirectCall

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
  if (at < 0 || at >= call->argument_count || call->arguments[at].kind > FLOAT) {
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
