// What a kernel needs of CUDA, on a processor: its words, its vectors, and a loop over the grid. Built with
// -fsanitize=thread and without its library: the calls before each access are the counters below.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
// One block runs at a time, so one copy is enough.
#define __shared__ static

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
struct dim3 { unsigned x, y, z; };

static dim3 blockIdx, threadIdx, blockDim, gridDim;

static inline unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float __uint_as_float(unsigned bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Rounded to nearest and never fused: what the compiler does here with a plain operation.
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return std::sqrt(a); }
static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }

// One thread runs at a time.
template <class T>
static T atomicAdd(T* at, T more) {
    const T before = *at;
    *at = before + more;
    return before;
}

struct Range { unsigned long long start, end, read, written; };
static Range ranges[8];

#define UNSEEN __attribute__((no_sanitize("thread")))

UNSEEN static void seen(void* address, unsigned long long size, bool is_write) {
    const auto at = (unsigned long long)address;
    for (Range& range : ranges)
        if (at >= range.start && at + size <= range.end) (is_write ? range.written : range.read) += size;
}

extern "C" {
UNSEEN void __tsan_init() {}
UNSEEN void __tsan_func_entry(void*) {}
UNSEEN void __tsan_func_exit(void*) {}
#define COUNTED(size)                                                        \
    UNSEEN void __tsan_read##size(void* at) { seen(at, size, false); }       \
    UNSEEN void __tsan_write##size(void* at) { seen(at, size, true); }
COUNTED(1) COUNTED(2) COUNTED(4) COUNTED(8) COUNTED(16)
UNSEEN void __tsan_read_range(void* at, unsigned long size) { seen(at, size, false); }
UNSEEN void __tsan_write_range(void* at, unsigned long size) { seen(at, size, true); }
UNSEEN void watch(int place, unsigned long long start, unsigned long long size) {
    ranges[place] = {start, start + size, 0, 0};
}
UNSEEN unsigned long long bytes_read(int place) { return ranges[place].read; }
UNSEEN unsigned long long bytes_written(int place) { return ranges[place].written; }
}

template <class... A, std::size_t... I>
static void call(void (*kernel)(A...), const unsigned long long* arguments, std::index_sequence<I...>) {
    kernel((A)arguments[I]...);
}

#ifndef COOPERATIVE
template <class Body>
static void over_block(unsigned threads, bool, Body body) {
    for (unsigned thread = 0; thread < threads; thread++) {
        threadIdx = {thread, 0, 0};
        body();
    }
}
#else
// Threads that wait for each other: a stack for each. Those of a warp go on until all wait for the block, and
// every other block begins with its last thread, so that a barrier that is missing shows in one of them.
#include <ucontext.h>

enum class At { running, warp, block, done };
struct Fiber { ucontext_t context; At at; };
constexpr unsigned warp_threads = 32, most_threads = 1024, stack_bytes = 1 << 16;
static Fiber fibers[most_threads];
static char stacks[most_threads][stack_bytes];
static ucontext_t scheduler;
static unsigned current;
static void* body_of_block;
static unsigned long long slots[warp_threads];

static void wait(At what) {
    fibers[current].at = what;
    swapcontext(&fibers[current].context, &scheduler);
}

static void whole(unsigned mask) {
    if (mask == 0xFFFFFFFFu) return;
    std::fputs("only whole warps exchange\n", stderr);
    std::abort();
}

static inline void __syncthreads() { wait(At::block); }
static inline void __syncwarp(unsigned mask = 0xFFFFFFFFu) { whole(mask); wait(At::warp); }

template <class T>
static T exchanged(unsigned mask, T value, unsigned from) {
    static_assert(sizeof(T) <= sizeof slots[0], "a word at a time");
    whole(mask);
    std::memcpy(&slots[threadIdx.x % warp_threads], &value, sizeof value);
    wait(At::warp);
    std::memcpy(&value, &slots[from], sizeof value);
    wait(At::warp);
    return value;
}

template <class T>
static T __shfl_sync(unsigned mask, T value, unsigned from) { return exchanged(mask, value, from % warp_threads); }

template <class T>
static T __shfl_xor_sync(unsigned mask, T value, unsigned bits) {
    return exchanged(mask, value, (threadIdx.x ^ bits) % warp_threads);
}

template <class T>
static T __shfl_down_sync(unsigned mask, T value, unsigned distance) {
    const unsigned lane = threadIdx.x % warp_threads;
    return exchanged(mask, value, lane + distance < warp_threads ? lane + distance : lane);
}

static unsigned __ballot_sync(unsigned mask, bool holds) {
    whole(mask);
    slots[threadIdx.x % warp_threads] = holds;
    wait(At::warp);
    unsigned found = 0;
    for (unsigned lane = 0; lane < warp_threads; lane++) found |= (unsigned)slots[lane] << lane;
    wait(At::warp);
    return found;
}

template <class Body>
static void entry() {
    (*(Body*)body_of_block)();
    fibers[current].at = At::done;
}

// Lanes of a warp, one after the other, until none of them waits for the others.
static void run_warp(unsigned first, unsigned last, bool backwards) {
    for (unsigned waiting = 1; waiting;) {
        unsigned elsewhere = waiting = 0;
        for (unsigned place = 0; place < last - first; place++) {
            const unsigned thread = backwards ? last - 1 - place : first + place;
            if (fibers[thread].at == At::block || fibers[thread].at == At::done) { elsewhere++; continue; }
            current = thread;
            threadIdx = {thread, 0, 0};
            swapcontext(&scheduler, &fibers[thread].context);
            (fibers[thread].at == At::warp ? waiting : elsewhere)++;
        }
        if (!waiting || !elsewhere) continue;
        std::fputs("a warp waits for lanes that are elsewhere\n", stderr);
        std::abort();
    }
}

template <class Body>
static void over_block(unsigned threads, bool backwards, Body body) {
    body_of_block = &body;
    for (unsigned thread = 0; thread < threads; thread++) {
        Fiber& fiber = fibers[thread];
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = stacks[thread];
        fiber.context.uc_stack.ss_size = stack_bytes;
        fiber.context.uc_link = &scheduler;
        fiber.at = At::running;
        makecontext(&fiber.context, entry<Body>, 0);
    }
    const unsigned warps = (threads + warp_threads - 1) / warp_threads;
    for (bool more = true; more;) {
        for (unsigned place = 0; place < warps; place++) {
            const unsigned first = (backwards ? warps - 1 - place : place) * warp_threads;
            run_warp(first, first + warp_threads < threads ? first + warp_threads : threads, backwards);
        }
        more = false;
        for (unsigned thread = 0; thread < threads; thread++)
            if (fibers[thread].at == At::block) { fibers[thread].at = At::running; more = true; }
    }
}
#endif

template <class... A>
static void over_grid(void (*kernel)(A...), unsigned blocks, unsigned threads, const unsigned long long* arguments) {
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    for (unsigned block = 0; block < blocks; block++) {
        blockIdx = {block, 0, 0};
        over_block(threads, block % 2, [&] { call(kernel, arguments, std::index_sequence_for<A...>()); });
    }
}

template <class... A>
constexpr int arity(void (*)(A...)) {
    return sizeof...(A);
}

#define EXPORT(name)                                                                             \
    extern "C" void run_##name(unsigned blocks, unsigned threads, const unsigned long long* arguments) { \
        over_grid(name, blocks, threads, arguments);                                             \
    }                                                                                            \
    extern "C" int arity_##name() { return arity(name); }
