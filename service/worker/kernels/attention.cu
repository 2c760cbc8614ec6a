// Softmax(Q K^T / sqrt(d)) V without the matrix of weights in memory (Dao, FlashAttention-2, 2023), on tensor
// cores. Matrices lie as [sequence][head][token][element]; arithmetic is fp32, weights are rounded for V.
#include "fragments.h"
typedef unsigned long long u64;
typedef unsigned short u16;

constexpr int group_rows = 16;  // Rows of a fragment.
constexpr unsigned everybody = 0xFFFFFFFFu;

// What only the machine's own language says; on a processor the tests bring these.
#ifdef __CUDACC__
__device__ __forceinline__ float power_of_2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ void load_fragments(unsigned (&out)[4], const u16* row) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(at) : "memory");
}

__device__ __forceinline__ void load_fragments_turned(unsigned (&out)[4], const u16* row) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(out[0]), "=r"(out[1]), "=r"(out[2]), "=r"(out[3]) : "r"(at) : "memory");
}

// 16 bytes into shared memory without waiting, zeros where there is nothing to fetch.
__device__ __forceinline__ void fetch(u16* to, const u16* from, bool is_there) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(to), bytes = is_there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(bytes) : "memory");
}

__device__ __forceinline__ void end_of_fetches() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int groups>
__device__ __forceinline__ void await_all_but() {
    asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory");
}
#endif

__device__ __forceinline__ float lowest() { return __uint_as_float(0xFF800000u); }

// Scores are kept in powers of 2: log2(e) / sqrt(d).
template <int head>
__device__ __forceinline__ float scale() {
    return head == 64 ? 0.18033688011112042f : 0.12751741530031636f;
}

// Weight of a part whose largest score is `own` among parts whose largest is `all`.
__device__ __forceinline__ float share(float own, float all) { return own == lowest() ? 0.0f : power_of_2(own - all); }

__device__ __forceinline__ float of_quad(float x, bool largest) {
#pragma unroll
    for (int step = 1; step < 4; step *= 2) {
        const float other = __shfl_xor_sync(everybody, x, step);
        x = largest ? fmaxf(x, other) : x + other;
    }
    return x;
}

