// Multiply-adds of warps whose threads take different ways. Each way is a loop of its own with a constant of its
// own, so that no compiler can run two of them as one.
typedef unsigned long long u64;

constexpr int unroll = 32;

// Powers of two of either sign: with a factor of 1, `start` of them and one more for each step, exact below 2^24.
template <int way>
__device__ __forceinline__ float steps_of(unsigned start, u64 steps, float one) {
    constexpr float constant = (way % 2 ? -1.0f : 1.0f) * (float)(1 << way / 2);
    float x = (float)start * constant;
    u64 step = 0;
    for (; step + unroll <= steps; step += unroll) {
#pragma unroll
        for (int j = 0; j < unroll; j++) x = x * one + constant;
    }
#pragma unroll 1
    for (; step < steps; step++) x = x * one + constant;
    return x;
}

#define WAY(way) case way: x = steps_of<way>(start, steps, factor); break;
#define WAYS(way) WAY(way) WAY(way + 1) WAY(way + 2) WAY(way + 3)

// `one` is 1, which the compiler does not know; `starts` has a number below 2^22 for each thread.
extern "C" __global__ void __launch_bounds__(256)
divergence(const unsigned* __restrict__ starts, float* __restrict__ results, u64 threads, u64 steps, unsigned paths,
           unsigned one) {
    const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= threads) return;
    const unsigned start = starts[thread];
    const float factor = (float)one;
    float x = 0.0f;
    switch (threadIdx.x % paths) {
        WAYS(0) WAYS(4) WAYS(8) WAYS(12) WAYS(16) WAYS(20) WAYS(24) WAYS(28)
    }
    results[thread] = x;
}
