// A pool of threads for loops whose iterations are independent.
//
// No thread exists before the first loop that is long enough. A loop is cut into equal shares, one
// for each thread, the caller among them: loops over the same rows, one after another and in call
// after call, so find them in the caches of the same processor. The share of a number is always
// begun by the worker of that number, if it has come by the time that the others are done; workers
// of higher numbers, there from a loop with more threads, sleep on. A share is taken in chunks, and
// who is done takes chunks of the others' shares; which thread runs which chunk must not matter. A
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

// What a thread has of the loop being run, in a cache line of its own, which it watches for the
// next one: threads meet in as few transfers of lines as can be.
typedef struct {
  _Alignas(CACHE_LINE) atomic_int state;
  atomic_long next; // where the next chunk of its share begins
  long end, chunk;
  tf_task task;
  void *const *buffers;
  int threads; // and shares
} share;

// The owner of the loop writes a share while it is free, all of them before offering one. The worker
// that has taken it makes it free again when there is nothing left to do; where none has, the owner
// does.
enum {
  FREE,
  OFFERED,
  TAKEN,
};

static share shares[MAX_THREADS]; // the first is the owner's

static atomic_flag owned = ATOMIC_FLAG_INIT;
static atomic_int owner_waits;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static int workers; // under ownership

// Where a worker sleeps, by its number; the caller's is 0.
static struct {
  _Alignas(CACHE_LINE) atomic_int asleep; // or about to be; set under the mutex
  pthread_cond_t offered;
} beds[MAX_THREADS];

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

static void run_share(const share *own, share *from) {
  while (atomic_load(&from->next) < from->end) {
    long begin = atomic_fetch_add(&from->next, own->chunk);
    if (begin < from->end) own->task(own->buffers, begin, smaller(begin + own->chunk, from->end));
  }
}

static void run_chunks(int number) {
  const share *own = &shares[number];
  for (int i = 0; i < own->threads; i++) run_share(own, &shares[(number + i) % own->threads]);
}

// Whether an offer becomes something else; where there is none its line is left where it is.
static int becomes(share *own, int state) {
  int offered = OFFERED;
  return atomic_load(&own->state) == OFFERED &&
         atomic_compare_exchange_strong(&own->state, &offered, state);
}

static void wait_for_offer(int number) {
  share *own = &shares[number];
  for (int i = 0; i < PAUSES; i++) {
    if (atomic_load(&own->state) == OFFERED) return;
    pause_processor();
  }
  pthread_mutex_lock(&mutex);
  atomic_store(&beds[number].asleep, 1);
  while (atomic_load(&own->state) != OFFERED) pthread_cond_wait(&beds[number].offered, &mutex);
  atomic_store(&beds[number].asleep, 0);
  pthread_mutex_unlock(&mutex);
}

static void finish(share *own) {
  atomic_store(&own->state, FREE);
  if (!atomic_load(&owner_waits)) return;
  pthread_mutex_lock(&mutex);
  pthread_cond_signal(&done);
  pthread_mutex_unlock(&mutex);
}

static void *worker(void *argument) {
  int number = (int)(intptr_t)argument;
  for (;;) {
    wait_for_offer(number);
    if (!becomes(&shares[number], TAKEN)) continue; // withdrawn
    run_chunks(number);
    finish(&shares[number]);
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
    intptr_t number = workers + 1;
    if (pthread_create(&thread, &attributes, worker, (void *)number)) break;
    workers++;
  }
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

// A worker that is not seen asleep here sees the offer before it sleeps.
static void offer(int number) {
  atomic_store(&shares[number].state, OFFERED);
  if (!atomic_load(&beds[number].asleep)) return;
  pthread_mutex_lock(&mutex);
  pthread_cond_signal(&beds[number].offered);
  pthread_mutex_unlock(&mutex);
}

static void wait_for_worker(share *own) {
  for (int i = 0; i < PAUSES; i++) {
    if (atomic_load(&own->state) == FREE) return;
    pause_processor();
  }
  pthread_mutex_lock(&mutex);
  atomic_store(&owner_waits, 1);
  while (atomic_load(&own->state) != FREE) pthread_cond_wait(&done, &mutex);
  atomic_store(&owner_waits, 0);
  pthread_mutex_unlock(&mutex);
}

static void run_parallel(int threads, tf_task task, void *const *buffers, long extent, long grain) {
  long grains = quotient_up(extent, grain);
  threads = (int)smaller(threads, grains);
  long chunk = grain * quotient_up(quotient_up(grains, threads), CHUNKS_PER_THREAD);
  for (int i = 0; i < threads; i++) {
    share *own = &shares[i];
    atomic_store_explicit(&own->next, grain * (grains * i / threads), memory_order_relaxed);
    own->end = smaller(grain * (grains * (i + 1) / threads), extent);
    own->chunk = chunk, own->task = task, own->buffers = buffers, own->threads = threads;
  }
  start_workers(threads - 1);
  int helpers = (int)smaller(workers, threads - 1);
  for (int i = 1; i <= helpers; i++) offer(i);
  run_chunks(0);
  for (int i = 1; i <= helpers; i++)
    if (!becomes(&shares[i], FREE)) wait_for_worker(&shares[i]);
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
  atomic_store(&owner_waits, 0);
  for (int i = 0; i < MAX_THREADS; i++) {
    atomic_store(&shares[i].state, FREE);
    atomic_store(&beds[i].asleep, 0);
    beds[i].offered = new_condition;
  }
  atomic_flag_clear(&owned);
}

static void prepare(void) {
  for (int i = 0; i <= MAX_THREADS; i++) pools[i] = (limited_pool){{run}, i};
  start_afresh();
  pthread_atfork(NULL, NULL, start_afresh);
}

// A pool of up to so many threads, the caller's among them. Safe to call from any thread.
const tf_pool *tf_pool_of(int threads) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, prepare);
  return &pools[smaller(larger(threads, 1), MAX_THREADS)].pool;
}
