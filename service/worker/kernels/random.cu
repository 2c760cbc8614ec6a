// Arrays of random numbers, of every format.
#include "random.h"

#define FILL(name, type, expression)                                                              \
    extern "C" __global__ void __launch_bounds__(256) name(type* __restrict__ out, u64 count, u64 seed) { \
        const u64 step = (u64)gridDim.x * blockDim.x;                                             \
        for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)            \
            out[i] = (type)(expression);                                                          \
    }

FILL(fill_fp64, double, normal_64(seed, i))
FILL(fill_fp32, float, normal_32(seed, i))
FILL(fill_bf16, unsigned short, narrow(normal_32(seed, i), 8, 7))
FILL(fill_fp16, unsigned short, narrow(normal_32(seed, i), 5, 10))
FILL(fill_fp8_e4m3, unsigned char, narrow(normal_32(seed, i), 4, 3))
FILL(fill_int8, signed char, (centred_sum(seed, i) + 1024) >> 11)
// Whole numbers below 2^22: b + 3 c of them is exact, so sums over whole arrays can be compared bit by bit.
FILL(fill_whole, float, random_bits(seed, i) >> 42)
