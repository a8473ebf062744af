// An emulated GPU for tests: runs the blocks of a kernel one after another, their threads as fibers
// (cuda_fibers.h) in an order of choice (cuda_scheduling.h), and checks (cuda_checks.h) and counts
// (cuda_counters.h) what they do to memory. One launch at a time.

// -- barriers

static int tf_barrier(int line, int value) {
  if (!tf.waiting)
    tf.barrier_line = line, tf.barrier_sum = 0;
  else if (tf.barrier_line != line)
    tf_fail(line, "it waits at this barrier, and other threads of its block at that of line %d", tf.barrier_line);
  tf.barrier_sum += value != 0;
  tf.threads[tf.running].line = line;
  if (++tf.waiting == tf.count) {
    int all[TF_MOST_THREADS];
    for (int i = 0; i < tf.count; i++) {
      all[i] = i;
      tf.threads[i].value = tf.barrier_sum;
    }
    tf.waiting = 0;
    tf.barriers++;
    tf.epoch++;
    if (tf.counting)
      tf_count_pending();
    tf_make_all_ready(all, tf.count);
  }
  tf_wait(TF_AT_BARRIER);
  return tf.threads[tf.running].value;
}

// -- warps

// The lanes in `mask` know from now on what any of them knew.
static void tf_join_clocks(tf_warp *warp, unsigned mask) {
  unsigned joined[TF_WARP] = {0};
  for (int lane = 0; lane < TF_WARP; lane++)
    if (mask >> lane & 1)
      for (int i = 0; i < TF_WARP; i++)
        joined[i] = warp->clocks[lane][i] > joined[i] ? warp->clocks[lane][i] : joined[i];
  for (int lane = 0; lane < TF_WARP; lane++)
    if (mask >> lane & 1) {
      memcpy(warp->clocks[lane], joined, sizeof joined);
      warp->clocks[lane][lane]++;
    }
}

static void tf_release_lanes(tf_warp *warp, unsigned mask, int line) {
  tf_thread *threads = &tf.threads[tf.running / TF_WARP * TF_WARP];
  int ready[TF_WARP], count = 0;
  unsigned vote = 0;
  for (int lane = 0; lane < TF_WARP; lane++) {
    if (!(mask >> lane & 1))
      continue;
    if (threads[lane].line != line)
      tf_fail(line, "it waits for its warp here, and lane %d of it on line %d", lane, threads[lane].line);
    if (threads[lane].mask != mask)
      tf_fail(line, "it waits for the lanes %08x of its warp, and lane %d of them for %08x", mask, lane, threads[lane].mask);
    ready[count++] = tf.running / TF_WARP * TF_WARP + lane;
    vote |= (unsigned)(threads[lane].value != 0) << lane;
  }
  for (int i = 0; i < count; i++) {
    tf_thread *thread = &tf.threads[ready[i]];
    thread->received = threads[thread->source].given;
    thread->value = (int)vote;
  }
  warp->arrived &= ~mask;
  tf.warp_steps++;
  if (tf.checking && threads[machine.lane].orders)
    tf_join_clocks(warp, mask);
  tf_make_all_ready(ready, count);
}

// The running lane meets the others in `mask`.
static void tf_meet(unsigned mask, int line) {
  const int lane = machine.lane;
  tf_warp *warp = &tf.warps[tf.running / TF_WARP];
  tf_thread *self = &tf.threads[tf.running];
  if (!(mask >> lane & 1))
    tf_fail(line, "it is lane %d, which mask %08x does not name", lane, mask);
  if (mask & ~warp->alive)
    tf_fail(line, "mask %08x names lanes that do not exist or have left the kernel: there are %08x", mask, warp->alive);
  self->line = line;
  self->mask = mask;
  warp->arrived |= 1u << lane;
  if ((warp->arrived & mask) == mask)
    tf_release_lanes(warp, mask, line);
  tf_wait(TF_AT_WARP);
}

