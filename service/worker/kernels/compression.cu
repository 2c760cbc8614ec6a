// Gradients made smaller before they are sent. What is lost is kept as an error and added to the gradients of the next
// step (Karimireddy, Rebjock, Stich, Jaggi, Error Feedback Fixes SignSGD, ICML 2019).
#include "random.h"

constexpr unsigned all_lanes = 0xFFFFFFFFu, warp = 32;

__device__ __forceinline__ float4 plus(float4 a, float4 b) {
    return float4{__fadd_rn(a.x, b.x), __fadd_rn(a.y, b.y), __fadd_rn(a.z, b.z), __fadd_rn(a.w, b.w)};
}

// |value| in bits, which order as the sizes do.
__device__ __forceinline__ unsigned size_bits(float value) { return __float_as_uint(value) & 0x7FFFFFFFu; }
__device__ __forceinline__ float size_of(float value) { return __uint_as_float(size_bits(value)); }
__device__ __forceinline__ float larger(float a, float b) { return a > b ? a : b; }

// ---- 8 bits with a scale a block of 1024: a warp does a block, 8 vectors of each lane.

struct Scale { float one, inverse; };

__device__ __forceinline__ Scale scale_of(float largest) {
    if (largest == 0.0f) return Scale{0.0f, 0.0f};
    return Scale{__fdiv_rn(largest, 127.0f), __fdiv_rn(127.0f, largest)};
}

__device__ __forceinline__ int quantized(float value, const Scale& scale) {
    return __float2int_rn(__fmul_rn(value, scale.inverse));
}

__device__ __forceinline__ float lost(float value, int quant, const Scale& scale) {
    return __fsub_rn(value, __fmul_rn((float)quant, scale.one));
}

extern "C" __global__ void __launch_bounds__(256)
compress_int8(const float4* __restrict__ gradients, float4* __restrict__ errors, unsigned* __restrict__ sent,
              float* __restrict__ scales, u64 blocks) {
    constexpr int held = 8;
    const u64 lane = threadIdx.x % warp, step = (u64)gridDim.x * blockDim.x / warp;
    for (u64 block = ((u64)blockIdx.x * blockDim.x + threadIdx.x) / warp; block < blocks; block += step) {
        const u64 first = block * held * warp + lane;
        float4 v[held];
        float largest = 0.0f;
#pragma unroll
        for (int j = 0; j < held; j++) v[j] = plus(gradients[first + j * warp], errors[first + j * warp]);
#pragma unroll
        for (int j = 0; j < held; j++)
            largest = larger(largest, larger(larger(size_of(v[j].x), size_of(v[j].y)),
                                             larger(size_of(v[j].z), size_of(v[j].w))));
#pragma unroll
        for (int bits = warp / 2; bits; bits /= 2) largest = larger(largest, __shfl_xor_sync(all_lanes, largest, bits));
        const Scale scale = scale_of(largest);
#pragma unroll
        for (int j = 0; j < held; j++) {
            const float4 p = v[j];
            const int x = quantized(p.x, scale), y = quantized(p.y, scale);
            const int z = quantized(p.z, scale), w = quantized(p.w, scale);
            errors[first + j * warp] = float4{lost(p.x, x, scale), lost(p.y, y, scale), lost(p.z, z, scale),
                                              lost(p.w, w, scale)};
            sent[first + j * warp] = (x & 255) | (y & 255) << 8 | (z & 255) << 16 | (unsigned)(w & 255) << 24;
        }
        if (lane == 0) scales[block] = scale.one;
    }
}

// ---- One bit with a scale: the mean size of all.

extern "C" __global__ void __launch_bounds__(256)
sign_sizes(const float4* __restrict__ gradients, const float4* __restrict__ errors, u64 vectors,
           double* __restrict__ sums) {
    const u64 step = (u64)gridDim.x * blockDim.x, thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    double sum = 0;
    for (u64 i = thread; i < vectors; i += step) {
        const float4 p = plus(gradients[i], errors[i]);
        sum += size_of(p.x) + size_of(p.y) + size_of(p.z) + size_of(p.w);
    }
    sums[thread] = sum;
}

