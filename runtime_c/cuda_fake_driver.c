// NVIDIA's driver, as far as tinyfuse calls it, on the emulated GPU (cuda_machine.c): for tests of
// allocation, streams, launches and errors. It is stricter than a real one: what is put into a
// stream runs when it is waited for, and not before.

enum {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_INVALID_IMAGE = 200,
  CUDA_ERROR_INVALID_HANDLE = 400,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_READY = 600,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_FAILED = 719,
};
enum { FAKE_DEVICES = 8,
       FAKE_MEMORIES = 1024,
       FAKE_OBJECTS = 256,
       FAKE_ARGUMENTS = 4096 };

typedef unsigned long CUdeviceptr;
typedef enum { COPY,
               FILL,
               LAUNCH,
               RELEASE,
               RECORD,
               WAIT } fake_kind;

typedef struct fake_work {
  struct fake_work *next;
  fake_kind kind;
  char *to, *staged; // COPY, RELEASE: addresses; what was copied from the host
  const char *from;
  size_t bytes;
  unsigned value; // FILL
  const tf_kernel *kernel;
  tf_index blocks, threads;
  size_t shared;
  char *arguments;
  struct fake_event *event;
} fake_work;

typedef struct fake_stream {
  int live, capturing, device;
  fake_work *first, **last;
} fake_stream;

typedef struct fake_event {
  int live, happened; // live: while it is not destroyed, or work in streams knows it
  fake_stream *stream;
} fake_event;

typedef struct {
  int live;
  fake_work *works;
} fake_graph;

static struct {
  int devices, device; // the current one, whose context is a place in `contexts`
  char contexts[FAKE_DEVICES];
  size_t limit, used;
  tf_memory memories[FAKE_MEMORIES];
  int owners[FAKE_MEMORIES]; // the devices that they are on
  int memory_count;
  fake_stream null_stream, streams[FAKE_OBJECTS];
  fake_event events[FAKE_OBJECTS];
  fake_graph graphs[2 * FAKE_OBJECTS];
  int broken; // the error that all calls give from now on
  char message[1024], failing[64];
  int failing_code;
  unsigned long launches;
} fake = {.devices = 1, .limit = 1ul << 30};

// -- what tests ask of it

void tf_fake_reset(int devices, size_t limit) {
  for (int i = 0; i < fake.memory_count; i++) {
    free(fake.memories[i].data);
    free(fake.memories[i].written);
  }
  memset(&fake, 0, sizeof fake);
  fake.devices = devices;
  fake.limit = limit;
}

// The next call of this function gives this error.
void tf_fake_fail(const char *function, int code) {
  snprintf(fake.failing, sizeof fake.failing, "%s", function);
  fake.failing_code = code;
}

static int fake_live(const void *objects, size_t size, int count) {
  int live = 0;
  for (int i = 0; i < count; i++) live += *(const int *)((const char *)objects + size * (size_t)i) != 0;
  return live;
}

// Of what there is now: bytes; allocations, streams, events, graphs; launches so far.
void tf_fake_state(unsigned long *state) {
  state[0] = fake.used;
  state[1] = (unsigned long)fake.memory_count;
  state[2] = (unsigned long)fake_live(fake.streams, sizeof(fake_stream), FAKE_OBJECTS);
  state[3] = (unsigned long)fake_live(fake.events, sizeof(fake_event), FAKE_OBJECTS);
  state[4] = (unsigned long)fake_live(fake.graphs, sizeof(fake_graph), 2 * FAKE_OBJECTS);
  state[5] = fake.launches;
}

// What the emulator has said of the kernel that broke the device.
const char *tf_fake_message(void) { return fake.message; }

#define FAKE_CALL()                                             \
  do {                                                          \
    if (fake.broken)                                            \
      return fake.broken;                                       \
    if (fake.failing_code && !strcmp(fake.failing, __func__)) { \
      const int code = fake.failing_code;                       \
      fake.failing_code = 0;                                    \
      return code;                                              \
    }                                                           \
  } while (0)

