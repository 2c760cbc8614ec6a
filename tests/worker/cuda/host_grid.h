// What a kernel needs of CUDA, on a processor: its words, its vectors, and a loop over the grid. Built with
// -fsanitize=thread and without its library: the calls before each access are the counters below.
#include <cmath>
#include <csetjmp>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <ucontext.h>


#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static
#define __align__(bytes) __attribute__((aligned(bytes)))

struct alignas(8) uint2 { unsigned x, y; };
struct alignas(8) float2 { float x, y; };
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
static inline int __float2int_rn(float a) { return (int)std::nearbyint(a); }
static inline int __popc(unsigned bits) { return __builtin_popcount(bits); }

// One thread runs at a time.
template <class T>
static T atomicAdd(T* at, T more) {
    const T before = *at;
    *at = before + more;
    return before;
}

static inline unsigned __byte_perm(unsigned low, unsigned high, unsigned order) {
    const unsigned long long bytes = (unsigned long long)high << 32 | low;
    unsigned out = 0;
    for (int i = 0; i < 4; i++) out |= (unsigned)(bytes >> (order >> 4 * i & 7) * 8 & 255) << 8 * i;
    return out;
}

struct Range { unsigned long long start, end, read, written; };
static Range ranges[8];
static bool is_watching;

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
#define COUNTED(size)                                                                         \
    UNSEEN void __tsan_read##size(void* at) { if (is_watching) seen(at, size, false); }       \
    UNSEEN void __tsan_write##size(void* at) { if (is_watching) seen(at, size, true); }
COUNTED(1) COUNTED(2) COUNTED(4) COUNTED(8) COUNTED(16)
UNSEEN void __tsan_read_range(void* at, unsigned long size) { if (is_watching) seen(at, size, false); }
UNSEEN void __tsan_write_range(void* at, unsigned long size) { if (is_watching) seen(at, size, true); }
UNSEEN void watch(int place, unsigned long long start, unsigned long long size) {
    ranges[place] = {start, start + size, 0, 0};
    is_watching = false;
    for (const Range& range : ranges) is_watching |= range.end > range.start;
}
UNSEEN unsigned long long bytes_read(int place) { return ranges[place].read; }
UNSEEN unsigned long long bytes_written(int place) { return ranges[place].written; }
}

template <class... A, std::size_t... I>
static void call(void (*kernel)(A...), const unsigned long long* arguments, std::index_sequence<I...>) {
    kernel((A)arguments[I]...);
}

// Threads that wait for each other: each has a stack of its own, and hands over where it has to wait. All of
// a launch are made once and go through the blocks together.
constexpr int most_threads = 1024;
struct Fiber { ucontext_t start; jmp_buf at; bool is_new, is_over; unsigned turn; char* stack; };
struct Barrier { unsigned arrived, generation; };
static Fiber fibers[most_threads];
static Barrier block_barrier, warp_barriers[most_threads / 32];
static int current;
static unsigned waited;
static jmp_buf home;
static unsigned long long words[most_threads / 32][2][32][8];

UNSEEN __attribute__((noinline, noclone, noreturn)) static void resume(int next) {
    current = next;
    if (!fibers[next].is_new) _longjmp(fibers[next].at, 1);
    fibers[next].is_new = false;
    setcontext(&fibers[next].start);
    std::abort();
}

UNSEEN static int another() {
    int next = current;
    do next = (next + 1) % (int)blockDim.x;
    while (fibers[next].is_over && next != current);
    return next;
}

UNSEEN __attribute__((noinline, noclone)) static void hand_over() {
    // Nobody arrives any more: a thread left while others wait for it, which a device does not bear either.
    if (++waited > 100'000'000) std::abort();
    if (!_setjmp(fibers[current].at)) resume(another());
    threadIdx.x = current;
}

UNSEEN static void arrive(Barrier& barrier, unsigned threads) {
    const unsigned generation = barrier.generation;
    if (++barrier.arrived == threads) {
        barrier.arrived = waited = 0;
        barrier.generation++;
    }
    while (*(volatile unsigned*)&barrier.generation == generation) hand_over();
}

UNSEEN static inline void __syncthreads() { arrive(block_barrier, blockDim.x); }
UNSEEN static inline void __syncwarp(unsigned = ~0u) {
    arrive(warp_barriers[current / 32], blockDim.x < 32 ? blockDim.x : 32);
}