static unsigned long tf_shuffle(unsigned mask, unsigned long value, int source, int line) {
  tf_thread *self = &tf.threads[tf.running];
  if (source < 0 || source >= TF_WARP || !(mask >> source & 1))
    tf_fail(line, "it asks for the value of lane %d, which mask %08x does not name", source, mask);
  self->given = value;
  self->source = source;
  tf_meet(mask, line);
  return self->received;
}

static void tf_warp_barrier(unsigned mask, int line) {
  tf_thread *self = &tf.threads[tf.running];
  self->source = machine.lane;
  self->orders = 1;
  tf_meet(mask, line);
  self->orders = 0;
}

static unsigned tf_ballot(unsigned mask, int value, int line) {
  tf_thread *self = &tf.threads[tf.running];
  self->value = value;
  self->source = machine.lane;
  tf_meet(mask, line);
  return (unsigned)self->value;
}

static const char *tf_exchange(const void *given, int bytes, int line) {
  tf_thread *self = &tf.threads[tf.running];
  char (*slots)[64] = tf.warps[tf.running / TF_WARP].slots[self->parity ^= 1];
  memcpy(slots[machine.lane], given, (size_t)bytes);
  self->source = machine.lane;
  tf_meet(0xffffffffu, line);
  return slots[0];
}

// -- shared memory

enum { TF_MOST_SHARED = 256 << 10,
       TF_MOST_ARRAYS = 64,
       TF_SHARED_ALIGNMENT = 16 };

static struct {
  char memory[TF_MOST_SHARED] __attribute__((aligned(256)));
  size_t used;
  tf_memory arrays[TF_MOST_ARRAYS];
  int count;
  unsigned long most; // bytes, over all launches since the report was last asked for
} tf_shared;

// NaN for halves, floats and doubles alike.
static void tf_poison(char *data, size_t bytes) {
  const unsigned short nan = 0x7fff;
  for (size_t at = 0; at + 2 <= bytes; at += 2) memcpy(data + at, &nan, 2);
}

static tf_memory *tf_new_shared(size_t bytes, size_t granule) {
  if (tf_shared.count == TF_MOST_ARRAYS || tf_shared.used + bytes + TF_SHARED_ALIGNMENT > TF_MOST_SHARED)
    return 0;
  tf_memory *memory = &tf_shared.arrays[tf_shared.count++];
  *memory = (tf_memory){.data = tf_shared.memory + tf_shared.used, .bytes = bytes, .granule = granule, .shared = 1};
  tf_shared.used += (bytes + TF_SHARED_ALIGNMENT - 1) / TF_SHARED_ALIGNMENT * TF_SHARED_ALIGNMENT;
  tf_shared.most = tf_shared.used > tf_shared.most ? tf_shared.used : tf_shared.most;
  tf_poison(memory->data, bytes);
  if (tf.checking)
    memory->shadows = calloc(bytes / granule + 1, sizeof(tf_shadow));
  return memory;
}

static void *tf_place(tf_array *array, size_t bytes) {
  if (array->placed != tf.launch) {
    array->memory = tf_new_shared(bytes, array->element);
    if (!array->memory)
      tf_fail(0, "there is no shared memory for %s: it takes %lu bytes", array->name, (unsigned long)bytes);
    array->data = array->memory->data;
    array->placed = tf.launch;
  }
  return array->data;
}

static void tf_drop_shared(void) {
  for (int i = 0; i < tf_shared.count; i++) free(tf_shared.arrays[i].shadows);
  tf_shared.count = 0;
  tf_shared.used = 0;
}

// -- launches

static void tf_release(const tf_array *array) {
  tf_memory *memory = array->memory;
  if (memory->written)
    memset(memory->written, 1, memory->bytes);
  free(memory->shadows);
  memory->shadows = 0;
}

static void tf_fault(int line, const char *what) { tf_fail(line, "%s", what); }

