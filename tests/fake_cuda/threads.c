// SPDX-License-Identifier: Apache-2.0
// The threads of a block are coroutines: each runs until it waits for others.
#include "fake_cuda/emulate.h"

#include "base/dtype.h"
#include "fake_cuda/device.h"
#include "runtime/symbols.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#define WARP 32
#define SHARED_MOST 232448
#define STACK ((size_t)2 << 20) // touched as far as it is used
#define KNOWN 8                 // blocks of memory
#define COUNTS_KNOWN 1024

enum state { BEGINS, RUNS, AT_BARRIER, AT_WARP, ENDED };

struct thread {
    enum state state;
    char *stack;      // NULL before it begins and when it has ended
    void *at;         // where its stack is while others run
    const char *what; // it waits for the warp with
    struct emulated_lane given;
    uint32_t barrier, count; // of threads that it waits for there
};

struct range {
    const char *begin, *end;
};

// Of the launch.  One runs at a time.
static pthread_mutex_t running = PTHREAD_MUTEX_INITIALIZER;
static struct thread threads[EMULATED_THREADS];
static char *stacks[EMULATED_THREADS]; // not in use
static unsigned stack_count;
static struct emulated_lane met[EMULATED_THREADS]; // what threads gave when their warp last met
static struct thread *current;
static void *scheduler; // where its stack is while a thread runs
static const char *kernel;
static void (*kernel_thread)(void **operands);
static void **kernel_operands;
static uint32_t block, block_count, thread_count, shared_bytes;
static uint32_t barriers, syncs[EMULATED_THREADS / WARP];
static bool has_counted;
// How often the block has counted, and which of its last counts were of which thread and part.
static uint32_t counts;
static struct {
    uint32_t thread, part;
} counted[COUNTS_KNOWN];
static uint32_t last_of_warp[EMULATED_THREADS / WARP], last_of_part[16];
static struct range known[KNOWN];
static unsigned known_next;
static uint64_t random_state;
static enum { FORWARDS, BACKWARDS, MIXED, ORDERS } order_kind;
static long launches;
static char fault[400];
static _Alignas(1024) char shared[SHARED_MOST];

char *emulated_shared(void) { return shared; }

const char *emulated_fault(void) { return fault; }

// ---- turns ----

// Leaves its registers on the stack, and says where that is; goes on where the other one did so.
void emulated_switch(void **from, void *to);
__asm__(
    ".text\n"
    ".globl emulated_switch\n"
    ".hidden emulated_switch\n"
    ".type emulated_switch, @function\n"
    "emulated_switch:\n"
    "    push %rbp\n    push %rbx\n    push %r12\n    push %r13\n    push %r14\n    push %r15\n"
    "    mov %rsp, (%rdi)\n"
    "    mov %rsi, %rsp\n"
    "    pop %r15\n    pop %r14\n    pop %r13\n    pop %r12\n    pop %rbx\n    pop %rbp\n"
    "    ret\n");

static uint32_t thread_number(void) { return (uint32_t)(current - threads); }

// The last turn of a thread does not return, so the thread sanitizer, which counts the functions
// that are entered and left, is to see neither of these two.
#define NOT_COUNTED __attribute__((no_sanitize("thread")))

NOT_COUNTED static void yield(enum state state)
{
    current->state = state;
    emulated_switch(&current->at, scheduler);
}

NOT_COUNTED static void begin(void)
{
    kernel_thread(kernel_operands);
    yield(ENDED);
}

static void give_stack(struct thread *t)
{
    if (t->stack)
        stacks[stack_count++] = t->stack;
    t->stack = NULL;
}

static void take_stack(struct thread *t)
{
    t->stack = stack_count ? stacks[--stack_count]
                           : mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t->stack == MAP_FAILED)
        abort();
    // Six registers and where to go, with the stack as after a call.
    void **top = (void **)(void *)(t->stack + STACK);
    memset(top - 8, 0, 8 * sizeof *top);
    top[-2] = (void *)(uintptr_t)begin;
    t->at = top - 8;
}

static void note_fault(const char *what)
{
    snprintf(fault, sizeof fault,
             "%s: thread %u of block %u %s (launch %ld, FAKE_CUDA_SEED=%ld)", kernel,
             thread_number(), block, what, launches, fake_number("FAKE_CUDA_SEED", 1));
}

