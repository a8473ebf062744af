// What the files of the extension module `tinyfuse._dispatch` share.
#ifndef TF_DISPATCH_H
#define TF_DISPATCH_H
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL tf_numpy
#ifndef TF_IMPORTS_NUMPY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

enum {
  MOST_ARGUMENTS = 512, // things that a call looks at: weights of many layers, and what is around them
  MOST_OUTPUTS = 32,
};

typedef struct tf_pool tf_pool;
typedef int tf_entry(void *const *buffers, void *scratch, const tf_pool *pool);

typedef struct {
  PyArray_Descr *dtype;
  size_t bytes;
  int dimensions;
  npy_intp extents[NPY_MAXDIMS];
} array_type;

// The threads of calls that name none.
extern const tf_pool *tf_default_pool;

// -- direct_call.c: what describes a call of a compiled program

// Where an argument is found.
typedef enum {
  GIVEN,  // at a position in the call
  HELD,   // it is `holder`
  GLOBAL, // in the dictionary `holder`
  CELL,   // in the closure's cell `holder`
} source_kind;

// What it has to be.
typedef enum {
  ARRAY,  // of `type`
  SCALAR, // of numpy's class `value`
  FLOAT,
  INTEGER, // that int64 holds
  EQUAL,
  IDENTICAL,
  OF_TYPE,   // of the class `value`
  WITH_KEYS, // a dictionary with the keys `value`, or a list or tuple with as many items
} argument_kind;

// What becomes of an output.
typedef enum {
  AS_ARRAY,
  AS_SCALAR,
  AS_FLOAT,
  AS_INTEGER,
  AS_CHECK, // true where the call fails
} output_kind;

// What a leaf of the result is.
typedef enum {
  FROM_OUTPUT,
  FROM_ARGUMENT,
  CONSTANT,
} leaf_kind;

typedef struct {
  source_kind source;
  argument_kind kind;
  Py_ssize_t position; // of a given one
  PyObject *holder;
  PyObject *name;  // of a global variable
  PyObject *steps; // that lead on from there: (whether to an attribute, its name or the key)
  PyObject *value;
  array_type type; // of an array
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

typedef struct {
  PyObject ob_base;
  tf_entry *entry;
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
  int default_pool;        // whether the pool is that of the moment, not its own
  int releases;            // whether other threads may run Python meanwhile
  unsigned long long used; // how many uses its Dispatcher had at its last one
} direct_call;

extern PyTypeObject tf_direct_call_type;

// -- call.c: calling it

// Whether a call of so many positional arguments, and keywords with these names, may be this one.
int tf_has_form(const direct_call *call, Py_ssize_t given, PyObject *names);

// The result. NULL without an exception where the arguments do not fit, or where Python has to say
// what is wrong. `uses` is noted where there is a result.
PyObject *tf_call(direct_call *call, PyObject *const *args, unsigned long long uses);

// -- memory.c: scratch memory, and the memory of large outputs

int tf_prepare_memory(void);
void *tf_scratch(size_t size);
PyObject *tf_new_array(const array_type *type);
void tf_keep_at_most(size_t bytes);
size_t tf_kept_bytes(void);
#endif
