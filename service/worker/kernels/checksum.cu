// Sums over whole arrays, one of each thread; the host adds them up. The plainest loops, because the
// kernels that are timed are checked against them.
typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(256)
sum_words(const unsigned* __restrict__ a, u64 count, u64 stride_words, u64* __restrict__ sums) {
    const u64 step = (u64)gridDim.x * blockDim.x, first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 sum = 0;
    for (u64 i = first; i < count; i += step) sum += a[i * stride_words];
    sums[first] = sum;
}

// For whole numbers: each counts by its place, so that a swap shows, and the sum of b + 3 c is the sum of b
// plus three times that of c, modulo 2^64.
extern "C" __global__ void __launch_bounds__(256)
weighted_sum(const float* __restrict__ a, u64 count, u64* __restrict__ sums) {
    const u64 step = (u64)gridDim.x * blockDim.x, first = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 sum = 0;
    for (u64 i = first; i < count; i += step) sum += (u64)a[i] * (2 * i + 1);
    sums[first] = sum;
}