// 128 queries of one head a block, 16 a warp; keys and values come in tiles of which two are in flight.
template <int format, int head>
__device__ __forceinline__ void prefill(
    const u16* __restrict__ q, const u16* __restrict__ k, const u16* __restrict__ v, u16* __restrict__ o,
    u64 sequences, u64 query_heads, u64 kv_heads, u64 tokens) {
    constexpr int keys = 32, pitch = head + 8;  // No two rows of a fragment share a bank.
    constexpr int rows = 128, parts = head / 8;
    __shared__ __align__(16) u16 tile_k[2][keys * pitch];
    __shared__ __align__(16) u16 tile_v[2][keys * pitch];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
    const u64 units = sequences * query_heads, tiles = (tokens + rows - 1) / rows;
    const u64 unit = blockIdx.x % units, tile = tiles - 1 - blockIdx.x / units;  // The longest first.
    const u64 of_kv = unit / query_heads * kv_heads + unit % query_heads / (query_heads / kv_heads);
    q += unit * tokens * head, o += unit * tokens * head;
    k += of_kv * tokens * head, v += of_kv * tokens * head;
    const u64 first = tile * rows + warp * 16, row[2] = {first + r, first + r + 8};

    unsigned query[head / 16][4];
#pragma unroll
    for (int step = 0; step < head / 16; step++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const u64 place = row[i % 2] * head + step * 16 + i / 2 * 8 + 2 * c;
            query[step][i] = row[i % 2] < tokens ? *(const unsigned*)(q + place) : 0;
        }
    auto bring = [&](u64 start, int slot) {
#pragma unroll
        for (int j = threadIdx.x; j < keys * parts; j += 256) {
            const u64 key = start + j / parts;
            const int to = j / parts * pitch + j % parts * 8;
            const u64 from = (key < tokens ? key : 0) * head + j % parts * 8;
            fetch(tile_k[slot] + to, k + from, key < tokens);
            fetch(tile_v[slot] + to, v + from, key < tokens);
        }
        end_of_fetches();
    };
    float sum[2] = {}, largest[2] = {lowest(), lowest()}, out[parts][4] = {};
    const u64 last = tile * rows + rows < tokens ? tile * rows + rows : tokens;
    bring(0, 0);
    int slot = 0;
    for (u64 start = 0; start < last; start += keys, slot ^= 1) {
        if (start + keys < last) {
            bring(start + keys, slot ^ 1);
            await_all_but<1>();
        } else {
            await_all_but<0>();
        }
        __syncthreads();
        if (start <= first + 15) {
            float score[keys / 8][4] = {};
#pragma unroll
            for (int step = 0; step < head / 16; step++)
#pragma unroll
                for (int n = 0; n < keys / 8; n += 2) {
                    unsigned b[4];
                    const int i = lane / 8;
                    load_fragments(b, tile_k[slot] + ((n + i / 2) * 8 + lane % 8) * pitch + step * 16 + i % 2 * 8);
                    multiply<format>(score[n], query[step], b[0], b[1]);
                    multiply<format>(score[n + 1], query[step], b[2], b[3]);
                }
            if (start + keys > first + 1) {
#pragma unroll
                for (int n = 0; n < keys / 8; n++)
#pragma unroll
                    for (int i = 0; i < 4; i++)
                        if (start + n * 8 + 2 * c + i % 2 > row[i / 2]) score[n][i] = lowest();
            }
            // The first tile has the first key, which every query sees: from then on `largest` is a number.
            float offset[2], shrunk[2];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float top = lowest();
#pragma unroll
                for (int n = 0; n < keys / 8; n++) top = fmaxf(top, fmaxf(score[n][2 * half], score[n][2 * half + 1]));
                top = fmaxf(largest[half], of_quad(top, true) * scale<head>());
                shrunk[half] = share(largest[half], top);
                largest[half] = offset[half] = top;
                sum[half] *= shrunk[half];
            }
#pragma unroll
            for (int n = 0; n < keys / 8; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    score[n][i] = power_of_2(score[n][i] * scale<head>() - offset[i / 2]);
                    sum[i / 2] += score[n][i];
                }
#pragma unroll
            for (int n = 0; n < parts; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) out[n][i] *= shrunk[i / 2];
#pragma unroll
            for (int step = 0; step < keys / 16; step++) {
                unsigned a[4];
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float* from = score[2 * step + i / 2] + i % 2 * 2;
                    a[i] = pair_of<format>(from[0], from[1]);
                }
#pragma unroll
                for (int n = 0; n < parts; n += 2) {
                    unsigned b[4];
                    const int i = lane / 8;
                    load_fragments_turned(
                        b, tile_v[slot] + (step * 16 + i % 2 * 8 + lane % 8) * pitch + (n + i / 2) * 8);
                    multiply<format>(out[n], a, b[0], b[1]);
                    multiply<format>(out[n + 1], a, b[2], b[3]);
                }
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const float inverse = 1.0f / of_quad(sum[half], false);
        if (row[half] >= tokens) continue;
#pragma unroll
        for (int n = 0; n < parts; n++)
            *(unsigned*)(o + row[half] * head + n * 8 + 2 * c) =
                pair_of<format>(out[n][2 * half] * inverse, out[n][2 * half + 1] * inverse);
    }
}

// Which heads of a query a block of `decode` serves, up to 16 that share keys, and which part of the context.
struct Part {
    u64 first_row, rows, kv, split;
};

__device__ __forceinline__ Part part_of(u64 block, u64 group, u64 splits) {
    const u64 slices = (group + group_rows - 1) / group_rows, unit = block / splits;
    const u64 kv = unit / slices, slice = unit % slices, left = group - slice * group_rows;
    return {kv * group + slice * group_rows, left < group_rows ? left : group_rows, kv, block % splits};
}

