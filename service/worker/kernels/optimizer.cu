// One update of parameters in mixed precision: a gradient of bf16, master weights and states of fp32, a weight of
// bf16 for the next step. Every operation is rounded by itself, so that the host finds the same bits.
#include "random.h"

// Of AdamW (Loshchilov, Hutter, Decoupled Weight Decay Regularization, ICLR 2019), as floats in bits.
struct Rule { float keep_m, add_m, keep_v, add_v, correct_v, epsilon, rate, decay; };

__device__ __forceinline__ unsigned bf16_of(float value) {
    const unsigned bits = __float_as_uint(value);
    return (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
}

__device__ __forceinline__ float decayed(float weight, const Rule& rule, float step) {
    return __fsub_rn(__fmul_rn(weight, rule.decay), step);
}

__device__ __forceinline__ void adamw_one(float gradient, float& weight, float& m, float& v, const Rule& rule) {
    m = __fadd_rn(__fmul_rn(rule.keep_m, m), __fmul_rn(rule.add_m, gradient));
    v = __fadd_rn(__fmul_rn(rule.keep_v, v), __fmul_rn(rule.add_v, __fmul_rn(gradient, gradient)));
    const float size = __fadd_rn(__fsqrt_rn(__fmul_rn(v, rule.correct_v)), rule.epsilon);
    weight = decayed(weight, rule, __fdiv_rn(__fmul_rn(rule.rate, m), size));
}

__device__ __forceinline__ void momentum_one(float gradient, float& weight, float& m, const Rule& rule) {
    m = __fadd_rn(__fmul_rn(rule.keep_m, m), gradient);
    weight = decayed(weight, rule, __fmul_rn(rule.rate, m));
}

__device__ __forceinline__ float low_half(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high_half(unsigned pair) { return __uint_as_float(pair & 0xFFFF0000u); }

__device__ __forceinline__ uint2 bf16_of(float4 w) {
    return uint2{bf16_of(w.x) | bf16_of(w.y) << 16, bf16_of(w.z) | bf16_of(w.w) << 16};
}

__device__ __forceinline__ Rule rule_of(unsigned keep_m, unsigned add_m, unsigned keep_v, unsigned add_v,
                                        unsigned correct_v, unsigned epsilon, unsigned rate, unsigned decay) {
    return Rule{__uint_as_float(keep_m), __uint_as_float(add_m), __uint_as_float(keep_v), __uint_as_float(add_v),
                __uint_as_float(correct_v), __uint_as_float(epsilon), __uint_as_float(rate), __uint_as_float(decay)};
}

#define RULE unsigned keep_m, unsigned add_m, unsigned keep_v, unsigned add_v, unsigned correct_v, unsigned epsilon, \
             unsigned rate, unsigned decay
#define RULE_OF rule_of(keep_m, add_m, keep_v, add_v, correct_v, epsilon, rate, decay)

// Four parameters of a thread at a time.
extern "C" __global__ void __launch_bounds__(256)
adamw(const uint2* __restrict__ gradients, float4* __restrict__ master, float4* __restrict__ first,
      float4* __restrict__ second, uint2* __restrict__ weights, u64 vectors, RULE) {
    const Rule rule = RULE_OF;
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        const uint2 g = gradients[i];
        float4 w = master[i], m = first[i], v = second[i];
        adamw_one(low_half(g.x), w.x, m.x, v.x, rule);
        adamw_one(high_half(g.x), w.y, m.y, v.y, rule);
        adamw_one(low_half(g.y), w.z, m.z, v.z, rule);
        adamw_one(high_half(g.y), w.w, m.w, v.w, rule);
        master[i] = w;
        first[i] = m;
        second[i] = v;
        weights[i] = bf16_of(w);
    }
}

extern "C" __global__ void __launch_bounds__(256)
sgd_momentum(const uint2* __restrict__ gradients, float4* __restrict__ master, float4* __restrict__ first,
             uint2* __restrict__ weights, u64 vectors, RULE) {
    const Rule rule = RULE_OF;
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        const uint2 g = gradients[i];
        float4 w = master[i], m = first[i];
        momentum_one(low_half(g.x), w.x, m.x, rule);
        momentum_one(high_half(g.x), w.y, m.y, rule);
        momentum_one(low_half(g.y), w.z, m.z, rule);
        momentum_one(high_half(g.y), w.w, m.w, rule);
        master[i] = w;
        first[i] = m;
        weights[i] = bf16_of(w);
    }
}

// A second state begins as a square, because it is a mean of squares.
extern "C" __global__ void __launch_bounds__(256)
fill_squares(float* __restrict__ out, u64 count, u64 seed) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const float x = normal_32(seed, i);
        out[i] = __fmul_rn(x, x);
    }
}

// How many parameters are not as one step from the beginning leaves them; `second` is 0 where there is none.
extern "C" __global__ void __launch_bounds__(256)
optimizer_differences(const float* __restrict__ master, const float* __restrict__ first, const float* __restrict__ second,
                      const unsigned short* __restrict__ weights, u64 count, u64 of_gradient, u64 of_master, u64 of_first,
                      u64 of_second, RULE, u64* __restrict__ sums) {
    const Rule rule = RULE_OF;
    const u64 step = (u64)gridDim.x * blockDim.x, thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 wrong = 0;
    for (u64 i = thread; i < count; i += step) {
        const float gradient = low_half(bf16_of(normal_32(of_gradient, i)));
        float w = normal_32(of_master, i), m = normal_32(of_first, i), x = normal_32(of_second, i);
        float v = __fmul_rn(x, x);
        if (second) adamw_one(gradient, w, m, v, rule);
        else momentum_one(gradient, w, m, rule);
        wrong += master[i] != w || first[i] != m || (second && second[i] != v) || weights[i] != bf16_of(w);
    }
    sums[thread] = wrong;
}