static tf_machine machine = {
    .barrier = tf_barrier,
    .warp_barrier = tf_warp_barrier,
    .shuffle = tf_shuffle,
    .ballot = tf_ballot,
    .exchange = tf_exchange,
    .place = tf_place,
    .access = tf_access,
    .outside = tf_outside,
    .release = tf_release,
    .fault = tf_fault,
};

tf_machine *tf_cuda_machine(void) { return &machine; }

static void tf_start_block(unsigned number) {
  tf.block = number;
  machine.block = tf_index_of(number, machine.blocks);
  for (int i = 0; i < tf_shared.count; i++) tf_poison(tf_shared.arrays[i].data, tf_shared.arrays[i].bytes);
  tf.alive = tf.count;
  tf.waiting = tf.ready_count = tf.ready_first = 0;
  tf.first_epoch = machine.block_turn = ++tf.epoch;
  memset(tf.threads, 0, (size_t)tf.count * sizeof tf.threads[0]);
  int all[TF_MOST_THREADS];
  for (int i = 0; i < tf.count; i++) all[i] = i;
  tf_make_all_ready(all, tf.count);
  for (int i = 0; i * TF_WARP < tf.count; i++) {
    tf_warp *warp = &tf.warps[i];
    const int lanes = tf.count - i * TF_WARP;
    warp->arrived = 0;
    warp->alive = lanes >= TF_WARP ? ~0u : (1u << lanes) - 1;
    memset(warp->clocks, 0, sizeof warp->clocks);
    for (int lane = 0; lane < TF_WARP; lane++) warp->clocks[lane][lane] = 1;
  }
  tf_reset_fibers();
}

static void tf_run_block(unsigned number) {
  tf_start_block(number);
  tf_run_thread(tf_next_ready());
  tf_fiber *first = tf_new_fiber(tf_fiber_main);
  if (!first) {
    snprintf(tf.message, sizeof tf.message, "kernel %.100s: there is no memory for a stack", tf.kernel->name);
    return;
  }
  tf_resume(&tf_fibers.outside, first);
  if (tf.counting)
    tf_count_pending();
}

// The k-th block to run: forward, in reverse, or in an order that a step prime to the count makes.
static unsigned tf_block_at(unsigned k, unsigned count, unsigned long start) {
  if (tf.order == TF_REVERSE)
    return count - 1 - k;
  if (tf.order != TF_RANDOM)
    return k;
  const unsigned long step = 0x7fffffff; // a prime
  return (unsigned)((k * (step % count ? step : 1) + start % count) % count);
}

static tf_memory *tf_memory_of(const char *address, tf_memory *memories, int count) {
  for (int i = 0; i < count; i++)
    if (address >= memories[i].data && address < memories[i].data + memories[i].bytes)
      return &memories[i];
  return 0;
}

// Says what each pointer among the arguments points to; whether all of them point to something.
static int tf_find_arrays(tf_array *arrays, tf_array **places, tf_memory *memories, int count) {
  static tf_memory nothing = {.granule = 1};
  for (int i = 0; i < tf.kernel->parameters; i++) {
    const tf_parameter *parameter = &tf.kernel->parameter[i];
    places[i] = &arrays[i];
    if (!parameter->element)
      continue;
    char *address = *(char *const *)tf.arguments[i];
    tf_memory *memory = address ? tf_memory_of(address, memories, count) : &nothing;
    if (!memory) {
      snprintf(tf.message, sizeof tf.message, "kernel %.100s: argument %s points to no memory of the device", tf.kernel->name, parameter->name);
      return 0;
    }
    arrays[i] = (tf_array){.name = parameter->name, .element = parameter->element, .data = address, .memory = memory};
    memory->granule = parameter->element < memory->granule ? parameter->element : memory->granule;
  }
  return 1;
}

// Shadows for what a kernel may write.
static void tf_make_shadows(const tf_array *arrays) {
  for (int i = 0; i < tf.kernel->parameters; i++) {
    tf_memory *memory = arrays[i].memory;
    if (memory && !memory->shadows && !tf.kernel->parameter[i].constant && !memory->read_only)
      memory->shadows = calloc(memory->bytes / memory->granule + 1, sizeof(tf_shadow));
  }
}