// One block.
extern "C" __global__ void __launch_bounds__(256)
sign_scale(const double* __restrict__ sums, u64 threads, u64 count, float* __restrict__ scale) {
    __shared__ double held[256];
    double sum = 0;
    for (u64 i = threadIdx.x; i < threads; i += blockDim.x) sum += sums[i];
    held[threadIdx.x] = sum;
    __syncthreads();
    for (unsigned half = blockDim.x / 2; half; half /= 2) {
        if (threadIdx.x < half) held[threadIdx.x] += held[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) *scale = (float)(held[0] / (double)count);
}

__device__ __forceinline__ float lost_of_sign(float value, float scale) {
    return __fsub_rn(value, value < 0.0f ? -scale : scale);
}

// Word 4 t + j has a bit for each lane of warp t: whether component j of its vector is below 0.
extern "C" __global__ void __launch_bounds__(256)
compress_sign(const float4* __restrict__ gradients, float4* __restrict__ errors, unsigned* __restrict__ sent,
              const float* __restrict__ scale, u64 vectors) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    const unsigned lane = threadIdx.x % warp;
    const float one = *scale;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        const float4 p = plus(gradients[i], errors[i]);
        const unsigned x = __ballot_sync(all_lanes, p.x < 0.0f), y = __ballot_sync(all_lanes, p.y < 0.0f);
        const unsigned z = __ballot_sync(all_lanes, p.z < 0.0f), w = __ballot_sync(all_lanes, p.w < 0.0f);
        errors[i] = float4{lost_of_sign(p.x, one), lost_of_sign(p.y, one), lost_of_sign(p.z, one),
                           lost_of_sign(p.w, one)};
        if (lane < 4) sent[i / warp * 4 + lane] = lane == 0 ? x : lane == 1 ? y : lane == 2 ? z : w;
    }
}

// ---- The largest with their places: their least size is found digit by digit from the top (radix selection).

constexpr unsigned bins = 2048;
struct Selection { unsigned prefix, remaining, taken, ties; };

// One block.
extern "C" __global__ void __launch_bounds__(256)
select_begin(Selection* __restrict__ selection, unsigned* __restrict__ histogram, unsigned wanted) {
    for (unsigned bin = threadIdx.x; bin < bins; bin += blockDim.x) histogram[bin] = 0;
    if (threadIdx.x == 0) *selection = Selection{0, wanted, 0, 0};
}

// Every warp's numbers fall into few bins of the first digit, so several copies share the load.
constexpr unsigned copies = 4;

__device__ __forceinline__ void clear(unsigned* held, unsigned count) {
    for (unsigned bin = threadIdx.x; bin < count; bin += blockDim.x) held[bin] = 0;
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(256)
select_first(const float4* __restrict__ gradients, float4* __restrict__ errors, u64 vectors,
             unsigned* __restrict__ histogram) {
    __shared__ unsigned held[copies][bins];
    clear(held[0], copies * bins);
    unsigned* const own = held[threadIdx.x % copies];
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        const float4 p = plus(gradients[i], errors[i]);
        errors[i] = p;
        atomicAdd(own + (size_bits(p.x) >> 20), 1u);
        atomicAdd(own + (size_bits(p.y) >> 20), 1u);
        atomicAdd(own + (size_bits(p.z) >> 20), 1u);
        atomicAdd(own + (size_bits(p.w) >> 20), 1u);
    }
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < bins; bin += blockDim.x) {
        unsigned sum = 0;
        for (unsigned copy = 0; copy < copies; copy++) sum += held[copy][bin];
        if (sum) atomicAdd(histogram + bin, sum);
    }
}