// What each lane of a warp shows the others; two places in turn, so that one wait is enough.
typedef unsigned long long Shown[32][8];
template <class T>
UNSEEN static Shown& show(const T* values, int count) {
    static_assert(sizeof(T) <= 8);
    auto& shown = words[current / 32][fibers[current].turn++ % 2];
    for (int i = 0; i < count; i++) std::memcpy(&shown[current % 32][i], values + i, sizeof(T));
    __syncwarp();
    return shown;
}

template <class T>
UNSEEN static T __shfl_sync(unsigned, T value, int lane) {
    T found;
    std::memcpy(&found, &show(&value, 1)[lane % 32][0], sizeof found);
    return found;
}
template <class T>
UNSEEN static T __shfl_xor_sync(unsigned all, T value, int bits) {
    return __shfl_sync(all, value, current % 32 ^ bits);
}
template <class T>
UNSEEN static T __shfl_down_sync(unsigned all, T value, int places) {
    const int lane = current % 32;
    return __shfl_sync(all, value, lane + places < 32 ? lane + places : lane);
}
UNSEEN static inline unsigned __ballot_sync(unsigned, int is_set) {
    auto& shown = show(&is_set, 1);
    unsigned all = 0;
    for (int lane = 0; lane < 32; lane++) all |= (unsigned)((int)shown[lane][0] != 0) << lane;
    return all;
}

// Tensor cores: each lane shows its part of A and B and works out its own part of C (PTX ISA, 9.7.14).
UNSEEN static inline float number_of(unsigned short bits, bool is_bf16) {
    if (is_bf16) return __uint_as_float((unsigned)bits << 16);
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const float size = exponent == 31 ? (mantissa ? NAN : INFINITY)
        : exponent ? std::ldexp(1024.0f + mantissa, exponent - 25) : std::ldexp((float)mantissa, -24);
    return bits >> 15 ? -size : size;
}
UNSEEN static inline unsigned short bits_of(float value, bool is_bf16) {
    const unsigned bits = __float_as_uint(value);
    if (is_bf16) return (unsigned short)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
    const float size = std::fabs(value);
    const unsigned sign = bits >> 31 << 15;
    if (size == 0) return (unsigned short)sign;
    if (size >= 65520.0f) return (unsigned short)(sign | 0x7C00);
    int exponent;
    std::frexp(size, &exponent);
    const int least = exponent < -13 ? -24 : exponent - 11;  // Of the last bit.
    const unsigned units = (unsigned)std::nearbyint(std::ldexp(size, -least));
    return (unsigned short)(sign | (least == -24 ? units : ((unsigned)(exponent + 13) << 10) + units));
}
UNSEEN static float half_of(const Shown& shown, int lane, int word, int high, bool is_bf16) {
    return number_of((unsigned short)(shown[lane][word] >> 16 * high), is_bf16);
}
template <int format>
UNSEEN static void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    const bool is_bf16 = !format;
    const unsigned mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
    const auto& shown = show(mine, 6);
    const int lane = current % 32;
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
        double sum = c[i];
        for (int k = 0; k < 16; k++) {
            const int quad = k % 8 / 2, high = k % 2;
            sum += (double)half_of(shown, row % 8 * 4 + quad, row / 8 + k / 8 * 2, high, is_bf16)
                * half_of(shown, column * 4 + quad, 4 + k / 8, high, is_bf16);
        }
        c[i] = (float)sum;
    }
}
template <int format>
UNSEEN static unsigned pair_of(float low, float high) {
    return bits_of(low, !format) | (unsigned)bits_of(high, !format) << 16;
}
UNSEEN static uint4 load_once(const uint4* place) { return *place; }