// Why a GPU would refuse the launch; null where it would not.
static const char *tf_refusal(tf_index blocks, tf_index threads, size_t shared) {
  const unsigned long count = (unsigned long)threads.x * threads.y * threads.z;
  if (!count || count > TF_MOST_THREADS || threads.z > 64)
    return "a block has 1 to 1024 threads, no more than 64 of them along z";
  if (!blocks.x || !blocks.y || !blocks.z || blocks.x > 0x7fffffff || blocks.y > 65535 || blocks.z > 65535)
    return "a grid has 1 to 2147483647 blocks along x, to 65535 along y and z";
  if (tf.kernel->most_threads && count > (unsigned long)tf.kernel->most_threads)
    return "its blocks have more threads than its launch bound says";
  if (shared > 227 << 10)
    return "a block has 227 KiB of shared memory at most";
  return 0;
}

// What a launch is: as cuLaunchKernel takes it, with the device's memory and how to go about it.
typedef struct {
  const tf_kernel *kernel;
  tf_index blocks, threads;
  size_t shared;
  void *const *arguments;
  tf_memory *memories;
  int memory_count;
  int order, checking, counting;
  unsigned long seed;
} tf_launch;

static void tf_run_blocks(const tf_launch *launch) {
  tf_array arrays[launch->kernel->parameters + 1], *places[launch->kernel->parameters + 1];
  memset(arrays, 0, sizeof arrays);
  tf.arrays = places;
  if (launch->checking) {
    for (int i = 0; i < launch->memory_count; i++) launch->memories[i].granule = 16;
    if (!tf_find_arrays(arrays, places, launch->memories, launch->memory_count))
      return;
    tf_make_shadows(arrays);
  }
  machine.dynamic = tf_new_shared(launch->shared, 1);
  const unsigned count = machine.blocks.x * machine.blocks.y * machine.blocks.z;
  const unsigned long start = tf.random;
  for (unsigned k = 0; k < count && !tf.message[0]; k++) tf_run_block(tf_block_at(k, count, start));
  tf_drop_shared();
  for (int i = 0; i < launch->memory_count; i++) {
    free(launch->memories[i].shadows);
    launch->memories[i].shadows = 0;
  }
}

// Runs a kernel; null, or what is wrong with it, valid until the next launch.
const char *tf_cuda_launch(const tf_launch *launch) {
  tf.message[0] = 0;
  tf.kernel = launch->kernel;
  tf.arguments = launch->arguments;
  tf.order = launch->order;
  tf.random = launch->seed * 0x9e3779b97f4a7c15ul + 1;
  tf.checking = launch->checking;
  tf.counting = launch->counting;
  tf.launch++;
  tf.running = -1;
  const char *refusal = tf_refusal(launch->blocks, launch->threads, launch->shared);
  if (refusal) {
    snprintf(tf.message, sizeof tf.message, "kernel %.100s cannot be launched: %s", tf.kernel->name, refusal);
    return tf.message;
  }
  machine.blocks = launch->blocks;
  machine.threads = launch->threads;
  tf.count = (int)(launch->threads.x * launch->threads.y * launch->threads.z);
  tf_run_blocks(launch);
  return tf.message[0] ? tf.message : 0;
}

// -- reports

typedef struct {
  unsigned long barriers, warp_steps, switches, shared;
  int sites;
  const tf_site *site;
} tf_report;

// What the launches since `tf_cuda_reset` did.
void tf_cuda_report(tf_report *report) {
  *report = (tf_report){tf.barriers, tf.warp_steps, tf_fibers.switches, tf_shared.most, tf_site_count, tf_sites};
}

void tf_cuda_reset(void) {
  tf_reset_counters();
  tf.barriers = tf.warp_steps = tf_fibers.switches = tf_shared.most = 0;
}