// Sizes whose bits above `shift` + 10 are those found so far; of them the next 10 bits.
extern "C" __global__ void __launch_bounds__(256)
select_next(const float4* __restrict__ errors, u64 vectors, const Selection* __restrict__ selection,
            unsigned* __restrict__ histogram, unsigned shift) {
    __shared__ unsigned held[bins / 2];
    clear(held, bins / 2);
    const unsigned prefix = selection->prefix >> (shift + 10);
    const auto count = [&](float value) {
        const unsigned bits = size_bits(value);
        if (bits >> (shift + 10) == prefix) atomicAdd(held + (bits >> shift & 1023), 1u);
    };
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) {
        const float4 p = errors[i];
        count(p.x);
        count(p.y);
        count(p.z);
        count(p.w);
    }
    __syncthreads();
    for (unsigned bin = threadIdx.x; bin < bins / 2; bin += blockDim.x)
        if (held[bin]) atomicAdd(histogram + bin, held[bin]);
}

// One block: the bin in which the last of the wanted lies, counted from the top. Leaves the histogram empty.
extern "C" __global__ void __launch_bounds__(256)
select_digit(Selection* __restrict__ selection, unsigned* __restrict__ histogram, unsigned shift) {
    constexpr unsigned each = bins / 256;
    __shared__ unsigned above[257];
    const unsigned thread = threadIdx.x, wanted = selection->remaining;
    unsigned own[each], sum = 0;
#pragma unroll
    for (unsigned j = 0; j < each; j++) sum += own[j] = histogram[thread * each + j];
    above[thread] = sum;
    if (thread == 0) above[256] = 0;
    __syncthreads();
    for (unsigned distance = 1; distance < 256; distance *= 2) {
        const unsigned more = thread + distance < 256 ? above[thread + distance] : 0;
        __syncthreads();
        above[thread] += more;
        __syncthreads();
    }
#pragma unroll
    for (unsigned j = 0; j < each; j++) histogram[thread * each + j] = 0;
    unsigned before = above[thread + 1];
    if (before >= wanted || before + sum < wanted) return;
#pragma unroll
    for (unsigned j = each; j-- > 0;) {
        if (before < wanted && before + own[j] >= wanted) {
            selection->prefix |= (thread * each + j) << shift;
            selection->remaining = wanted - before;
        }
        before += own[j];
    }
}

// Takes what is larger than the size found, and as many of its equals as are still wanted; what is sent is no error.
extern "C" __global__ void __launch_bounds__(256)
select_take(float4* __restrict__ errors, u64 vectors, Selection* __restrict__ selection, unsigned* __restrict__ places,
            float* __restrict__ values) {
    constexpr int rows = 4;
    __shared__ unsigned taken, base;
    const unsigned least = selection->prefix, equals = selection->remaining;
    const u64 tile = (u64)blockDim.x * rows;
    for (u64 first = blockIdx.x * tile; first < vectors; first += gridDim.x * tile) {
        if (threadIdx.x == 0) taken = 0;
        __syncthreads();
        float p[rows][4];
        unsigned chosen = 0;
#pragma unroll
        for (int row = 0; row < rows; row++) {
            const u64 i = first + row * blockDim.x + threadIdx.x;
            const float4 v = i < vectors ? errors[i] : float4{0.0f, 0.0f, 0.0f, 0.0f};
            p[row][0] = v.x, p[row][1] = v.y, p[row][2] = v.z, p[row][3] = v.w;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const unsigned bits = size_bits(p[row][j]);
                bool takes = bits > least;
                if (bits == least && i < vectors) takes = atomicAdd(&selection->ties, 1u) < equals;
                chosen |= (unsigned)takes << (4 * row + j);
            }
        }
        unsigned at = chosen ? atomicAdd(&taken, (unsigned)__popc(chosen)) : 0;
        __syncthreads();
        if (threadIdx.x == 0) base = taken ? atomicAdd(&selection->taken, taken) : 0;
        __syncthreads();
        at += base;
#pragma unroll
        for (int row = 0; row < rows; row++) {
            const unsigned of_row = chosen >> 4 * row & 15;
            if (!of_row) continue;
            const u64 i = first + row * blockDim.x + threadIdx.x;
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (!(of_row >> j & 1)) continue;
                places[at] = (unsigned)(4 * i + j);
                values[at++] = p[row][j];
                p[row][j] = 0.0f;
            }
            errors[i] = float4{p[row][0], p[row][1], p[row][2], p[row][3]};
        }
    }
}

