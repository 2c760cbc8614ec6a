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
// Two elements of 4 bits a byte, the first one in the lower half.
FILL(fill_fp4_e2m1, unsigned char, narrow(normal_32(seed, 2 * i), 2, 1) | narrow(normal_32(seed, 2 * i + 1), 2, 1) << 4)
// Scales of blocks: a half, one or two as an exponent; 0.5 to 2 as fp8; 0.5 to 1.5 in steps of 2^-20.
FILL(fill_ue8m0, unsigned char, 126 + random_bits(seed, i) % 3)
FILL(fill_ue4m3, unsigned char, 0x30 + random_bits(seed, i) % 17)
FILL(fill_scale, float, 0.5f + (float)(random_bits(seed, i) >> 44) * 9.5367431640625e-07f)
// Eight elements of 4 bits, and scales of groups of them: bf16 from 2^-7 to 2^-5.
FILL(fill_words, unsigned, random_bits(seed, i) >> 32)
FILL(fill_group_scale, unsigned short, 0x3C00 + random_bits(seed, i) % 256)
// Whole numbers below 2^22: b + 3 c of them is exact, so sums over whole arrays can be compared bit by bit.
FILL(fill_whole, float, random_bits(seed, i) >> 42)
