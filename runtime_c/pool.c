// A pool of threads for loops whose iterations are independent.
//
// No thread exists before the first loop that is long enough. A loop is cut into equal shares, one
// for each thread, the caller among them: loops over the same rows, one after another and in call
// after call, so find them in the caches of the same processor. The share of a number is always
// begun by the worker of that number; workers of higher numbers, there from a loop with more
// threads, sleep on. A share is taken in chunks, and who is done takes chunks of the others'
// shares; which thread runs which chunk must not matter. A
// caller that finds the pool busy, that is itself inside such a loop, or that is not the process's
// main thread, runs its whole loop by itself. A forked child has a fresh pool.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/syscall.h>
#endif

// As in entry.h.
typedef struct tf_pool tf_pool;
typedef void (*tf_task)(void *const *buffers, long begin, long end);
struct tf_pool {
  void (*run)(const tf_pool *pool, tf_task task, void *const *buffers, long extent, long grain);
};

enum {
  MAX_THREADS = 256,
  CACHE_LINE = 64,
  CHUNKS_PER_THREAD = 4, // so that a thread that is held up does not hold up the others
  PAUSES = 2000,         // spun before sleeping, some tens of microseconds
  STACK_BYTES = 8 << 20, // as the main thread's; other systems give far less
};

// What is handed out: a pool that uses up to so many threads. All of them share the workers.
typedef struct {
  tf_pool pool;
  int threads;
} limited_pool;

static limited_pool pools[MAX_THREADS + 1];

// What a thread begins with, in a cache line of its own.
typedef struct {
  _Alignas(CACHE_LINE) atomic_long next; // where the next chunk begins
  long end;
} share;

static share shares[MAX_THREADS];

// The loop being run. Its fields are written by its owner while `open` is 0 and `active` is 0, and
// read by a worker only between counting itself in `active` and out again, once it saw `open`.
static struct {
  tf_task task;
  void *const *buffers;
  long chunk;
  int threads;       // and shares
  atomic_int open;   // whether workers may join
  atomic_int active; // workers that may be looking at the fields
} job;

static atomic_flag owned = ATOMIC_FLAG_INIT;
static atomic_ulong generation; // of jobs; changed under the mutex
static atomic_int owner_waits;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static int workers; // under ownership

// A worker: its number, where the caller is 0, the generation when it started, and where it sleeps.
typedef struct {
  int number;
  unsigned long seen;
  int asleep; // under the mutex
  pthread_cond_t work;
} recruit;

static recruit recruits[MAX_THREADS];

static long smaller(long a, long b) { return a < b ? a : b; }
static long larger(long a, long b) { return a > b ? a : b; }
static long quotient_up(long a, long b) { return a / b + (a % b != 0); }

