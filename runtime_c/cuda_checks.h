// What every access to memory is checked for: that it lies within, is aligned, reads what has a
// value, and is ordered with those of other threads by a barrier. The orders are those of the
// program, not of this run: a race is found also where it did no harm.

// An access: `clock` is the thread's own within its warp, `epoch` is 0 where there was none.
typedef struct {
  unsigned epoch, clock, line, block;
  unsigned short thread;
  unsigned short kind;
} tf_stamp;

// Of each granule the last write and the reads that matter for a later write: one of an earlier
// block, and two since the last barrier, of different threads.
struct tf_shadow {
  tf_stamp write, earlier, read[2];
};

// By kinds of accesses.
static const char *const tf_doing[] = {"it reads", "it writes", "it adds to", "it copies to"};
static const char *const tf_done[] = {"read", "wrote", "added to", "copied to"};

static tf_stamp tf_now(int line, int kind) {
  const unsigned thread = tf.running, lane = thread % TF_WARP;
  const unsigned clock = tf.warps[thread / TF_WARP].clocks[lane][lane];
  return (tf_stamp){tf.epoch, clock, line, tf.block, thread, kind};
}

// Whether what the running thread does now comes after that.
static int tf_is_ordered(const tf_stamp *before) {
  if (!before->epoch)
    return 1;
  if (before->epoch < tf.first_epoch)
    return 0; // another block's
  if (before->epoch < tf.epoch || before->thread == tf.running)
    return 1;
  if (before->thread / TF_WARP != tf.running / TF_WARP)
    return 0;
  const tf_warp *warp = &tf.warps[tf.running / TF_WARP];
  return warp->clocks[tf.running % TF_WARP][before->thread % TF_WARP] >= before->clock;
}

// The element at an address, as it is written in the text: red[3], tile[2][17].
static const char *tf_element(const tf_array *array, const char *address) {
  static char name[160];
  const long offset = address - array->data, element = (long)array->element;
  long index = offset >= 0 ? offset / element : -((element - 1 - offset) / element);
  int used = snprintf(name, 64, "%s", array->name);
  if (array->rank < 2) {
    snprintf(name + used, sizeof name - used, "[%ld]", index);
    return name;
  }
  long below = 1;
  for (int axis = 1; axis < array->rank; axis++) below *= array->extents[axis];
  for (int axis = 0; axis < array->rank; axis++) {
    used += snprintf(name + used, sizeof name - used, "[%ld]", index / below);
    index %= below;
    below /= axis + 1 < array->rank ? array->extents[axis + 1] : 1;
  }
  return name;
}

static void tf_race(const tf_array *array, const char *address, const char *doing, const tf_stamp *before, const char *done, int line) {
  if (before->epoch < tf.first_epoch) {
    const tf_index block = tf_index_of(before->block, machine.blocks);
    tf_fail(line, "%s %s, which block (%u,%u,%u) %s on line %u: no barrier orders blocks", doing, tf_element(array, address), block.x, block.y, block.z, done, before->line);
  }
  tf_fail(line, "%s %s, which %s %s on line %u, with no barrier between", doing, tf_element(array, address), tf_thread_name(before->thread), done, before->line);
}

static void tf_note_read(tf_shadow *shadow, int line) {
  const tf_stamp now = tf_now(line, TF_READ);
  if (shadow->read[0].epoch && shadow->read[0].epoch < tf.first_epoch && !shadow->earlier.epoch)
    shadow->earlier = shadow->read[0];
  const int keep_first = shadow->read[0].epoch >= tf.first_epoch && !tf_is_ordered(&shadow->read[0]);
  shadow->read[keep_first] = now; // what is ordered before it matters no more
}

static void tf_check_write(const tf_array *array, const char *address, tf_shadow *shadow, int kind, int line) {
  const tf_stamp *reads[] = {&shadow->earlier, &shadow->read[0], &shadow->read[1]};
  for (int i = 0; i < 3; i++)
    if (!tf_is_ordered(reads[i]))
      tf_race(array, address, tf_doing[kind], reads[i], tf_done[TF_READ], line);
}

// Checks and notes an access to the granule of `address`.
static void tf_check_order(const tf_array *array, const char *address, tf_shadow *shadow, int kind, int line) {
  const tf_memory *memory = array->memory;
  if (memory->shared && shadow->write.epoch < tf.first_epoch)
    memset(shadow, 0, sizeof *shadow); // an earlier block's
  if ((kind == TF_READ || kind == TF_ATOMIC) && memory->shared && !shadow->write.epoch)
    tf_fail(line, "it reads %s, which has no value yet", tf_element(array, address));
  const int both_atomic = kind == TF_ATOMIC && shadow->write.kind == TF_ATOMIC;
  if (!both_atomic && !tf_is_ordered(&shadow->write))
    tf_race(array, address, tf_doing[kind], &shadow->write, tf_done[shadow->write.kind], line);
  if (shadow->write.kind == TF_COPY && kind != TF_WRITE)
    tf_fail(line, "%s %s, which a copy writes that %s began on line %u and has not waited for", tf_doing[kind], tf_element(array, address), tf_thread_name(shadow->write.thread), shadow->write.line);
  if (kind == TF_READ)
    tf_note_read(shadow, line);
  else {
    tf_check_write(array, address, shadow, kind, line);
    shadow->write = tf_now(line, kind);
    shadow->read[0].epoch = shadow->read[1].epoch = 0;
  }
}

static void tf_check_place(const tf_array *array, const char *address, int bytes, int kind, int line) {
  const tf_memory *memory = array->memory;
  const char *end = memory->data + memory->bytes;
  if (address < memory->data || address + bytes > end)
    tf_fail(line, "%s %s (%d bytes), which is outside: there are %ld elements", tf_doing[kind], tf_element(array, address), bytes, (long)((end - array->data) / (long)array->element));
  if ((unsigned long)address % (unsigned long)bytes)
    tf_fail(line, "%s %d bytes at %s, which is not aligned to as many", tf_doing[kind], bytes, tf_element(array, address));
  if (kind != TF_READ && memory->read_only)
    tf_fail(line, "%s %s, which is an input", tf_doing[kind], tf_element(array, address));
}

static void tf_check_value(const tf_array *array, const char *address, int bytes, int kind, int line) {
  unsigned char *written = array->memory->written;
  if (!written)
    return;
  written += address - array->memory->data;
  if (kind == TF_WRITE || kind == TF_COPY)
    memset(written, 1, bytes);
  else if (memchr(written, 0, bytes))
    tf_fail(line, "it reads %s, which has no value yet", tf_element(array, address));
}

static void tf_access(const tf_array *array, const void *place, int bytes, int kind, int line) {
  const char *address = place;
  const tf_memory *memory = array->memory;
  tf_check_place(array, address, bytes, kind, line);
  tf_check_value(array, address, bytes, kind, line);
  if (tf.counting)
    tf_count(array, address, bytes, kind, line);
  if (!memory->shadows)
    return;
  const size_t offset = address - memory->data, granule = memory->granule;
  for (size_t at = offset / granule; at <= (offset + bytes - 1) / granule; at++)
    tf_check_order(array, at * granule < offset ? address : memory->data + at * granule, &memory->shadows[at], kind, line);
}

static void tf_outside(const tf_array *array, int axis, long index, int line) {
  char shape[128];
  int used = snprintf(shape, 64, "%s", array->name);
  for (int i = 0; i < array->rank; i++)
    used += snprintf(shape + used, sizeof shape - used, "[%ld]", array->extents[i]);
  tf_fail(line, "index %ld of axis %d is outside shared array %s", index, axis, shape);
}
