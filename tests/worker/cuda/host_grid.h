// What a kernel needs of CUDA, on a processor: its words, its vectors, and a loop over the grid. Built with
// -fsanitize=thread and without its library: the calls before each access are the counters below.
#include <cstring>
#include <utility>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)

struct alignas(16) uint4 { unsigned x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
struct dim3 { unsigned x, y, z; };

static dim3 blockIdx, threadIdx, blockDim, gridDim;

static inline unsigned __float_as_uint(float value) {
    unsigned bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
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

template <class... A>
static void over_grid(void (*kernel)(A...), unsigned blocks, unsigned threads, const unsigned long long* arguments) {
    gridDim = {blocks, 1, 1};
    blockDim = {threads, 1, 1};
    for (unsigned block = 0; block < blocks; block++)
        for (unsigned thread = 0; thread < threads; thread++) {
            blockIdx = {block, 0, 0};
            threadIdx = {thread, 0, 0};
            call(kernel, arguments, std::index_sequence_for<A...>());
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