static void pause_processor(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

static int on_main_thread(void) {
#ifdef __linux__
  static _Thread_local pid_t asked_in; // a fork makes any thread the main one
  static _Thread_local int answer;
  pid_t process = getpid();
  if (asked_in != process) {
    asked_in = process;
    answer = syscall(SYS_gettid) == process;
  }
  return answer;
#else
  return pthread_main_np();
#endif
}

static void run_share(share *own) {
  while (atomic_load(&own->next) < own->end) {
    long begin = atomic_fetch_add(&own->next, job.chunk);
    if (begin < own->end) job.task(job.buffers, begin, smaller(begin + job.chunk, own->end));
  }
}

static void run_chunks(int own) {
  for (int i = 0; i < job.threads; i++) run_share(&shares[(own + i) % job.threads]);
}

static void join_job(int number) {
  atomic_fetch_add(&job.active, 1);
  if (atomic_load(&job.open) && number < job.threads) run_chunks(number);
  if (atomic_fetch_sub(&job.active, 1) == 1 && atomic_load(&owner_waits)) {
    pthread_mutex_lock(&mutex);
    pthread_cond_signal(&done);
    pthread_mutex_unlock(&mutex);
  }
}

static unsigned long next_generation(recruit *self, unsigned long seen) {
  for (int i = 0; i < PAUSES; i++) {
    unsigned long now = atomic_load(&generation);
    if (now != seen) return now;
    pause_processor();
  }
  pthread_mutex_lock(&mutex);
  self->asleep = 1;
  while (atomic_load(&generation) == seen) pthread_cond_wait(&self->work, &mutex);
  self->asleep = 0;
  pthread_mutex_unlock(&mutex);
  return atomic_load(&generation);
}

static void *worker(void *argument) {
  recruit *self = argument;
  unsigned long seen = self->seen;
  for (;;) {
    seen = next_generation(self, seen);
    join_job(self->number);
  }
  return NULL;
}

// Signals go to the threads that Python knows. A worker that cannot be had is done without.
static void start_workers(int wanted) {
  if (workers >= wanted) return;
  pthread_attr_t attributes;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_t thread;
  while (workers < wanted) {
    recruit *next = &recruits[workers];
    *next = (recruit){workers + 1, atomic_load(&generation), 0, PTHREAD_COND_INITIALIZER};
    if (pthread_create(&thread, &attributes, worker, next)) break;
    workers++;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void announce_job(int helpers) {
  pthread_mutex_lock(&mutex);
  atomic_fetch_add(&generation, 1);
  for (int i = 0; i < smaller(workers, helpers); i++) {
    if (recruits[i].asleep) pthread_cond_signal(&recruits[i].work);
  }
  pthread_mutex_unlock(&mutex);
}

static void wait_for_workers(void) {
  for (int i = 0; i < PAUSES; i++) {
    if (!atomic_load(&job.active)) return;
    pause_processor();
  }
  pthread_mutex_lock(&mutex);
  atomic_store(&owner_waits, 1);
  while (atomic_load(&job.active)) pthread_cond_wait(&done, &mutex);
  atomic_store(&owner_waits, 0);
  pthread_mutex_unlock(&mutex);
}

static void run_parallel(int threads, tf_task task, void *const *buffers, long extent, long grain) {
  long grains = quotient_up(extent, grain);
  job.task = task;
  job.buffers = buffers;
  job.threads = (int)smaller(threads, grains);
  job.chunk = grain * quotient_up(quotient_up(grains, job.threads), CHUNKS_PER_THREAD);
  for (int i = 0; i < job.threads; i++) {
    atomic_store(&shares[i].next, grain * (grains * i / job.threads));
    shares[i].end = smaller(grain * (grains * (i + 1) / job.threads), extent);
  }
  int helpers = job.threads - 1;
  start_workers(helpers);
  atomic_store(&job.open, 1);
  announce_job(helpers);
  run_chunks(0);
  atomic_store(&job.open, 0);
  wait_for_workers();
}

static void run(const tf_pool *pool, tf_task task, void *const *buffers, long extent, long grain) {
  int threads = ((const limited_pool *)pool)->threads;
  grain = larger(grain, 1);
  if (extent <= 0) return;
  if (threads < 2 || extent <= grain || !on_main_thread() || atomic_flag_test_and_set(&owned)) {
    task(buffers, 0, extent);
    return;
  }
  run_parallel(threads, task, buffers, extent, grain);
  atomic_flag_clear(&owned);
}

// The child of a fork has one thread; whatever the others were at is gone.
static void start_afresh(void) {
  static const pthread_mutex_t new_mutex = PTHREAD_MUTEX_INITIALIZER;
  static const pthread_cond_t new_condition = PTHREAD_COND_INITIALIZER;
  mutex = new_mutex;
  done = new_condition;
  workers = 0;
  atomic_store(&generation, 0);
  atomic_store(&owner_waits, 0);
  atomic_store(&job.open, 0);
  atomic_store(&job.active, 0);
  atomic_flag_clear(&owned);
}

static void prepare(void) {
  for (int i = 0; i <= MAX_THREADS; i++) pools[i] = (limited_pool){{run}, i};
  pthread_atfork(NULL, NULL, start_afresh);
}

// A pool of up to so many threads, the caller's among them. Safe to call from any thread.
const tf_pool *tf_pool_of(int threads) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, prepare);
  return &pools[smaller(larger(threads, 1), MAX_THREADS)].pool;
}
