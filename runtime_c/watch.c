// A watch for entries: for each moment it notes the time, and what counters have counted until then.
//
// The time is noted before and after the counters are read, so that reading them is in no kernel's
// time. A moment that comes again is added, so that differences are sums; they may wrap around. All is in one array of 64-bit words, which Python makes and looks through.
#define _GNU_SOURCE
#include <stdint.h>
#include <time.h>
#include <unistd.h>

// As in watch.h.
typedef struct tf_watch tf_watch;
struct tf_watch {
  void (*moment)(tf_watch *watch, long number);
};

// words: for each file its descriptor and the place of its sum; then for each moment the time
// before, the sums, and the time after.
typedef struct {
  tf_watch watch;
  int64_t files, sums;
  int64_t words[];
} noting_watch;

static int64_t nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

// A counter that shared the processor's with others has counted for a part of the time.
static int64_t counted(int file) {
  int64_t found[3]; // the count, how long it was wanted, how long it counted
  if (read(file, found, sizeof found) != sizeof found || found[2] <= 0) return 0;
  return found[1] == found[2] ? found[0] : (int64_t)((double)found[0] * found[1] / found[2]);
}

void tf_note(tf_watch *watch, long number) {
  noting_watch *noting = (noting_watch *)watch;
  const int64_t *files = noting->words;
  int64_t *noted = noting->words + 2 * noting->files + number * (noting->sums + 2);
  noted[0] += nanoseconds();
  for (int64_t i = 0; i < noting->files; i++)
    noted[1 + files[2 * i + 1]] += counted((int)files[2 * i]);
  noted[1 + noting->sums] += nanoseconds();
}
