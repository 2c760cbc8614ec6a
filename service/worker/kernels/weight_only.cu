// Products of few rows of bf16 with weights of 4 bits, which are widened on their way to the tensor cores (Frantar et
// al., MARLIN, 2024). Weights have a scale for each 128 of the depth of a column, and perhaps a zero point, 8 otherwise.
//
// Weights lie as they are needed: tiles of 16 columns, of each 64 of the depth, of these 16 bytes a lane. A lane has the
// columns r and r + 8 of a tile and 16 neighbours of the depth. Eight elements are a word: column r in the nibbles 0 and
// 2 of both halves, r + 8 in 1 and 3; of two neighbours the second one is in the upper half.
#include "fragments.h"
typedef unsigned long long u64;
typedef unsigned short u16;

constexpr int group = 128, chunk = 64, tiles = 2, block_columns = 16 * tiles;
constexpr int pitch = block_columns + 4;  // Lanes that store at a time have banks of their own.

__device__ __forceinline__ float widen(u16 x) { return __uint_as_float((unsigned)x << 16); }

// The elements 0 to 15 behind the leading bit of 128, less 128 and the zero point: exact in bf16.
__device__ __forceinline__ unsigned widen_pair(unsigned word, int nibble, unsigned zero) {
    return add_pairs((word >> 4 * nibble & 0x000F000Fu) | 0x43004300u, zero);
}

__device__ __forceinline__ unsigned get_word(const uint4& four, int i) {
    return i == 0 ? four.x : i == 1 ? four.y : i == 2 ? four.z : four.w;
}

// 32 columns a block, up to 8 x parts rows; its warps take groups of the depth in turn and add up in the end. Few columns
// keep registers few: warps that wait for each other's arithmetic are hidden by more warps, not by more loads of one.
template <int parts, bool has_zeros>
__device__ __forceinline__ void multiply_packed(
    const uint4* __restrict__ weights, const u16* __restrict__ scales, const unsigned* __restrict__ zeros,
    const u16* __restrict__ x, unsigned* __restrict__ result, unsigned rows, unsigned columns, unsigned depth) {
    constexpr int warps = 8;
    __shared__ float sums[warps][8 * parts * pitch];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
    const unsigned first = blockIdx.x * block_columns, chunks = depth / chunk;
    float out[tiles][parts][4] = {};
    for (unsigned q = warp; q < depth / group; q += warps) {
        // All loads of a group are under way before the first is used. Weights pass the first cache by, where x stays.
        uint4 packed[2][tiles];
        u16 scaled[tiles][2];
        unsigned shifted[tiles][2];
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int tile = 0; tile < tiles; tile++)
                packed[half][tile] =
                    load_once(weights + ((blockIdx.x * tiles + tile) * chunks + 2 * q + half) * 32 + lane);
#pragma unroll
        for (int tile = 0; tile < tiles; tile++) {
            const unsigned column = q * columns + first + 16 * tile;
#pragma unroll
            for (int i = 0; i < 2; i++) {
                scaled[tile][i] = scales[column + r + 8 * i];
                if (has_zeros) shifted[tile][i] = zeros[column / 8 + i];
            }
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            uint4 given[parts][2];
#pragma unroll
            for (int part = 0; part < parts; part++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    const unsigned row = 8 * part + r, place = row * depth + (2 * q + half) * chunk + 16 * c + 8 * i;
                    given[part][i] = row < rows ? *(const uint4*)(x + place) : uint4{0, 0, 0, 0};
                }
#pragma unroll
            for (int tile = 0; tile < tiles; tile++) {
                unsigned zero[2] = {0xC308C308u, 0xC308C308u};
                if (has_zeros)
#pragma unroll
                    for (int i = 0; i < 2; i++)
                        zero[i] = 0xC300C300u + (shifted[tile][i] >> 4 * r & 15) * 0x10001u;
                float sum[parts][4] = {};
#pragma unroll
                for (int step = 0; step < 4; step++) {
                    unsigned a[4];
#pragma unroll
                    for (int i = 0; i < 4; i++) a[i] = widen_pair(get_word(packed[half][tile], step), i, zero[i % 2]);
#pragma unroll
                    for (int part = 0; part < parts; part++) {
                        const uint4& of_step = given[part][step / 2];
                        const int at = step % 2 * 2;
                        multiply<bf16>(sum[part], a, get_word(of_step, at), get_word(of_step, at + 1));
                    }
                }
                const float scale[2] = {widen(scaled[tile][0]), widen(scaled[tile][1])};
#pragma unroll
                for (int part = 0; part < parts; part++)
#pragma unroll
                    for (int i = 0; i < 4; i++) out[tile][part][i] += scale[i / 2] * sum[part][i];
            }
        }
    }
#pragma unroll
    for (int tile = 0; tile < tiles; tile++)
#pragma unroll
        for (int part = 0; part < parts; part++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                sums[warp][(8 * part + 2 * c + i % 2) * pitch + 16 * tile + r + i / 2 * 8] = out[tile][part][i];
    __syncthreads();
    for (unsigned pair = threadIdx.x; pair < rows * block_columns / 2; pair += 32 * warps) {
        const unsigned row = pair / (block_columns / 2), column = pair % (block_columns / 2) * 2;
        float low = 0, high = 0;
#pragma unroll
        for (int other = 0; other < warps; other++) {
            low += sums[other][row * pitch + column];
            high += sums[other][row * pitch + column + 1];
        }
        result[(row * columns + first + column) / 2] = pair_of<bf16>(low, high);
    }
}

#define ARGUMENTS                                                                                       \
    const uint4 *__restrict__ weights, const u16 *__restrict__ scales, const unsigned *__restrict__ zeros, \
        const u16 *__restrict__ x, unsigned *__restrict__ result, u64 rows, u64 columns, u64 depth
#define KERNEL(name, parts, has_zeros)                                                      \
    extern "C" __global__ void __launch_bounds__(256, 4 / (parts)) name(ARGUMENTS) { \
        multiply_packed<parts, has_zeros>(                                                  \
            weights, scales, zeros, x, result, (unsigned)rows, (unsigned)columns, (unsigned)depth); \
    }

KERNEL(weight_only_symmetric_8, 1, false)
KERNEL(weight_only_symmetric_16, 2, false)
KERNEL(weight_only_zeros_8, 1, true)
KERNEL(weight_only_zeros_16, 2, true)