// The fault of the thread that runs, which ends the launch.
void emulated_fail(const char *what)
{
    note_fault(what);
    emulated_switch(&current->at, scheduler);
}

// ---- what a GPU does for a thread ----

uint32_t gpu_llvm_nvvm_read_ptx_sreg_tid_x(void) { return thread_number(); }
uint32_t gpu_llvm_nvvm_read_ptx_sreg_ctaid_x(void) { return block; }
uint32_t gpu_llvm_nvvm_read_ptx_sreg_nctaid_x(void) { return block_count; }
uint32_t gpu_llvm_nvvm_read_ptx_sreg_nctaid_y(void) { return 1; }
void gpu_llvm_nvvm_membar_gl(void) {}

void gpu_llvm_nvvm_barrier(uint32_t barrier, uint32_t count)
{
    if (barrier > 15 || !count || count % WARP)
        emulated_fail("waits at a barrier that there is not");
    current->barrier = barrier;
    current->count = count;
    yield(AT_BARRIER);
}

void gpu_llvm_nvvm_barrier0(void)
{
    current->barrier = 0;
    current->count = thread_count;
    yield(AT_BARRIER);
}

const struct emulated_lane *emulated_meet(const char *what, uint32_t mask, const void *given,
                                          size_t bytes)
{
    if (mask != UINT32_MAX)
        emulated_fail("waits for a part of its warp");
    current->what = what;
    memcpy(current->given.words, given, bytes);
    yield(AT_WARP);
    return &met[thread_number() / WARP * WARP];
}

void gpu_llvm_nvvm_bar_warp_sync(uint32_t mask) { emulated_meet("sync", mask, "", 0); }

// What the thread so many lanes on has given; its own where there is none.
static uint32_t exchange(const char *what, uint32_t mask, uint32_t x, int64_t by)
{
    const struct emulated_lane *all = emulated_meet(what, mask, &x, sizeof x);
    int64_t lane = thread_number() % WARP, from = lane + by;
    return all[from >= 0 && from < WARP ? from : lane].words[0];
}

uint32_t gpu_llvm_nvvm_shfl_sync_up_i32(uint32_t mask, uint32_t x, uint32_t by, uint32_t end)
{
    (void)end;
    return exchange("up", mask, x, -(int64_t)by);
}

uint32_t gpu_llvm_nvvm_shfl_sync_down_i32(uint32_t mask, uint32_t x, uint32_t by, uint32_t end)
{
    (void)end;
    return exchange("down", mask, x, by);
}

uint32_t gpu_llvm_nvvm_shfl_sync_idx_i32(uint32_t mask, uint32_t x, uint32_t from, uint32_t end)
{
    (void)end;
    return emulated_meet("index", mask, &x, sizeof x)[from % WARP].words[0];
}

float gpu_llvm_nvvm_shfl_sync_bfly_f32(uint32_t mask, float x, uint32_t by, uint32_t end)
{
    (void)end;
    uint32_t from = (thread_number() ^ by) % WARP;
    memcpy(&x, emulated_meet("butterfly", mask, &x, sizeof x)[from].words, sizeof x);
    return x;
}

uint32_t gpu_llvm_nvvm_match_any_sync_i32(uint32_t mask, uint32_t key)
{
    const struct emulated_lane *all = emulated_meet("match", mask, &key, sizeof key);
    uint32_t equal = 0;
    for (int i = 0; i < WARP; i++)
        equal |= (uint32_t)(all[i].words[0] == key) << i;
    return equal;
}

bool gpu_llvm_nvvm_vote_any_sync(uint32_t mask, bool condition)
{
    uint32_t given = condition;
    const struct emulated_lane *all = emulated_meet("vote", mask, &given, sizeof given);
    bool any = false;
    for (int i = 0; i < WARP; i++)
        any |= all[i].words[0] != 0;
    return any;
}

uint32_t gpu_llvm_nvvm_vote_ballot_sync(uint32_t mask, bool condition)
{
    uint32_t given = condition;
    const struct emulated_lane *all = emulated_meet("ballot", mask, &given, sizeof given);
    uint32_t lanes = 0;
    for (int i = 0; i < WARP; i++)
        lanes |= (uint32_t)(all[i].words[0] != 0) << i;
    return lanes;
}