// One query a sequence. Each element of the cache is fetched once, into the registers of the one warp that
// multiplies it: elements and keys take places in the fragments such that 16 bytes of a row lie together.
template <int format, int head>
__device__ __forceinline__ void decode(
    const u16* __restrict__ q, const u16* __restrict__ k, const u16* __restrict__ v, float* __restrict__ sums,
    float* __restrict__ tops, const u64* __restrict__ length, u64 capacity, u64 group, u64 splits) {
    constexpr int chunks = head / 32, spans = head / 64, parts = head / 8, held = parts * 4 + 4;
    __shared__ float others[4][held][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, r = lane / 4, c = lane % 4;
    const Part part = part_of(blockIdx.x, group, splits);
    const u64 tokens = *length, step = splits * 8 * 16;
    k += part.kv * capacity * head, v += part.kv * capacity * head;

    uint4 query[2][chunks];
#pragma unroll
    for (int half = 0; half < 2; half++)
#pragma unroll
        for (int j = 0; j < chunks; j++) {
            const u64 row = r + 8 * half;
            query[half][j] = row < part.rows
                ? *(const uint4*)(q + (part.first_row + row) * head + 32 * j + 8 * c) : uint4{0, 0, 0, 0};
        }
    float sum[2] = {}, largest[2] = {lowest(), lowest()}, out[parts][4] = {};
    for (u64 start = (part.split * 8 + warp) * 16; start < tokens; start += step) {
        auto clamped = [&](u64 key) { return (key < tokens ? key : tokens - 1) * head; };
        uint4 key[2][chunks], value[4][spans];
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int j = 0; j < chunks; j++) key[n][j] = *(const uint4*)(k + clamped(start + 8 * n + r) + 32 * j + 8 * c);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int h = 0; h < spans; h++)
                value[i][h] = *(const uint4*)(v + clamped(start + 2 * c + i % 2 + i / 2 * 8) + 64 * h + 8 * r);
        float score[2][4] = {};
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int j = 0; j < chunks; j++) {
                const uint4 &low = query[0][j], &high = query[1][j];
                const unsigned left[4] = {low.x, high.x, low.y, high.y}, right[4] = {low.z, high.z, low.w, high.w};
                multiply<format>(score[n], left, key[n][j].x, key[n][j].y);
                multiply<format>(score[n], right, key[n][j].z, key[n][j].w);
            }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float top = lowest();
#pragma unroll
            for (int n = 0; n < 2; n++)
#pragma unroll
                for (int i = 2 * half; i < 2 * half + 2; i++) {
                    if (start + 8 * n + 2 * c + i % 2 >= tokens) score[n][i] = lowest();
                    top = fmaxf(top, score[n][i]);
                }
            // A tile has one key at least, so this is a number.
            top = fmaxf(largest[half], of_quad(top, true) * scale<head>());
            const float shrunk = share(largest[half], top);
            largest[half] = top;
            sum[half] *= shrunk;
#pragma unroll
            for (int n = 0; n < 2; n++)
#pragma unroll
                for (int i = 2 * half; i < 2 * half + 2; i++) {
                    score[n][i] = power_of_2(score[n][i] * scale<head>() - top);
                    sum[half] += score[n][i];
                }
#pragma unroll
            for (int n = 0; n < parts; n++) out[n][2 * half] *= shrunk, out[n][2 * half + 1] *= shrunk;
        }
        unsigned a[4];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = pair_of<format>(score[i / 2][i % 2 * 2], score[i / 2][i % 2 * 2 + 1]);
#pragma unroll
        for (int n = 0; n < parts; n++) {
            const int h = n / 8, e = n % 8;
            auto word = [&](const uint4& from) { return e < 2 ? from.x : e < 4 ? from.y : e < 6 ? from.z : from.w; };
            const unsigned order = e % 2 ? 0x7632 : 0x5410;
            multiply<format>(out[n], a, __byte_perm(word(value[0][h]), word(value[1][h]), order),
                             __byte_perm(word(value[2][h]), word(value[3][h]), order));
        }
    }
    // The upper half of the warps hands over to the lower half, until one is left.