// ---- What the kernels above are checked with: the plainest loops over what the seeds say.

__device__ __forceinline__ float wanted_sum(u64 of_gradient, u64 of_error, u64 place) {
    return __fadd_rn(normal_32(of_gradient, place), normal_32(of_error, place));
}

extern "C" __global__ void __launch_bounds__(256)
int8_differences(const float* __restrict__ errors, const signed char* __restrict__ sent,
                 const float* __restrict__ scales, u64 blocks, u64 of_gradient, u64 of_error, u64* __restrict__ sums) {
    const u64 step = (u64)gridDim.x * blockDim.x, thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 wrong = 0;
    for (u64 block = thread; block < blocks; block += step) {
        float largest = 0.0f;
        for (u64 i = block * 1024; i < block * 1024 + 1024; i++)
            largest = larger(largest, size_of(wanted_sum(of_gradient, of_error, i)));
        const Scale scale = scale_of(largest);
        wrong += scales[block] != scale.one;
        for (u64 i = block * 1024; i < block * 1024 + 1024; i++) {
            const float p = wanted_sum(of_gradient, of_error, i);
            const int quant = quantized(p, scale);
            wrong += sent[i] != quant || errors[i] != lost(p, quant, scale);
        }
    }
    sums[thread] = wrong;
}

extern "C" __global__ void __launch_bounds__(256)
sign_differences(const float* __restrict__ errors, const unsigned* __restrict__ sent, const float* __restrict__ scale,
                 u64 count, u64 of_gradient, u64 of_error, u64* __restrict__ sums) {
    const u64 step = (u64)gridDim.x * blockDim.x, thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 wrong = 0;
    for (u64 i = thread; i < count; i += step) {
        const float p = wanted_sum(of_gradient, of_error, i);
        const bool below = sent[i / 128 * 4 + i % 4] >> (i % 128 / 4) & 1;
        wrong += below != (p < 0.0f) || errors[i] != lost_of_sign(p, *scale);
    }
    sums[thread] = wrong;
}

// Sizes in units of 2^-20, which add up without rounding.
extern "C" __global__ void __launch_bounds__(256)
sizes_in_units(u64 count, u64 of_gradient, u64 of_error, u64* __restrict__ sums) {
    const u64 step = (u64)gridDim.x * blockDim.x, thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 sum = 0;
    for (u64 i = thread; i < count; i += step)
        sum += (u64)((double)size_of(wanted_sum(of_gradient, of_error, i)) * 1048576.0 + 0.5);
    sums[thread] = sum;
}

// Elements that were sent, and 2^40 where any error is not what it has to be: 0 above the least size that is sent, 0 or
// the whole at it, the whole below.
extern "C" __global__ void __launch_bounds__(256)
select_differences(const float* __restrict__ errors, u64 count, u64 of_gradient, u64 of_error, unsigned least,
                   u64* __restrict__ sums) {
    const u64 step = (u64)gridDim.x * blockDim.x, thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    u64 sent = 0, wrong = 0;
    for (u64 i = thread; i < count; i += step) {
        const float p = wanted_sum(of_gradient, of_error, i), error = errors[i];
        const unsigned bits = size_bits(p);
        const bool is_sent = error == 0.0f && bits;
        sent += is_sent;
        wrong |= is_sent ? bits < least : error != p || bits > least;
    }
    sums[thread] = sent + (wrong << 40);
}
