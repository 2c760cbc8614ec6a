// Gradients of a micro-batch added to the sum of those before it, which is fp32.
#include "random.h"

extern "C" __global__ void __launch_bounds__(256)
accumulate_fp32(float4* __restrict__ sum, const float4* __restrict__ gradients, u64 vectors) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        const float4 s = sum[i], g = gradients[i];
        sum[i] = float4{s.x + g.x, s.y + g.y, s.z + g.z, s.w + g.w};
    }
}

extern "C" __global__ void __launch_bounds__(256)
accumulate_bf16(float4* __restrict__ sum, const uint2* __restrict__ gradients, u64 vectors) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        const float4 s = sum[i];
        const uint2 g = gradients[i];
        sum[i] = float4{s.x + __uint_as_float(g.x << 16), s.y + __uint_as_float(g.x & 0xFFFF0000u),
                        s.z + __uint_as_float(g.y << 16), s.w + __uint_as_float(g.y & 0xFFFF0000u)};
    }
}

// How many sums are not those of the beginning and one gradient.
extern "C" __global__ void __launch_bounds__(256)
accumulation_differences(const float* __restrict__ sum, u64 count, u64 of_sum, u64 of_gradient, unsigned is_bf16,
                         u64* __restrict__ sums) {
    const u64 step = (u64)gridDim.x * blockDim.x, thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 wrong = 0;
    for (u64 i = thread; i < count; i += step) {
        float gradient = normal_32(of_gradient, i);
        if (is_bf16) gradient = __uint_as_float(narrow(gradient, 8, 7) << 16);
        wrong += sum[i] != __fadd_rn(normal_32(of_sum, i), gradient);
    }
    sums[thread] = wrong;
}