#pragma unroll
    for (int half = 0; half < 2; half++) sum[half] = of_quad(sum[half], false);
    for (int warps = 4; warps; warps /= 2) {
        if (warp >= warps && warp < 2 * warps) {
            auto& mine = others[warp - warps];
#pragma unroll
            for (int n = 0; n < parts; n++)
#pragma unroll
                for (int i = 0; i < 4; i++) mine[4 * n + i][lane] = out[n][i];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                mine[4 * parts + half][lane] = sum[half];
                mine[4 * parts + 2 + half][lane] = largest[half];
            }
        }
        __syncthreads();
        if (warp < warps) {
            auto& theirs = others[warp];
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const float top = theirs[4 * parts + 2 + half][lane], both = fmaxf(largest[half], top);
                const float left = share(largest[half], both), right = share(top, both);
                largest[half] = both;
                sum[half] = sum[half] * left + theirs[4 * parts + half][lane] * right;
#pragma unroll
                for (int n = 0; n < parts; n++)
#pragma unroll
                    for (int i = 2 * half; i < 2 * half + 2; i++)
                        out[n][i] = out[n][i] * left + theirs[4 * n + i][lane] * right;
            }
        }
        __syncthreads();
    }
    if (warp) return;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const u64 row = r + 8 * half;
        if (row >= part.rows) continue;
        const u64 place = (part.first_row + row) * splits + part.split;
        if (!c) tops[2 * place] = largest[half], tops[2 * place + 1] = sum[half];
#pragma unroll
        for (int n = 0; n < parts; n++)
#pragma unroll
            for (int i = 0; i < 2; i++)
                sums[place * head + n / 8 * 64 + 16 * c + 8 * i + n % 8] = out[n][2 * half + i];
    }
}

// The same for fp32, without tensor cores: a warp takes a key at a time, a lane some elements of it.
template <int head>
__device__ __forceinline__ void decode_single(
    const float* __restrict__ q, const float* __restrict__ k, const float* __restrict__ v, float* __restrict__ sums,
    float* __restrict__ tops, const u64* __restrict__ length, u64 capacity, u64 group, u64 splits) {
    constexpr int own = head / 32, rows = 8;
    __shared__ float others[8][own + 2][32];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const Part part = part_of(blockIdx.x, group, splits);
    const u64 tokens = *length;
    k += part.kv * capacity * head, v += part.kv * capacity * head;
    for (u64 first = 0; first < part.rows; first += rows) {
        float query[rows][own], out[rows][own] = {}, sum[rows] = {}, largest[rows];
#pragma unroll
        for (int g = 0; g < rows; g++) {
            largest[g] = lowest();
            const u64 row = part.first_row + (first + g < part.rows ? first + g : first);
#pragma unroll
            for (int e = 0; e < own; e++) query[g][e] = q[row * head + e * 32 + lane] * scale<head>();
        }
        for (u64 at = part.split * 8 + warp; at < tokens; at += splits * 8) {
            float key[own], value[own];
#pragma unroll
            for (int e = 0; e < own; e++) key[e] = k[at * head + e * 32 + lane], value[e] = v[at * head + e * 32 + lane];
#pragma unroll
            for (int g = 0; g < rows; g++) {
                if (first + g >= part.rows) break;
                float score = 0;
#pragma unroll
                for (int e = 0; e < own; e++) score += query[g][e] * key[e];
#pragma unroll
                for (int step = 16; step; step /= 2) score += __shfl_xor_sync(everybody, score, step);
                const float top = fmaxf(largest[g], score), shrunk = share(largest[g], top);
                const float weight = power_of_2(score - top);
                largest[g] = top;
                sum[g] = sum[g] * shrunk + weight;
#pragma unroll
                for (int e = 0; e < own; e++) out[g][e] = out[g][e] * shrunk + weight * value[e];
            }
        }
#pragma unroll
        for (int g = 0; g < rows; g++) {
            if (first + g >= part.rows) break;
#pragma unroll
            for (int e = 0; e < own; e++) others[warp][e][lane] = out[g][e];
            others[warp][own][lane] = sum[g], others[warp][own + 1][lane] = largest[g];
            __syncthreads();
            if (!warp) {
                float top = lowest(), total = 0, all[own] = {};
#pragma unroll
                for (int w = 0; w < 8; w++) top = fmaxf(top, others[w][own + 1][lane]);
#pragma unroll
                for (int w = 0; w < 8; w++) {
                    const float part_share = share(others[w][own + 1][lane], top);
                    total += part_share * others[w][own][lane];
#pragma unroll
                    for (int e = 0; e < own; e++) all[e] += part_share * others[w][e][lane];
                }
                const u64 place = (part.first_row + first + g) * splits + part.split;
                if (!lane) tops[2 * place] = top, tops[2 * place + 1] = total;
#pragma unroll
                for (int e = 0; e < own; e++) sums[place * head + e * 32 + lane] = all[e];
            }
            __syncthreads();
        }
    }
}

