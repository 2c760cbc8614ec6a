// Loads of one thread that each wait for the one before: the latency of a level of memory.
typedef unsigned long long u64;

constexpr u64 line_words = 32;

// A single cycle through all lines, whose number is a power of two: full period by Hull and Dobell (1962).
extern "C" __global__ void __launch_bounds__(256)
chase_fill(unsigned* __restrict__ a, u64 lines, u64 factor, u64 increment) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += step)
        a[i * line_words] = (unsigned)((i * factor + increment) & (lines - 1));
}

// Goes on where the last launch ended, so that a launch finds none of the lines of the one before it.
extern "C" __global__ void __launch_bounds__(256)
chase(const unsigned* a, unsigned* place, u64 hops) {
    if (blockIdx.x || threadIdx.x) return;
    unsigned at = *place;
    for (u64 i = 0; i < hops; i++) at = a[at * line_words];
    *place = at;
}
