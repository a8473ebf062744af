// Calls that go straight to compiled code: whether the arguments fit, outputs, the call, the result.
#include "dispatch.h"

typedef union {
  double number;
  npy_int64 integer;
  npy_uint64 bits;
} slot;

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
    if (!is_equal(key, PyTuple_GET_ITEM(keys, at++))) return 0;
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

static int is_integer(PyObject *object, slot *place, void **address) {
  int overflows;
  if (!PyLong_CheckExact(object)) return 0;
  place->integer = PyLong_AsLongLongAndOverflow(object, &overflows);
  *address = place;
  return !overflows;
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
  case INTEGER:
    return is_integer(object, place, address);
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
  case AS_INTEGER:
    return PyLong_FromLongLong(place->integer);
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
