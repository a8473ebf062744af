// The memory of direct calls: scratch memory of each thread, and large outputs.
//
// The first touch of a page costs more than what most kernels do with it, and memory of this size
// goes back to the system when an array is dropped. So that of large outputs is kept for a while,
// and used for the next output that fits. The system may take the pages of the largest back when it
// needs them. To tell it so it interrupts all processors that the process runs on, which takes as long
// as to write 4 MiB: too much for smaller ones.
#define _GNU_SOURCE
#include "dispatch.h"
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

// Processors tell a load from the stores before it by the last twelve bits of their addresses. So
// outputs begin with a page, as large arrays of numpy do but for 16 bytes: what is loaded for the next
// elements of a loop is not taken then for what was just stored.
enum {
  SCRATCH_ALIGNMENT = 64,
  HEADER = 4096,         // bytes before the elements: how many can be there
  LARGE = 4 << 20,       // smaller blocks malloc keeps by itself, even several
  LEAST_LENT = 64 << 20, // bytes of a block from which on the system may take its pages back
  HUGE_PAGE = 2 << 20,
  MOST_KEPT = 8,
};

// -- scratch memory: one block for each thread, for as long as it lives

static pthread_key_t scratch_key;

typedef struct {
  size_t size;
  void *block;
} scratch_memory;

static void drop_scratch(void *memory) {
  free(((scratch_memory *)memory)->block);
  free(memory);
}

// At least so many bytes, aligned to a cache line; NULL where there is not that much.
void *tf_scratch(size_t size) {
  scratch_memory *memory = pthread_getspecific(scratch_key);
  if (!memory) {
    memory = calloc(1, sizeof *memory);
    if (!memory || pthread_setspecific(scratch_key, memory)) {
      free(memory);
      return NULL;
    }
  }
  if (memory->size < size) {
    free(memory->block); // let go of the old one first
    memory->size = 0;
    if (posix_memalign(&memory->block, SCRATCH_ALIGNMENT, size)) memory->block = NULL;
    if (memory->block) memory->size = size;
  }
  return memory->block;
}

// -- large outputs. All of this runs with the interpreter lock (GIL) held.

typedef struct {
  void *block;
  size_t size;
} kept_block;

static kept_block kept[MOST_KEPT]; // the one dropped last comes first
static int kept_count;
static size_t kept_total, kept_limit;
static PyObject *handler; // a capsule, as numpy wants it

static kept_block take(int at) {
  kept_block found = kept[at];
  kept_count--;
  memmove(&kept[at], &kept[at + 1], (kept_count - at) * sizeof found);
  kept_total -= found.size;
  return found;
}

static void shrink_to(size_t limit) {
  while (kept_count && kept_total > limit) free(take(kept_count - 1).block);
}

void tf_keep_at_most(size_t bytes) {
  kept_limit = bytes;
  shrink_to(bytes);
}

size_t tf_kept_bytes(void) { return kept_total; }

// The elements of a block, after the note of its size.
static void *elements(void *block, size_t size) {
  *(size_t *)block = size;
  return (char *)block + HEADER;
}

// The bytes of a block that fill pages: its last page can hold what is not its own.
static size_t whole_pages(size_t size) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  return (size + HEADER) / page * page;
}

static void *fresh(size_t size) {
  void *block;
  if (size > SIZE_MAX - HEADER || posix_memalign(&block, HUGE_PAGE, size + HEADER)) return NULL;
#ifdef MADV_HUGEPAGE
  madvise(block, whole_pages(size), MADV_HUGEPAGE);
#endif
  return elements(block, size);
}

static void *allocate(void *Py_UNUSED(context), size_t size) {
  for (int at = 0; at < kept_count; at++)
    if (kept[at].size >= size && kept[at].size / 4 <= size / 3) {
      kept_block found = take(at);
      return elements(found.block, found.size);
    }
  return fresh(size);
}

static void release(void *Py_UNUSED(context), void *pointer, size_t Py_UNUSED(size)) {
  if (!pointer) return;
  void *block = (char *)pointer - HEADER;
  size_t size = *(size_t *)block;
  if (size > kept_limit) {
    free(block);
    return;
  }
  if (kept_count == MOST_KEPT) free(take(kept_count - 1).block);
#ifdef MADV_FREE
  if (size >= LEAST_LENT) madvise(block, whole_pages(size), MADV_FREE);
#endif
  memmove(&kept[1], &kept[0], kept_count * sizeof kept[0]);
  kept[0] = (kept_block){block, size};
  kept_count++;
  kept_total += size;
  shrink_to(kept_limit);
}

static void *allocate_zeros(void *context, size_t count, size_t size) {
  void *pointer = size && count > SIZE_MAX / size ? NULL : allocate(context, count * size);
  if (pointer) memset(pointer, 0, count * size);
  return pointer;
}

// For `ndarray.resize`.
static void *reallocate(void *context, void *pointer, size_t size) {
  void *moved = allocate(context, size);
  if (!pointer || !moved) return moved;
  size_t before = *(size_t *)((char *)pointer - HEADER);
  memcpy(moved, pointer, before < size ? before : size);
  release(context, pointer, before);
  return moved;
}

static PyDataMem_Handler keeping = {
    "tinyfuse_outputs",
    1,
    {NULL, allocate, allocate_zeros, reallocate, release},
};

static PyObject *plain_array(const array_type *type) {
  Py_INCREF(type->dtype);
  return PyArray_NewFromDescr(&PyArray_Type, type->dtype, type->dimensions, type->extents, NULL, NULL, 0, NULL);
}

// An array whose elements are not set.
PyObject *tf_new_array(const array_type *type) {
  if (type->bytes < LARGE || type->bytes > kept_limit) return plain_array(type);
  PyObject *usual = PyDataMem_SetHandler(handler);
  if (!usual) return NULL;
  PyObject *array = plain_array(type);
  PyObject *ours = PyDataMem_SetHandler(usual);
  Py_DECREF(usual);
  if (!ours) Py_CLEAR(array);
  Py_XDECREF(ours);
  return array;
}

int tf_prepare_memory(void) {
  if (handler) return 0;
  if (pthread_key_create(&scratch_key, drop_scratch)) {
    PyErr_SetString(PyExc_ImportError, "there is no room for one more key of a thread's memory");
    return -1;
  }
  handler = PyCapsule_New(&keeping, "mem_handler", NULL);
  return handler ? 0 : -1;
}
