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

enum { MOST_ARGUMENTS = 32,
       MOST_OUTPUTS = 32 };

typedef struct tf_pool tf_pool;
typedef int tf_entry(void *const *buffers, void *scratch, const tf_pool *pool);

typedef struct {
  int dimensions;
  npy_intp extents[NPY_MAXDIMS];
  size_t bytes;
  PyArray_Descr *dtype;
} array_type;

// The threads of calls that name none.
extern const tf_pool *tf_default_pool;

// -- direct_call.c: calls of compiled programs

typedef struct direct_call direct_call;
extern PyTypeObject tf_direct_call_type;

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
