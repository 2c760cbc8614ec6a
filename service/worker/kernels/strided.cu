// Reads of 4 bytes that lie a stride apart: what a gather gets of the bandwidth.
typedef unsigned long long u64;

constexpr int unroll = 8;

extern "C" __global__ void __launch_bounds__(256)
strided_read(const unsigned* __restrict__ a, u64 count, u64 stride_words, unsigned* __restrict__ sums) {
    const u64 threads = blockDim.x;
    const u64 step = gridDim.x * threads * unroll;
    unsigned sum = 0;
    for (u64 i = blockIdx.x * threads * unroll + threadIdx.x; i < count; i += step) {
        if (i + (unroll - 1) * threads < count) {
            unsigned v[unroll];
#pragma unroll
            for (int j = 0; j < unroll; j++) v[j] = a[(i + j * threads) * stride_words];
#pragma unroll
            for (int j = 0; j < unroll; j++) sum += v[j];
        } else {
            for (u64 j = i; j < count; j += threads) sum += a[j * stride_words];
        }
    }
    sums[blockIdx.x * threads + threadIdx.x] = sum;
}