// An object that is not in use: each begins with whether it is.
static void *fake_new(void *objects, size_t size, int count) {
  for (int i = 0; i < count; i++) {
    char *object = (char *)objects + size * (size_t)i;
    if (!*(int *)object) {
      memset(object, 0, size);
      *(int *)object = 1;
      return object;
    }
  }
  return 0;
}
#define FAKE_NEW(objects) fake_new(objects, sizeof objects[0], (int)(sizeof objects / sizeof objects[0]))

// -- errors

static const struct {
  int code;
  const char *name, *words;
} fake_errors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

int cuGetErrorName(int code, const char **name) {
  for (size_t i = 0; i < sizeof fake_errors / sizeof fake_errors[0]; i++)
    if (fake_errors[i].code == code) {
      *name = fake_errors[i].name;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

int cuGetErrorString(int code, const char **words) {
  for (size_t i = 0; i < sizeof fake_errors / sizeof fake_errors[0]; i++)
    if (fake_errors[i].code == code) {
      *words = fake_errors[i].words;
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_INVALID_VALUE;
}

// -- devices

int cuInit(unsigned flags) {
  FAKE_CALL();
  return flags ? CUDA_ERROR_INVALID_VALUE : fake.devices ? CUDA_SUCCESS
                                                         : CUDA_ERROR_NO_DEVICE;
}
int cuDeviceGetCount(int *count) {
  FAKE_CALL();
  *count = fake.devices;
  return CUDA_SUCCESS;
}
int cuDeviceGet(int *device, int ordinal) {
  FAKE_CALL();
  *device = ordinal;
  return ordinal >= 0 && ordinal < fake.devices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
int cuDeviceGetName(char *name, int room, int device) {
  FAKE_CALL();
  snprintf(name, (size_t)room, "emulated GPU %d", device);
  return CUDA_SUCCESS;
}
int cuDeviceGetAttribute(int *value, int attribute, int device) {
  FAKE_CALL();
  (void)device;
  *value = attribute == 75 ? 9 : attribute == 16 ? 4
                             : attribute == 97   ? 227 << 10
                                                 : 0;
  return CUDA_SUCCESS;
}
int cuDevicePrimaryCtxRetain(void **context, int device) {
  FAKE_CALL();
  *context = fake.contexts + device;
  return CUDA_SUCCESS;
}
int cuCtxSetCurrent(void *context) {
  FAKE_CALL();
  const long device = (char *)context - fake.contexts;
  if (device < 0 || device >= fake.devices)
    return CUDA_ERROR_INVALID_VALUE;
  fake.device = (int)device;
  return CUDA_SUCCESS;
}
int cuCtxGetCurrent(void **context) {
  FAKE_CALL();
  *context = fake.contexts + fake.device;
  return CUDA_SUCCESS;
}

// -- modules: an image is the address of an opened library

static const char fake_magic[] = "emulated";

int cuModuleLoadData(void **module, const void *image) {
  FAKE_CALL();
  if (memcmp(image, fake_magic, 8))
    return CUDA_ERROR_INVALID_IMAGE;
  memcpy(module, (const char *)image + 8, sizeof *module);
  return CUDA_SUCCESS;
}
int cuModuleUnload(void *module) {
  FAKE_CALL();
  return module ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
  FAKE_CALL();
  const tf_library *library = module;
  for (int i = 0; i < library->count; i++)
    if (!strcmp(library->kernels[i].name, name)) {
      *function = (void *)&library->kernels[i];
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
}
int cuFuncSetAttribute(void *function, int attribute, int value) {
  FAKE_CALL();
  return function && attribute == 8 && value <= 227 << 10 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

// -- memory

static tf_memory *fake_memory(CUdeviceptr address) {
  return tf_memory_of((const char *)address, fake.memories, fake.memory_count);
}

static int fake_allocate(CUdeviceptr *address, size_t bytes, int device) {
  if (!bytes)
    return CUDA_ERROR_INVALID_VALUE;
  if (fake.memory_count == FAKE_MEMORIES || bytes > fake.limit - fake.used)
    return CUDA_ERROR_OUT_OF_MEMORY;
  char *data = aligned_alloc(256, (bytes + 255) / 256 * 256), *written = calloc(bytes, 1);
  if (!data || !written)
    return CUDA_ERROR_OUT_OF_MEMORY;
  fake.owners[fake.memory_count] = device;
  fake.memories[fake.memory_count++] = (tf_memory){.data = data, .bytes = bytes, .written = (unsigned char *)written};
  fake.used += bytes;
  *address = (CUdeviceptr)data;
  return CUDA_SUCCESS;
}

static int fake_release(CUdeviceptr address) {
  tf_memory *memory = fake_memory(address);
  if (!memory || memory->data != (char *)address)
    return CUDA_ERROR_INVALID_VALUE;
  fake.used -= memory->bytes;
  free(memory->data);
  free(memory->written);
  *memory = fake.memories[--fake.memory_count];
  fake.owners[memory - fake.memories] = fake.owners[fake.memory_count];
  return CUDA_SUCCESS;
}

// Whether a copy may read or write there.
static int fake_within(const char *address, size_t bytes) {
  const tf_memory *memory = fake_memory((CUdeviceptr)address);
  return memory && bytes <= (size_t)(memory->data + memory->bytes - address);
}

static void fake_mark_written(const char *to, size_t bytes) {
  tf_memory *memory = fake_memory((CUdeviceptr)to);
  memset(memory->written + (to - memory->data), 1, bytes);
}

// -- streams

static fake_stream *fake_stream_of(void *handle) {
  fake_stream *stream = handle ? handle : &fake.null_stream;
  if (!handle) {
    stream->live = 1;
    stream->device = fake.device;
  }
  if (!stream->last)
    stream->last = &stream->first;
  return stream->live ? stream : 0;
}

static void fake_drop(fake_work *work) {
  if (work->event)
    work->event->live--;
  free(work->staged);
  free(work->arguments);
  free(work);
}

static int fake_put(void *handle, fake_work work) {
  fake_stream *stream = fake_stream_of(handle);
  fake_work *put = stream ? malloc(sizeof *put) : 0;
  if (!put)
    return CUDA_ERROR_INVALID_HANDLE;
  *put = work;
  put->next = 0;
  if (put->event)
    put->event->live++;
  *stream->last = put;
  stream->last = &put->next;
  return CUDA_SUCCESS;
}

static int fake_launch(const fake_work *work) {
  void *arguments[work->kernel->parameters + 1];
  size_t at = 0;
  for (int i = 0; i < work->kernel->parameters; i++) {
    arguments[i] = work->arguments + at;
    at += (work->kernel->parameter[i].bytes + 7) / 8 * 8;
  }
  const tf_launch launch = {
      .kernel = work->kernel, .blocks = work->blocks, .threads = work->threads, .shared = work->shared, .arguments = arguments, .memories = fake.memories, .memory_count = fake.memory_count, .checking = 1, .seed = 1};
  fake.launches++;
  const char *message = tf_cuda_launch(&launch);
  if (!message)
    return CUDA_SUCCESS;
  snprintf(fake.message, sizeof fake.message, "%s", message);
  return fake.broken = CUDA_ERROR_LAUNCH_FAILED;
}

static int fake_drain(fake_stream *stream, const fake_event *until);

static int fake_do(const fake_work *work) {
  switch (work->kind) {
  case COPY:
    memcpy(work->to, work->staged ? work->staged : work->from, work->bytes);
    if (fake_memory((CUdeviceptr)work->to))
      fake_mark_written(work->to, work->bytes);
    return CUDA_SUCCESS;
  case FILL:
    for (size_t i = 0; i < work->bytes; i += 4) memcpy(work->to + i, &work->value, 4);
    fake_mark_written(work->to, work->bytes);
    return CUDA_SUCCESS;
  case LAUNCH:
    return fake_launch(work);
  case RELEASE:
    return fake_release((CUdeviceptr)work->to);
  case RECORD:
    work->event->happened = 1;
    return CUDA_SUCCESS;
  case WAIT:
    return work->event->happened || !work->event->stream ? CUDA_SUCCESS : fake_drain(work->event->stream, work->event);
  }
  return CUDA_ERROR_INVALID_VALUE;
}

// Does what is in a stream, up to the recording of an event.
static int fake_drain(fake_stream *stream, const fake_event *until) {
  while (stream->first && !(until && until->happened)) {
    fake_work *work = stream->first;
    stream->first = work->next;
    if (!stream->first)
      stream->last = &stream->first;
    const int code = fake_do(work);
    fake_drop(work);
    if (code)
      return code;
  }
  return CUDA_SUCCESS;
}

int cuStreamCreate(void **stream, unsigned flags) {
  FAKE_CALL();
  (void)flags;
  fake_stream *made = FAKE_NEW(fake.streams);
  if (!made)
    return CUDA_ERROR_OUT_OF_MEMORY;
  made->device = fake.device;
  *stream = made;
  return CUDA_SUCCESS;
}
int cuStreamSynchronize(void *handle) {
  FAKE_CALL();
  fake_stream *stream = fake_stream_of(handle);
  return !stream || stream->capturing ? CUDA_ERROR_INVALID_HANDLE : fake_drain(stream, 0);
}
int cuStreamDestroy_v2(void *handle) {
  FAKE_CALL();
  fake_stream *stream = handle ? fake_stream_of(handle) : 0;
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  const int code = fake_drain(stream, 0);
  stream->live = 0;
  return code;
}

int cuMemAllocAsync(CUdeviceptr *address, size_t bytes, void *handle) {
  FAKE_CALL();
  const fake_stream *stream = fake_stream_of(handle);
  return stream ? fake_allocate(address, bytes, stream->device) : CUDA_ERROR_INVALID_HANDLE;
}
int cuPointerGetAttribute(void *data, int attribute, CUdeviceptr address) {
  FAKE_CALL();
  const tf_memory *memory = fake_memory(address);
  if (!memory || attribute != 9)
    return CUDA_ERROR_INVALID_VALUE;
  *(int *)data = fake.owners[memory - fake.memories];
  return CUDA_SUCCESS;
}
int cuMemFreeAsync(CUdeviceptr address, void *handle) {
  FAKE_CALL();
  return fake_memory(address) ? fake_put(handle, (fake_work){.kind = RELEASE, .to = (char *)address}) : CUDA_ERROR_INVALID_VALUE;
}
int cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, void *handle) {
  FAKE_CALL();
  if (!fake_within((char *)to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  char *staged = malloc(bytes + 1);
  if (!staged)
    return CUDA_ERROR_OUT_OF_MEMORY;
  memcpy(staged, from, bytes);
  return fake_put(handle, (fake_work){.kind = COPY, .to = (char *)to, .staged = staged, .bytes = bytes});
}
int cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, void *handle) {
  FAKE_CALL();
  if (!fake_within((char *)from, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return fake_put(handle, (fake_work){.kind = COPY, .to = to, .from = (char *)from, .bytes = bytes});
}
int cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, void *handle) {
  FAKE_CALL();
  if (!fake_within((char *)from, bytes) || !fake_within((char *)to, bytes))
    return CUDA_ERROR_INVALID_VALUE;
  return fake_put(handle, (fake_work){.kind = COPY, .to = (char *)to, .from = (char *)from, .bytes = bytes});
}
int cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, void *handle) {
  FAKE_CALL();
  if (!fake_within((char *)to, 4 * count))
    return CUDA_ERROR_INVALID_VALUE;
  return fake_put(handle, (fake_work){.kind = FILL, .to = (char *)to, .value = value, .bytes = 4 * count});
}

// -- events

int cuEventCreate(void **event, unsigned flags) {
  FAKE_CALL();
  (void)flags;
  *event = FAKE_NEW(fake.events);
  return *event ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
int cuEventRecord(void *handle, void *stream) {
  FAKE_CALL();
  fake_event *event = handle;
  event->happened = 0;
  event->stream = fake_stream_of(stream);
  return fake_put(stream, (fake_work){.kind = RECORD, .event = event});
}
int cuStreamWaitEvent(void *stream, void *event, unsigned flags) {
  FAKE_CALL();
  (void)flags;
  return fake_put(stream, (fake_work){.kind = WAIT, .event = event});
}
int cuEventSynchronize(void *handle) {
  FAKE_CALL();
  fake_event *event = handle;
  return event->stream ? fake_drain(event->stream, event) : CUDA_SUCCESS;
}
int cuEventQuery(void *handle) {
  FAKE_CALL();
  const fake_event *event = handle;
  return event->happened || !event->stream ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}
int cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
  FAKE_CALL();
  *milliseconds = 1;
  return ((fake_event *)begin)->happened && ((fake_event *)end)->happened ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
int cuEventDestroy_v2(void *handle) {
  FAKE_CALL();
  ((fake_event *)handle)->live--;
  return CUDA_SUCCESS;
}

// -- launches and graphs

int cuLaunchKernel(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared, void *stream, void **arguments, void **extra) {
  FAKE_CALL();
  const tf_kernel *kernel = function;
  if (!kernel || extra || !grid_x || !grid_y || !grid_z || !block_x || !block_y || !block_z)
    return CUDA_ERROR_INVALID_VALUE;
  if ((unsigned long)block_x * block_y * block_z > TF_MOST_THREADS || (kernel->most_threads && block_x * block_y * block_z > (unsigned)kernel->most_threads))
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  char *copied = calloc(1, FAKE_ARGUMENTS), *at = copied;
  if (!copied || kernel->parameters * 8 > FAKE_ARGUMENTS)
    return CUDA_ERROR_OUT_OF_MEMORY;
  for (int i = 0; i < kernel->parameters; i++) {
    memcpy(at, arguments[i], kernel->parameter[i].bytes);
    at += (kernel->parameter[i].bytes + 7) / 8 * 8;
  }
  const tf_index blocks = {grid_x, grid_y, grid_z}, threads = {block_x, block_y, block_z};
  return fake_put(stream, (fake_work){.kind = LAUNCH, .kernel = kernel, .blocks = blocks, .threads = threads, .shared = shared, .arguments = copied});
}

int cuStreamBeginCapture_v2(void *handle, int mode) {
  FAKE_CALL();
  (void)mode;
  fake_stream *stream = handle ? fake_stream_of(handle) : 0;
  if (!stream || stream->capturing)
    return CUDA_ERROR_INVALID_VALUE;
  const int code = fake_drain(stream, 0);
  stream->capturing = 1;
  return code;
}
int cuStreamEndCapture(void *handle, void **graph) {
  FAKE_CALL();
  fake_stream *stream = fake_stream_of(handle);
  fake_graph *made = FAKE_NEW(fake.graphs);
  if (!stream || !stream->capturing || !made)
    return CUDA_ERROR_INVALID_VALUE;
  made->works = stream->first;
  stream->first = 0;
  stream->last = &stream->first;
  stream->capturing = 0;
  *graph = made;
  return CUDA_SUCCESS;
}
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags) {
  FAKE_CALL();
  fake_graph *made = FAKE_NEW(fake.graphs);
  if (!made || flags)
    return CUDA_ERROR_INVALID_VALUE;
  made->works = ((fake_graph *)graph)->works; // the graph gives them away
  ((fake_graph *)graph)->works = 0;
  *executable = made;
  return CUDA_SUCCESS;
}
int cuGraphLaunch(void *executable, void *stream) {
  FAKE_CALL();
  for (const fake_work *work = ((fake_graph *)executable)->works; work; work = work->next) {
    fake_work copy = *work;
    if (work->arguments) {
      copy.arguments = malloc(FAKE_ARGUMENTS);
      if (!copy.arguments)
        return CUDA_ERROR_OUT_OF_MEMORY;
      memcpy(copy.arguments, work->arguments, FAKE_ARGUMENTS);
    }
    if (work->staged)
      return CUDA_ERROR_INVALID_VALUE; // the memory of the host that it came from is gone
    const int code = fake_put(stream, copy);
    if (code)
      return code;
  }
  return CUDA_SUCCESS;
}
static int fake_drop_graph(fake_graph *graph) {
  for (fake_work *work = graph->works, *next; work; work = next) {
    next = work->next;
    fake_drop(work);
  }
  graph->live = 0;
  return CUDA_SUCCESS;
}
int cuGraphExecDestroy(void *graph) {
  FAKE_CALL();
  return fake_drop_graph(graph);
}
int cuGraphDestroy(void *graph) {
  FAKE_CALL();
  return fake_drop_graph(graph);
}
