// Flushes the cache, and spoils outputs.
typedef unsigned long long u64;

// Reads a buffer several times as large as the cache. What stays in it is clean: lines that it had written would
// go to memory during whatever is timed next. No word of the buffer is 0, so nothing is stored, which no compiler can
// know: it can leave out no read.
extern "C" __global__ void __launch_bounds__(256)
flush(const uint4* __restrict__ a, u64 vectors, unsigned* __restrict__ never) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    unsigned common = ~0u;
#pragma unroll 4
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        const uint4 v = a[i];
        common &= v.x & v.y & v.z & v.w;
    }
    if (common == 0) *never = common;
}

// Overwrites an output before it is checked.
extern "C" __global__ void __launch_bounds__(256)
spoil(uint4* __restrict__ a, u64 vectors, u64 word) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    const unsigned w = (unsigned)word;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step)
        a[i] = uint4{w, w, w, w};
}