UNSEEN static unsigned add_pairs(unsigned a, unsigned b) {
    const auto value = [](unsigned bits) { return __uint_as_float(bits << 16); };
    return bits_of(value(a) + value(b), true) | (unsigned)bits_of(value(a >> 16) + value(b >> 16), true) << 16;
}
static inline float power_of_2(float x) { return std::exp2(x); }
UNSEEN static void load_fragments(unsigned (&out)[4], const unsigned short* row) {
    const auto& shown = show(&row, 1);
    const int lane = current % 32;
    for (int i = 0; i < 4; i++)
        std::memcpy(&out[i], (const unsigned short*)shown[8 * i + lane / 4][0] + lane % 4 * 2, 4);
}
UNSEEN static void load_fragments_turned(unsigned (&out)[4], const unsigned short* row) {
    const auto& shown = show(&row, 1);
    const int lane = current % 32;
    for (int i = 0; i < 4; i++) {
        const auto low = ((const unsigned short*)shown[8 * i + lane % 4 * 2][0])[lane / 4];
        const auto high = ((const unsigned short*)shown[8 * i + lane % 4 * 2 + 1][0])[lane / 4];
        out[i] = low | (unsigned)high << 16;
    }
}
// Copies without waiting arrive when they are awaited, as late as a device may make them.
struct Copy { unsigned short* to; const unsigned short* from; bool is_there; };
struct Copies { Copy all[64]; int count, ends[8], groups; };
static Copies pending[most_threads];
static inline void fetch(unsigned short* to, const unsigned short* from, bool is_there) {
    Copies& own = pending[current];
    if (own.count == 64) std::abort();
    own.all[own.count++] = {to, from, is_there};
}
static inline void end_of_fetches() {
    Copies& own = pending[current];
    own.ends[own.groups++] = own.count;
}
template <int groups>
static void await_all_but() {
    Copies& own = pending[current];
    if (own.groups <= groups) return;
    const int done = own.groups - groups, until = own.ends[done - 1];
    for (int i = 0; i < until; i++) {
        const uint4 fetched = own.all[i].is_there ? *(const uint4*)own.all[i].from : uint4{0, 0, 0, 0};
        std::memcpy(own.all[i].to, &fetched, 16);
    }
    std::memmove(own.all, own.all + until, sizeof(Copy) * (own.count - until));
    for (int i = done; i < own.groups; i++) own.ends[i - done] = own.ends[i] - until;
    own.count -= until;
    own.groups = groups;
}

static void (*body)(void*);
static void* launched;

UNSEEN static void thread_of_grid() {
    threadIdx.x = current;
    for (unsigned block = 0; block < gridDim.x; block++) {
        blockIdx.x = block;
        body(launched);
        __syncthreads();
    }
    fibers[current].is_over = true;
    const int next = another();
    if (next == current) _longjmp(home, 1);
    resume(next);
}

UNSEEN static void together(void (*kernel)(void*), void* arguments) {
    constexpr std::size_t stack = 64 * 1024;
    body = kernel, launched = arguments;
    block_barrier = {}, current = 0, waited = 0;
    std::memset(warp_barriers, 0, sizeof warp_barriers);
    for (unsigned thread = 0; thread < blockDim.x; thread++) {
        Fiber& fiber = fibers[thread];
        if (!fiber.stack) fiber.stack = (char*)std::malloc(stack);
        fiber.is_new = true, fiber.is_over = false, fiber.turn = 0;
        pending[thread].count = pending[thread].groups = 0;
        getcontext(&fiber.start);
        fiber.start.uc_stack.ss_sp = fiber.stack;
        fiber.start.uc_stack.ss_size = stack;
        fiber.start.uc_link = nullptr;
        makecontext(&fiber.start, thread_of_grid, 0);
    }
    if (!_setjmp(home)) resume(0);
}

template <class... A>
static void over_grid(void (*kernel)(A...), unsigned blocks, unsigned threads, bool waits, const unsigned long long* arguments) {
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    auto one = [&] { call(kernel, arguments, std::index_sequence_for<A...>()); };
    if (waits) return together([](void* all) { (*(decltype(one)*)all)(); }, &one);
    for (unsigned block = 0; block < blocks; block++)
        for (unsigned thread = 0; thread < threads; thread++) {
            blockIdx = {block, 0, 0};
            threadIdx = {thread, 0, 0};
            one();
        }
}

template <class... A>
constexpr int arity(void (*)(A...)) {
    return sizeof...(A);
}

#define EXPORT(name, waits)                                                                      \
    extern "C" void run_##name(unsigned blocks, unsigned threads, const unsigned long long* arguments) { \
        over_grid(name, blocks, threads, waits, arguments);                                      \
    }                                                                                            \
    extern "C" int arity_##name() { return arity(name); }