// The parts of the context put together: one element of the result a thread and turn.
template <class Store>
__device__ __forceinline__ void combine(
    const float* __restrict__ sums, const float* __restrict__ tops, u64 rows, u64 head, u64 splits, Store store) {
    const u64 step = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < rows * head; i += step) {
        const u64 row = i / head;
        float top = lowest(), total = 0, out = 0;
        for (u64 s = 0; s < splits; s++) top = fmaxf(top, tops[2 * (row * splits + s)]);
        for (u64 s = 0; s < splits; s++) {
            const u64 place = row * splits + s;
            const float weight = share(tops[2 * place], top);
            total += weight * tops[2 * place + 1];
            out += weight * sums[place * head + i % head];
        }
        store(i, out / total);
    }
}

#define PREFILL(name, format, head)                                                                              \
    extern "C" __global__ void __launch_bounds__(256) name(                                                      \
        const u16* __restrict__ q, const u16* __restrict__ k, const u16* __restrict__ v, u16* __restrict__ o,    \
        u64 sequences, u64 query_heads, u64 kv_heads, u64 tokens) {                                              \
        prefill<format, head>(q, k, v, o, sequences, query_heads, kv_heads, tokens);                             \
    }
#define DECODE(name, type, body)                                                                                 \
    extern "C" __global__ void __launch_bounds__(256) name(                                                      \
        const type* __restrict__ q, const type* __restrict__ k, const type* __restrict__ v,                      \
        float* __restrict__ sums, float* __restrict__ tops, const u64* __restrict__ length, u64 capacity,        \
        u64 group, u64 splits) {                                                                                 \
        body(q, k, v, sums, tops, length, capacity, group, splits);                                              \
    }
#define COMBINE(name, type, value)                                                                               \
    extern "C" __global__ void __launch_bounds__(256) name(                                                      \
        const float* __restrict__ sums, const float* __restrict__ tops, type* __restrict__ o, u64 rows, u64 head, \
        u64 splits) {                                                                                            \
        combine(sums, tops, rows, head, splits, [&](u64 i, float x) { o[i] = (type)(value); });                  \
    }

PREFILL(prefill_bf16_64, bf16, 64)
PREFILL(prefill_bf16_128, bf16, 128)
PREFILL(prefill_fp16_64, fp16, 64)
PREFILL(prefill_fp16_128, fp16, 128)
DECODE(decode_bf16_64, u16, (decode<bf16, 64>))
DECODE(decode_bf16_128, u16, (decode<bf16, 128>))
DECODE(decode_fp16_64, u16, (decode<fp16, 64>))
DECODE(decode_fp16_128, u16, (decode<fp16, 128>))
DECODE(decode_fp32_64, float, decode_single<64>)
DECODE(decode_fp32_128, float, decode_single<128>)
COMBINE(combine_bf16, u16, pair_of<bf16>(x, 0.0f))
COMBINE(combine_fp16, u16, pair_of<fp16>(x, 0.0f))
COMBINE(combine_fp32, float, x)
