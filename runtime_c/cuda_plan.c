// Launches of a whole program in one call: the steps of a plan, put into a stream.

typedef unsigned long CUdeviceptr;

// The driver's functions that a plan calls.
typedef struct {
  int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra);
  int (*fill)(CUdeviceptr to, unsigned value, unsigned long count, void *stream);
  int (*fetch)(void *to, CUdeviceptr from, unsigned long bytes, void *stream);
  int (*wait)(void *stream);
} tf_driver;

enum { PLAN_LAUNCH,
       PLAN_REPEAT,
       PLAN_WHILE,
       PLAN_CHOICE,
       PLAN_BRANCH,
       PLAN_MOVES };

// One step, before the steps inside of it. `inside`: how many follow that belong to it.
typedef struct {
  int kind, inside;
  long count;           // PLAN_REPEAT: turns
  int place;            // of the number of the turn, of the test or the choice; -1: none
  int first, arguments; // PLAN_LAUNCH, PLAN_MOVES: places in `places`; PLAN_REPEAT: that of the count
  void *function;
  unsigned grid[3], block[3], shared;
} tf_plan_step;

typedef struct {
  const tf_driver *driver;
  const tf_plan_step *steps;
  const int *places;
  CUdeviceptr *addresses; // of the buffers
  void *stream;
  int failed; // the step that the driver refused
} tf_plan;

static int plan_run(tf_plan *plan, int begin, int end);

static int plan_launch(tf_plan *plan, const tf_plan_step *step) {
  void *arguments[step->arguments + 1];
  for (int i = 0; i < step->arguments; i++) arguments[i] = &plan->addresses[plan->places[step->first + i]];
  const unsigned *grid = step->grid, *block = step->block;
  return plan->driver->launch(step->function, grid[0], grid[1], grid[2], block[0], block[1], block[2], step->shared, plan->stream, arguments, 0);
}

static int plan_fetch(tf_plan *plan, int place, void *to, unsigned long bytes) {
  const int code = plan->driver->fetch(to, plan->addresses[place], bytes, plan->stream);
  return code ? code : plan->driver->wait(plan->stream);
}

static int plan_repeat(tf_plan *plan, int at) {
  const tf_plan_step *step = &plan->steps[at];
  long count = step->count;
  int code = step->arguments ? plan_fetch(plan, plan->places[step->first], &count, sizeof count) : 0;
  for (long turn = 0; turn < count && !code; turn++) {
    if (step->place >= 0) {
      const CUdeviceptr number = plan->addresses[step->place];
      code = plan->driver->fill(number, (unsigned)turn, 1, plan->stream);
      code = code ? code : plan->driver->fill(number + 4, (unsigned)(turn >> 32), 1, plan->stream);
    }
    code = code ? code : plan_run(plan, at + 1, at + 1 + step->inside);
  }
  return code;
}

static int plan_while(tf_plan *plan, int at) {
  const tf_plan_step *step = &plan->steps[at];
  for (;;) {
    unsigned char test = 0;
    int code = plan_fetch(plan, step->place, &test, 1);
    if (code || !test)
      return code;
    code = plan_run(plan, at + 1, at + 1 + step->inside);
    if (code)
      return code;
  }
}

static int plan_choose(tf_plan *plan, int at) {
  const tf_plan_step *step = &plan->steps[at];
  long choice = 0;
  const int code = plan_fetch(plan, step->place, &choice, sizeof choice);
  if (code)
    return code;
  int branch = at + 1;
  const int end = at + 1 + step->inside;
  for (; choice > 0 && branch + 1 + plan->steps[branch].inside < end; choice--) branch += 1 + plan->steps[branch].inside;
  return plan_run(plan, branch + 1, branch + 1 + plan->steps[branch].inside);
}

// Buffers exchange their memory, all at once: pairs of places.
static void plan_move(tf_plan *plan, const tf_plan_step *step) {
  const int *places = &plan->places[step->first];
  CUdeviceptr sources[step->arguments / 2 + 1];
  for (int i = 0; i < step->arguments / 2; i++) sources[i] = plan->addresses[places[2 * i + 1]];
  for (int i = 0; i < step->arguments / 2; i++) plan->addresses[places[2 * i]] = sources[i];
}

static int plan_step(tf_plan *plan, int at) {
  const tf_plan_step *step = &plan->steps[at];
  switch (step->kind) {
  case PLAN_LAUNCH:
    return plan_launch(plan, step);
  case PLAN_REPEAT:
    return plan_repeat(plan, at);
  case PLAN_WHILE:
    return plan_while(plan, at);
  case PLAN_CHOICE:
    return plan_choose(plan, at);
  default:
    plan_move(plan, step);
    return 0;
  }
}

static int plan_run(tf_plan *plan, int begin, int end) {
  for (int at = begin; at < end; at += 1 + plan->steps[at].inside) {
    const int code = plan_step(plan, at);
    if (code) {
      plan->failed = plan->failed < 0 ? at : plan->failed;
      return code;
    }
  }
  return 0;
}

// The first error of the driver, or 0.
int tf_run_plan(tf_plan *plan, int steps) { return plan_run(plan, 0, steps); }
