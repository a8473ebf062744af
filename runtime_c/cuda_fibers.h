// The threads of a block as fibers of one thread of the CPU: each has a stack of its own and runs
// until it waits. A thread that never waits costs a call: the next one starts on the same stack.

enum {
  TF_MOST_THREADS = 1024,
  TF_STACK = 128 << 10,
  TF_GUARD = 4 << 10, // below a stack, where nothing can be written
  TF_STAGGER = 256,   // bytes between the tops of stacks, so that they do not share cache lines
};

// Saves where the caller is, and goes on where another fiber was left.
void tf_switch(void **save, void *to);

#if defined(__x86_64__)
__asm__(".text\n.p2align 4\n.globl tf_switch\n.hidden tf_switch\n.type tf_switch,@function\n"
        "tf_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".size tf_switch,.-tf_switch\n");
// Words that are saved, words of return addresses above them (a function is entered 8 bytes off a
// multiple of 16), and which word is where it goes on.
enum { TF_SAVED = 6,
       TF_RETURNS = 2,
       TF_ENTRY = 6 };
#elif defined(__aarch64__)
#ifdef __APPLE__
#define TF_SYMBOL "_tf_switch"
#else
#define TF_SYMBOL "tf_switch"
#endif
__asm__(".text\n.p2align 4\n.globl " TF_SYMBOL "\n" TF_SYMBOL ":\n"
        "sub sp,sp,#160\n"
        "stp x19,x20,[sp]\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\nstp x25,x26,[sp,#48]\n"
        "stp x27,x28,[sp,#64]\nstp x29,x30,[sp,#80]\n"
        "stp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\nstp d12,d13,[sp,#128]\nstp d14,d15,[sp,#144]\n"
        "mov x2,sp\nstr x2,[x0]\nmov sp,x1\n"
        "ldp x19,x20,[sp]\nldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\n"
        "ldp x27,x28,[sp,#64]\nldp x29,x30,[sp,#80]\n"
        "ldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\nldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\n"
        "add sp,sp,#160\nret\n");
enum { TF_SAVED = 20,
       TF_RETURNS = 0,
       TF_ENTRY = 11 }; // x30 is the link register
#else
#error "the emulator of CUDA runs on x86-64 and on Arm64"
#endif

typedef struct {
  char *memory;
  void *stack; // where it was left
} tf_fiber;

static struct {
  tf_fiber all[TF_MOST_THREADS];
  int used;
  tf_fiber *idle[TF_MOST_THREADS];
  int idle_count;
  tf_fiber *current;
  void *outside; // the stack of whoever launched the kernel
  unsigned long switches;
} tf_fibers;

// A fiber that begins in `entry`; null where there is no memory for its stack.
static tf_fiber *tf_new_fiber(void (*entry)(void)) {
  if (tf_fibers.idle_count)
    return tf_fibers.idle[--tf_fibers.idle_count];
  tf_fiber *fiber = &tf_fibers.all[tf_fibers.used];
  if (!fiber->memory) {
    void *memory = mmap(0, TF_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return 0;
    mprotect(memory, TF_GUARD, PROT_NONE);
    fiber->memory = memory;
  }
  const int place = tf_fibers.used++;
  void **top = (void **)(fiber->memory + TF_STACK - TF_STAGGER * (1 + place % 15));
  top -= TF_SAVED + TF_RETURNS;
  memset(top, 0, (TF_SAVED + TF_RETURNS) * sizeof *top);
  top[TF_ENTRY] = (void *)entry;
  fiber->stack = top;
  return fiber;
}

static void tf_resume(void **save, tf_fiber *fiber) {
  tf_fibers.switches++;
  tf_fibers.current = fiber;
  tf_switch(save, fiber->stack);
}

// Ends all fibers: nobody returns to any of them.
static void tf_leave_fibers(void) {
  void *nowhere;
  tf_switch(&nowhere, tf_fibers.outside);
}

static void tf_reset_fibers(void) {
  tf_fibers.used = tf_fibers.idle_count = 0;
  tf_fibers.current = 0;
}