// What a GPU may make of a result, for an operand of these bits: one unit in the last place off, and
// no subnormal.
static float approximate(float y, uint32_t bits, bool is_exact)
{
    if (fpclassify(y) == FP_SUBNORMAL)
        return copysignf(0, y);
    return is_exact || !isnormal(y) ? y : nextafterf(y, bits & 1 ? 2 * y : 0);
}

// Exact for powers of two.
float gpu_llvm_nvvm_rcp_approx_ftz_f(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (fpclassify(x) == FP_SUBNORMAL)
        x = copysignf(0, x);
    return approximate(1 / x, bits, !(bits & 0x7fffff));
}

float gpu_llvm_nvvm_ex2_approx_ftz_f(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return approximate(exp2f(x), bits, x == truncf(x));
}

float gpu_llvm_nvvm_lg2_approx_ftz_f(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return approximate(log2f(x), bits, x <= 0 || !(bits & 0x7fffff));
}

float gpu_llvm_nvvm_rsqrt_approx_ftz_f(float x)
{
    return fabsf(x) < 0x1p-126f ? copysignf(INFINITY, x) : 1 / sqrtf(x);
}

static bool is_memory(const char *at, uint32_t bytes)
{
    struct range r;
    for (int i = 0; i < KNOWN; i++)
        if (at >= known[i].begin && at + bytes <= known[i].end)
            return true;
    if (!fake_memory_find(at, &r.begin, &r.end) || at + bytes > r.end)
        return false;
    known[known_next++ % KNOWN] = r;
    return true;
}

static bool is_of(uint32_t count, uint32_t thread, uint32_t part)
{
    uint32_t i = count % COUNTS_KNOWN;
    return counted[i].thread / WARP == thread / WARP || (part && counted[i].part == part);
}

bool emulated_counted(uint32_t thread, uint32_t part, uint32_t after, uint32_t before)
{
    bool is = false;
    if (counts > COUNTS_KNOWN && after < counts - COUNTS_KNOWN)
        after = counts - COUNTS_KNOWN;
    for (uint32_t i = after + 1; i < before && !is; i++)
        is = is_of(i, thread, part);
    return is;
}

void gpu_access(const char *at, uint32_t bytes, uint32_t element, uint32_t kind, uint32_t align)
{
    if (at >= current->stack && at < current->stack + STACK)
        return;
    bool is_shared = at >= shared && at < shared + SHARED_MOST;
    char text[100];
    if (is_shared ? at + bytes > shared + shared_bytes : !is_memory(at, bytes)) {
        snprintf(text, sizeof text, "%s %u bytes at %p, where it has no memory",
                 kind ? "writes" : "reads", bytes, (const void *)at);
        emulated_fail(text);
    }
    if ((uintptr_t)at % align) {
        snprintf(text, sizeof text, "%s %u bytes at %p, which are to be aligned to %u",
                 kind ? "writes" : "reads", bytes, (const void *)at, align);
        emulated_fail(text);
    }
    if (kind == 2) {
        has_counted = true;
        counts++;
        counted[counts % COUNTS_KNOWN].thread = thread_number();
        counted[counts % COUNTS_KNOWN].part = current->barrier;
        last_of_warp[thread_number() / WARP] = last_of_part[current->barrier] = counts;
        return;
    }
    uint32_t of_warp = last_of_warp[thread_number() / WARP];
    uint32_t of_part = current->barrier ? last_of_part[current->barrier] : 0;
    struct marks_now now = {.block = block,
                            .thread = thread_number(),
                            .barriers = barriers,
                            .syncs = syncs[thread_number() / WARP],
                            .has_counted = has_counted,
                            .part = current->barrier,
                            .counts = counts,
                            .counted = of_warp > of_part ? of_warp : of_part};
    const char *wrong = marks_add(&now, at, bytes, element < 4 ? 1 : 4, kind == 1,
                                  is_shared ? at - shared : -1);
    if (wrong) {
        snprintf(text, sizeof text, "%s, %u bytes %s %lld", wrong, bytes,
                 is_shared ? "of what its block shares, at" : "of global memory at",
                 (long long)(is_shared ? at - shared : (intptr_t)at));
        emulated_fail(text);
    }
}

