// Which of a block's threads runs next. A kernel that is right gives the same in every order; one
// that lacks a barrier does not in most of them.

enum tf_order { TF_FORWARD,
                TF_REVERSE,
                TF_RANDOM,
                TF_BREADTH };
enum tf_state { TF_NEW,
                TF_RUNNING,
                TF_AT_BARRIER,
                TF_AT_WARP,
                TF_DONE };
enum { TF_WARP = 32,
       TF_MOST_WARPS = TF_MOST_THREADS / TF_WARP };

typedef struct {
  enum tf_state state;
  int line;      // where it waits
  unsigned mask; // of the lanes that it waits for
  int value;     // what it came to a barrier or a vote with
  int parity;    // of its exchanges
  int source;    // the lane whose value it wants
  int orders;    // it waits at a barrier of its warp, not for a value
  unsigned long given, received;
  tf_fiber *fiber;
} tf_thread;

typedef struct {
  unsigned arrived, alive;
  // What each lane knows of each lane's clock: it is ordered after what was done up to then.
  unsigned clocks[TF_WARP][TF_WARP];
  char slots[2][TF_WARP][64];
} tf_warp;

static tf_machine machine;

static struct {
  const tf_kernel *kernel;
  void *const *arguments;
  tf_array **arrays;
  tf_thread threads[TF_MOST_THREADS];
  tf_warp warps[TF_MOST_WARPS];
  int count, alive, running; // threads; `running` is the number of the one that runs, or -1
  unsigned block;            // its number within the grid
  int waiting, barrier_line, barrier_sum;
  unsigned epoch, first_epoch; // barriers so far, over all blocks; at the start of this one
  unsigned launch;
  enum tf_order order;
  unsigned long random;
  int checking, counting;
  // Threads that can run: the last one is next, or, breadth first, the one that came first.
  int ready[TF_MOST_THREADS];
  int ready_first, ready_count;
  unsigned long barriers, warp_steps;
  char message[1024];
} tf;

static unsigned long tf_random(void) {
  tf.random ^= tf.random << 13;
  tf.random ^= tf.random >> 7;
  tf.random ^= tf.random << 17;
  return tf.random;
}

static tf_index tf_index_of(unsigned number, tf_index extents) {
  const unsigned row = number / extents.x;
  return (tf_index){number % extents.x, row % extents.y, row / extents.y};
}

static void tf_make_ready(int thread) {
  tf.ready[(tf.ready_first + tf.ready_count++) % TF_MOST_THREADS] = thread;
}

// Threads that can go on, in the order of their numbers; this changes the order in `threads`.
static void tf_make_all_ready(int *threads, int count) {
  if (tf.order == TF_RANDOM)
    for (int i = count - 1; i > 0; i--) {
      const int other = (int)(tf_random() % (unsigned long)(i + 1)), thread = threads[i];
      threads[i] = threads[other];
      threads[other] = thread;
    }
  const int from_last = tf.order == TF_FORWARD || tf.order == TF_RANDOM;
  for (int i = 0; i < count; i++)
    tf_make_ready(threads[from_last ? count - 1 - i : i]);
}

static int tf_next_ready(void) {
  if (!tf.ready_count)
    return -1;
  if (tf.order != TF_BREADTH)
    return tf.ready[(tf.ready_first + --tf.ready_count) % TF_MOST_THREADS];
  const int thread = tf.ready[tf.ready_first];
  tf.ready_first = (tf.ready_first + 1) % TF_MOST_THREADS;
  tf.ready_count--;
  return thread;
}

// -- faults

static int tf_write_index(char *to, size_t room, const char *word, tf_index index) {
  return snprintf(to, room, "%s (%u,%u,%u)", word, index.x, index.y, index.z);
}

// Notes the fault, with the place of the running thread, and ends the launch.
__attribute__((noreturn, format(printf, 2, 3))) static void tf_fail(int line, const char *format, ...) {
  char *to = tf.message;
  const char *end = to + sizeof tf.message;
  to += snprintf(to, end - to, "kernel %.100s, ", tf.kernel->name);
  to += tf_write_index(to, end - to, "block", machine.block);
  to += tf_write_index(to, end - to, ", thread", machine.thread);
  to += line ? snprintf(to, end - to, ", line %d: ", line) : snprintf(to, end - to, ": ");
  va_list words;
  va_start(words, format);
  vsnprintf(to, end - to, format, words);
  va_end(words);
  tf_leave_fibers();
  __builtin_unreachable();
}

static const char *tf_thread_name(int number) {
  static char names[2][48]; // a message names two threads at most
  static int turn;
  char *name = names[turn ^= 1];
  tf_write_index(name, sizeof names[0], "thread", tf_index_of(number, machine.threads));
  return name;
}

// Nobody can go on: says of one that waits what it waits for, and what another one did instead.
static void tf_stuck(void) {
  int waits = -1, left = -1;
  for (int i = tf.count - 1; i >= 0; i--) {
    const enum tf_state state = tf.threads[i].state;
    if (state == TF_DONE)
      left = i;
    else if (waits < 0 || state == TF_AT_WARP || tf.threads[waits].state != TF_AT_WARP)
      waits = i;
  }
  const tf_thread *thread = &tf.threads[waits];
  machine.thread = tf_index_of(waits, machine.threads);
  const tf_warp *warp = &tf.warps[waits / TF_WARP];
  if (thread->state == TF_AT_WARP)
    tf_fail(thread->line, "it waits for lanes of its warp that do not come: mask %08x, arrived %08x", thread->mask, warp->arrived);
  tf_fail(thread->line, "it waits at a barrier, and %s has left the kernel", tf_thread_name(left));
}

// -- switches

static void tf_run_thread(int number) {
  tf.running = number;
  machine.thread = tf_index_of(number, machine.threads);
  machine.lane = number % TF_WARP;
  tf.threads[number].state = TF_RUNNING;
}

static void tf_fiber_main(void);

static tf_fiber *tf_fiber_of(tf_thread *thread) {
  if (!thread->fiber)
    thread->fiber = tf_new_fiber(tf_fiber_main);
  if (!thread->fiber)
    tf_fail(0, "there is no memory for the stacks of %d threads", tf.count);
  return thread->fiber;
}

// The running thread waits; returns when it may go on.
static void tf_wait(enum tf_state state) {
  const int self = tf.running;
  tf.threads[self].state = state;
  const int next = tf_next_ready();
  if (next < 0)
    tf_stuck();
  if (next != self) {
    tf_fiber *mine = tf_fibers.current, *other = tf_fiber_of(&tf.threads[next]);
    tf_run_thread(next);
    tf_resume(&mine->stack, other);
  } else
    tf_run_thread(self);
}

// Where every fiber begins: runs threads to their ends, and makes way for those that have waited.
static void tf_fiber_main(void) {
  for (;;) {
    tf_thread *thread = &tf.threads[tf.running];
    thread->fiber = tf_fibers.current;
    tf.kernel->run(tf.arguments, tf.arrays);
    thread->state = TF_DONE;
    tf.warps[tf.running / TF_WARP].alive &= ~(1u << machine.lane);
    tf.alive--;
    const int next = tf_next_ready();
    if (next < 0) {
      if (tf.alive)
        tf_stuck();
      tf_leave_fibers();
    }
    tf_fiber *other = tf.threads[next].fiber;
    tf_run_thread(next);
    if (other) {
      tf_fiber *mine = tf_fibers.current;
      tf_fibers.idle[tf_fibers.idle_count++] = mine;
      tf_resume(&mine->stack, other); // whoever takes it from the idle ones says which thread runs
    }
  }
}