// What LLVM calls to round to bf16 where the processor does not; its result is in the low half of a register of floats.
static float in_low_half(uint16_t bits)
{
    uint32_t wide = bits;
    float x;
    memcpy(&x, &wide, sizeof x);
    return x;
}
static float round_f32_to_bf16(float x) { return in_low_half(dtype_bf16_from_f32(x)); }
static float round_f64_to_bf16(double x) { return in_low_half(dtype_bf16_from_f64(x)); }

void *emulated_symbol(void *ctx, const char *name)
{
    (void)ctx;
    if (!strcmp(name, "__truncsfbf2"))
        return (void *)(uintptr_t)round_f32_to_bf16;
    if (!strcmp(name, "__truncdfbf2"))
        return (void *)(uintptr_t)round_f64_to_bf16;
#define SYMBOL(function)                                                                       \
    if (!strcmp(name, #function))                                                              \
        return (void *)(uintptr_t)function;
    SYMBOL(gpu_llvm_nvvm_read_ptx_sreg_tid_x)
    SYMBOL(gpu_llvm_nvvm_read_ptx_sreg_ctaid_x)
    SYMBOL(gpu_llvm_nvvm_read_ptx_sreg_nctaid_x)
    SYMBOL(gpu_llvm_nvvm_read_ptx_sreg_nctaid_y)
    SYMBOL(gpu_llvm_nvvm_barrier0)
    SYMBOL(gpu_llvm_nvvm_barrier)
    SYMBOL(gpu_llvm_nvvm_bar_warp_sync)
    SYMBOL(gpu_llvm_nvvm_shfl_sync_up_i32)
    SYMBOL(gpu_llvm_nvvm_shfl_sync_down_i32)
    SYMBOL(gpu_llvm_nvvm_shfl_sync_idx_i32)
    SYMBOL(gpu_llvm_nvvm_match_any_sync_i32)
    SYMBOL(gpu_llvm_nvvm_vote_any_sync)
    SYMBOL(gpu_llvm_nvvm_vote_ballot_sync)
    SYMBOL(gpu_llvm_nvvm_membar_gl)
    SYMBOL(gpu_llvm_nvvm_rcp_approx_ftz_f)
    SYMBOL(gpu_llvm_nvvm_rsqrt_approx_ftz_f)
    SYMBOL(gpu_llvm_nvvm_ex2_approx_ftz_f)
    SYMBOL(gpu_llvm_nvvm_lg2_approx_ftz_f)
    SYMBOL(gpu_llvm_nvvm_shfl_sync_bfly_f32)
    SYMBOL(gpu_llvm_nvvm_ff2bf16x2_rn)
    SYMBOL(gpu_llvm_nvvm_fma_rn_bf16x2)
    SYMBOL(gpu_llvm_nvvm_fma_rn_f16x2)
    SYMBOL(gpu_llvm_nvvm_ff2f16x2_rn)
    SYMBOL(gpu_llvm_nvvm_cp_async_cg_shared_global_16)
    SYMBOL(gpu_llvm_nvvm_cp_async_cg_shared_global_16_s)
    SYMBOL(gpu_llvm_nvvm_cp_async_wait_all)
    SYMBOL(gpu_llvm_nvvm_ldmatrix_sync_aligned_m8n8_x4_b16_p3)
    SYMBOL(gpu_llvm_nvvm_ldmatrix_sync_aligned_m8n8_x4_trans_b16_p3)
    SYMBOL(gpu_llvm_nvvm_mma_m16n8k16_row_col_bf16)
    SYMBOL(gpu_llvm_nvvm_mma_m16n8k16_row_col_f32_f32)
    SYMBOL(gpu_warpgroup)
    SYMBOL(gpu_access)
#undef SYMBOL
    return strcmp(name, "jot_shared") ? rt_symbol_find(name) : shared;
}

// ---- warps ----

// Whether all of a warp have come to the same, which they leave then.
static bool let_warp_go(uint32_t first)
{
    struct thread *warp = &threads[first];
    for (uint32_t i = 0; i < WARP; i++)
        if (first + i >= thread_count || warp[i].state != AT_WARP ||
            strcmp(warp[i].what, warp->what) != 0)
            return false;
    for (uint32_t i = 0; i < WARP; i++) {
        met[first + i] = warp[i].given;
        warp[i].state = RUNS;
    }
    syncs[first / WARP] += !strcmp(warp->what, "sync");
    return true;
}

static bool is_at(uint32_t thread, uint32_t barrier)
{
    return threads[thread].state == AT_BARRIER && threads[thread].barrier == barrier;
}

// Whether as many as the barrier is for have come to it.
static bool let_go(uint32_t barrier)
{
    uint32_t here = 0, wanted = 0;
    for (uint32_t i = 0; i < thread_count; i++)
        if (is_at(i, barrier)) {
            here++;
            wanted = threads[i].count;
        }
    if (!here || here != wanted)
        return false;
    for (uint32_t i = 0; i < thread_count; i++)
        if (is_at(i, barrier))
            threads[i].state = RUNS;
    barriers++;
    return true;
}

// ---- blocks ----

static uint64_t next_random(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return random_state >> 33;
}

// 0 .. n - 1 in the order of the launch.
static void put_in_order(uint32_t *order, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        order[i] = order_kind == BACKWARDS ? n - 1 - i : i;
    for (uint32_t i = n; order_kind == MIXED && i > 1; i--) {
        uint32_t k = (uint32_t)(next_random() % i), other = order[k];
        order[k] = order[i - 1];
        order[i - 1] = other;
    }
}

static void run_thread(struct thread *t)
{
    if (t->state == BEGINS)
        take_stack(t);
    t->state = RUNS;
    current = t;
    emulated_switch(&scheduler, t->at);
    if (t->state == ENDED)
        give_stack(t);
}

// One turn for each thread that can go on; whether some did.
static bool run_threads(void)
{
    uint32_t order[EMULATED_THREADS];
    bool some = false;
    put_in_order(order, thread_count);
    for (uint32_t i = 0; i < thread_count && !*fault; i++)
        if (threads[order[i]].state <= RUNS) {
            run_thread(&threads[order[i]]);
            some = true;
        }
    for (uint32_t first = 0; first < thread_count; first += WARP)
        some |= let_warp_go(first);
    for (uint32_t barrier = 0; barrier < 16; barrier++)
        some |= let_go(barrier);
    return some;
}

static void run_block(uint32_t number)
{
    block = number;
    barriers = 0;
    has_counted = false;
    counts = 0;
    memset(last_of_warp, 0, sizeof last_of_warp);
    memset(last_of_part, 0, sizeof last_of_part);
    memset(syncs, 0, sizeof syncs);
    memset(shared, 0xff, shared_bytes); // NaNs
    marks_block();
    tensor_block();
    for (uint32_t i = 0; i < thread_count; i++)
        threads[i] = (struct thread){.state = BEGINS};
    while (run_threads() && !*fault)
        continue;
    for (uint32_t i = 0; i < thread_count && !*fault; i++)
        if (threads[i].state != ENDED) {
            current = &threads[i];
            note_fault("waits for threads that do not come");
        }
    for (uint32_t i = 0; i < thread_count; i++)
        give_stack(&threads[i]);
}

static bool is_cooperative(const CUlaunchConfig *config)
{
    bool is = false;
    for (unsigned i = 0; i < config->numAttrs; i++)
        is |= config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE &&
              config->attrs[i].value.cooperative;
    return is;
}

bool emulate(const char *name, void (*thread)(void **), const CUlaunchConfig *config,
             void **operands)
{
    pthread_mutex_lock(&running);
    kernel = name;
    kernel_thread = thread;
    kernel_operands = operands;
    // Blocks that wait for one another are one here.
    block_count = is_cooperative(config) ? 1 : config->gridDimX;
    thread_count = config->blockDimX;
    shared_bytes = config->sharedMemBytes;
    *fault = 0;
    launches++;
    random_state = (uint64_t)fake_number("FAKE_CUDA_SEED", 1) + (uint64_t)launches;
    order_kind = (random_state - 1) % ORDERS;
    memset(known, 0, sizeof known);
    marks_launch();
    uint32_t *order = calloc(block_count, sizeof *order);
    put_in_order(order, block_count);
    // The blocks of a scan wait for those of lower numbers, which a GPU starts first.
    for (uint32_t i = 0; strstr(name, "_once") && i < block_count; i++)
        order[i] = i;
    for (uint32_t i = 0; i < block_count && !*fault; i++)
        run_block(order[i]);
    free(order);
    bool is_right = !*fault;
    pthread_mutex_unlock(&running);
    return is_right;
}
