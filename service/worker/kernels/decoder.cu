// What lies between the products of a decoder, forward and backward: norms, rotation, softmax, gates, loss and
// the update. Each exists for bf16 and for fp32; arithmetic is fp32. A row is a token unless it is said otherwise.
typedef unsigned long long u64;
typedef unsigned short u16;

constexpr float epsilon = 1e-5f;
constexpr unsigned everybody = 0xFFFFFFFFu;

__device__ __forceinline__ float value_of(u16 x) { return __uint_as_float((unsigned)x << 16); }
__device__ __forceinline__ float value_of(float x) { return x; }
__device__ __forceinline__ void set(float& to, float x) { to = x; }
__device__ __forceinline__ void set(u16& to, float x) {
    const unsigned bits = __float_as_uint(x);
    to = (u16)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

template <bool takes_largest>
__device__ __forceinline__ float of_block(float x) {
    __shared__ float parts[8];
#pragma unroll
    for (int step = 16; step; step /= 2) {
        const float other = __shfl_xor_sync(everybody, x, step);
        x = takes_largest ? fmaxf(x, other) : x + other;
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
#pragma unroll
    for (int warp = 1; warp < 8; warp++) x = takes_largest ? fmaxf(x, parts[warp]) : x + parts[warp];
    return x;
}

__device__ __forceinline__ u64 first_place() { return (u64)blockIdx.x * blockDim.x + threadIdx.x; }
__device__ __forceinline__ u64 places() { return (u64)gridDim.x * blockDim.x; }

template <class T>
__device__ __forceinline__ void embed(
    T* __restrict__ x, const T* __restrict__ table, const unsigned* __restrict__ ids, u64 rows, u64 hidden) {
    for (u64 i = first_place(); i < rows * hidden; i += places()) x[i] = table[ids[i / hidden] * hidden + i % hidden];
}

// y = x / sqrt(mean x^2 + epsilon); the factor of each row is kept for the way back.
template <class T>
__device__ __forceinline__ void norm(
    T* __restrict__ y, float* __restrict__ factors, const T* __restrict__ x, u64 rows, u64 hidden) {
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        float sum = 0;
        for (u64 i = threadIdx.x; i < hidden; i += blockDim.x) {
            const float one = value_of(x[row * hidden + i]);
            sum += one * one;
        }
        const float factor = 1.0f / sqrtf(of_block<false>(sum) / hidden + epsilon);
        if (!threadIdx.x) factors[row] = factor;
        for (u64 i = threadIdx.x; i < hidden; i += blockDim.x) set(y[row * hidden + i], value_of(x[row * hidden + i]) * factor);
    }
}

// Adds to dx what comes back through the norm: f (dy - y mean(dy y)), y = f x.
template <class T>
__device__ __forceinline__ void norm_back(
    T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ x, const float* __restrict__ factors,
    u64 rows, u64 hidden) {
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const float factor = factors[row];
        float sum = 0;
        for (u64 i = row * hidden + threadIdx.x; i < (row + 1) * hidden; i += blockDim.x)
            sum += value_of(dy[i]) * value_of(x[i]) * factor;
        const float mean = of_block<false>(sum) / hidden;
        for (u64 i = row * hidden + threadIdx.x; i < (row + 1) * hidden; i += blockDim.x)
            set(dx[i], value_of(dx[i]) + factor * (value_of(dy[i]) - value_of(x[i]) * factor * mean));
    }
}

// Where the heads of a token go: [sequence][head][token][element], keys and values with room for `capacity`.
struct Heads {
    u64 tokens, capacity, query_heads, kv_heads, head;
    __device__ __forceinline__ u64 width() const { return (query_heads + 2 * kv_heads) * head; }
    __device__ __forceinline__ u64 query(u64 row, u64 h) const {
        return ((row / tokens * query_heads + h) * tokens + row % tokens) * head;
    }
    __device__ __forceinline__ u64 key(u64 row, u64 h, u64 start) const {
        return ((row / tokens * kv_heads + h) * capacity + start + row % tokens) * head;
    }
};

// Rotation of the first half of a head against the second by the angles of its position (RoFormer, 2021).
template <class T>
__device__ __forceinline__ void rotate(
    T* __restrict__ q, T* __restrict__ k, T* __restrict__ v, const T* __restrict__ qkv,
    const float2* __restrict__ turns, const u64* __restrict__ start, u64 rows, const Heads& heads) {
    const u64 half = heads.head / 2, pairs = heads.width() / 2, first = *start;
    for (u64 i = first_place(); i < rows * pairs; i += places()) {
        const u64 row = i / pairs, h = i % pairs / half, e = i % half;
        const T* from = qkv + row * heads.width() + h * heads.head + e;
        T* to;
        if (h < heads.query_heads) to = q + heads.query(row, h);
        else if (h < heads.query_heads + heads.kv_heads) to = k + heads.key(row, h - heads.query_heads, first);
        else to = v + heads.key(row, h - heads.query_heads - heads.kv_heads, first);
        const float low = value_of(from[0]), high = value_of(from[half]);
        float2 turn = turns[(first + row % heads.tokens) * half + e];
        if (h >= heads.query_heads + heads.kv_heads) turn = float2{1.0f, 0.0f};
        set(to[e], low * turn.x - high * turn.y);
        set(to[e + half], high * turn.x + low * turn.y);
    }
}

template <class T>
__device__ __forceinline__ void rotate_back(
    T* __restrict__ dqkv, const T* __restrict__ dq, const T* __restrict__ dk, const T* __restrict__ dv,
    const float2* __restrict__ turns, u64 rows, const Heads& heads) {
    const u64 half = heads.head / 2, pairs = heads.width() / 2;
    for (u64 i = first_place(); i < rows * pairs; i += places()) {
        const u64 row = i / pairs, h = i % pairs / half, e = i % half;
        T* to = dqkv + row * heads.width() + h * heads.head + e;
        const T* from;
        if (h < heads.query_heads) from = dq + heads.query(row, h);
        else if (h < heads.query_heads + heads.kv_heads) from = dk + heads.key(row, h - heads.query_heads, 0);
        else from = dv + heads.key(row, h - heads.query_heads - heads.kv_heads, 0);
        const float low = value_of(from[e]), high = value_of(from[e + half]);
        float2 turn = turns[row % heads.tokens * half + e];
        if (h >= heads.query_heads + heads.kv_heads) turn = float2{1.0f, 0.0f};
        set(to[0], low * turn.x + high * turn.y);
        set(to[half], high * turn.x - low * turn.y);
    }
}

// Heads of a query side by side for each token, and apart again.
template <class T>
__device__ __forceinline__ void gather(T* __restrict__ to, const T* __restrict__ from, u64 rows, const Heads& heads) {
    const u64 width = heads.query_heads * heads.head;
    for (u64 i = first_place(); i < rows * width; i += places())
        to[i] = from[heads.query(i / width, i % width / heads.head) + i % heads.head];
}
template <class T>
__device__ __forceinline__ void scatter(T* __restrict__ to, const T* __restrict__ from, u64 rows, const Heads& heads) {
    const u64 width = heads.query_heads * heads.head;
    for (u64 i = first_place(); i < rows * width; i += places())
        to[heads.query(i / width, i % width / heads.head) + i % heads.head] = from[i];
}

// A row is that of a query: as many weights as keys, those of later keys 0.
template <class T>
__device__ __forceinline__ void softmax(T* __restrict__ x, u64 rows, u64 keys) {
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const u64 seen = row % keys + 1;
        T* at = x + row * keys;
        float top = -3.0e38f, sum = 0;
        for (u64 i = threadIdx.x; i < seen; i += blockDim.x) top = fmaxf(top, value_of(at[i]));
        top = of_block<true>(top);
        for (u64 i = threadIdx.x; i < seen; i += blockDim.x) sum += expf(value_of(at[i]) - top);
        const float inverse = 1.0f / of_block<false>(sum);
        for (u64 i = threadIdx.x; i < keys; i += blockDim.x)
            set(at[i], i < seen ? expf(value_of(at[i]) - top) * inverse : 0.0f);
    }
}

// dx = p (dx - sum dx p), in place.
template <class T>
__device__ __forceinline__ void softmax_back(T* __restrict__ dx, const T* __restrict__ p, u64 rows, u64 keys) {
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        const u64 at = row * keys;
        float sum = 0;
        for (u64 i = threadIdx.x; i < keys; i += blockDim.x) sum += value_of(dx[at + i]) * value_of(p[at + i]);
        sum = of_block<false>(sum);
        for (u64 i = threadIdx.x; i < keys; i += blockDim.x)
            set(dx[at + i], value_of(p[at + i]) * (value_of(dx[at + i]) - sum));
    }
}

// y = g / (1 + exp(-g)) u of rows [g, u] (Shazeer, GLU Variants, 2020).
template <class T>
__device__ __forceinline__ void gate(T* __restrict__ y, const T* __restrict__ gu, u64 rows, u64 width) {
    for (u64 i = first_place(); i < rows * width; i += places()) {
        const T* at = gu + i / width * 2 * width + i % width;
        const float g = value_of(at[0]);
        set(y[i], g / (1.0f + expf(-g)) * value_of(at[width]));
    }
}
template <class T>
__device__ __forceinline__ void gate_back(
    T* __restrict__ dgu, const T* __restrict__ dy, const T* __restrict__ gu, u64 rows, u64 width) {
    for (u64 i = first_place(); i < rows * width; i += places()) {
        const u64 at = i / width * 2 * width + i % width;
        const float g = value_of(gu[at]), u = value_of(gu[at + width]), d = value_of(dy[i]);
        const float share = 1.0f / (1.0f + expf(-g));
        set(dgu[at], d * u * share * (1.0f + g * (1.0f - share)));
        set(dgu[at + width], d * g * share);
    }
}

// Cross entropy of each row, and in place of the scores its gradient over `of`; rows from `counted` on do not
// count.
template <class T>
__device__ __forceinline__ void entropy(
    T* __restrict__ x, float* __restrict__ losses, const unsigned* __restrict__ targets, u64 rows, u64 width,
    u64 counted, u64 of) {
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        T* at = x + row * width;
        float top = -3.0e38f, sum = 0;
        for (u64 i = threadIdx.x; i < width; i += blockDim.x) top = fmaxf(top, value_of(at[i]));
        top = of_block<true>(top);
        for (u64 i = threadIdx.x; i < width; i += blockDim.x) sum += expf(value_of(at[i]) - top);
        sum = of_block<false>(sum);
        const u64 target = targets[row];
        if (!threadIdx.x) losses[row] = row < counted ? top + logf(sum) - value_of(at[target]) : 0.0f;
        __syncthreads();
        for (u64 i = threadIdx.x; i < width; i += blockDim.x) {
            const float weight = expf(value_of(at[i]) - top) / sum;
            set(at[i], row < counted ? (weight - (i == target ? 1.0f : 0.0f)) / of : 0.0f);
        }
    }
}

// AdamW (Loshchilov and Hutter, 2019) on numbers of 4 bytes; the weights are a rounded copy.
template <class T>
__device__ __forceinline__ void update(
    T* __restrict__ weights, float* __restrict__ master, float* __restrict__ mean, float* __restrict__ square,
    const float* __restrict__ gradient, const u64* __restrict__ step, u64 count) {
    constexpr float rate = 1e-4f, decay = 0.01f, keep_mean = 0.9f, keep_square = 0.999f, least = 1e-8f;
    const float t = (float)*step, of_mean = 1.0f - powf(keep_mean, t), of_square = 1.0f - powf(keep_square, t);
    for (u64 i = first_place(); i < count; i += places()) {
        const float g = gradient[i];
        const float m = mean[i] = keep_mean * mean[i] + (1.0f - keep_mean) * g;
        const float s = square[i] = keep_square * square[i] + (1.0f - keep_square) * g * g;
        const float w = master[i] * (1.0f - rate * decay) - rate * (m / of_mean) / (sqrtf(s / of_square) + least);
        master[i] = w;
        set(weights[i], w);
    }
}

template <class T>
__device__ __forceinline__ void widen(float* __restrict__ to, const T* __restrict__ from, u64 count) {
    for (u64 i = first_place(); i < count; i += places()) to[i] = value_of(from[i]);
}

// The largest score of each row, the first of several: the next token, kept by step.
template <class T>
__device__ __forceinline__ void choose(
    unsigned* __restrict__ ids, unsigned* __restrict__ history, const T* __restrict__ x,
    const u64* __restrict__ words, u64 rows, u64 width) {
    __shared__ float values[256];
    __shared__ u64 indices[256];
    for (u64 row = blockIdx.x; row < rows; row += gridDim.x) {
        float best = -3.4e38f;
        u64 at = width;
        for (u64 i = threadIdx.x; i < width; i += blockDim.x) {
            const float one = value_of(x[row * width + i]);
            if (one > best) best = one, at = i;
        }
        values[threadIdx.x] = best, indices[threadIdx.x] = at;
        __syncthreads();
        for (unsigned half = 128; half; half /= 2) {
            if (threadIdx.x < half) {
                const float other = values[threadIdx.x + half];
                const u64 there = indices[threadIdx.x + half];
                if (other > values[threadIdx.x] || (other == values[threadIdx.x] && there < indices[threadIdx.x]))
                    values[threadIdx.x] = other, indices[threadIdx.x] = there;
            }
            __syncthreads();
        }
        if (!threadIdx.x) ids[row] = history[words[2] * rows + row] = (unsigned)indices[0];
        __syncthreads();
    }
}

#define HEADS const Heads heads{tokens, capacity, query_heads, kv_heads, head}
#define SHAPE u64 tokens, u64 capacity, u64 query_heads, u64 kv_heads, u64 head

#define BOTH(name, parameters, body)                                                   \
    extern "C" __global__ void __launch_bounds__(256) name##_bf16 parameters(u16) body \
    extern "C" __global__ void __launch_bounds__(256) name##_fp32 parameters(float) body

#define EMBED(T) (T* __restrict__ x, const T* __restrict__ table, const unsigned* __restrict__ ids, u64 rows, u64 hidden)
BOTH(embed, EMBED, { embed(x, table, ids, rows, hidden); })
#define NORM(T) (T* __restrict__ y, float* __restrict__ factors, const T* __restrict__ x, u64 rows, u64 hidden)
BOTH(norm, NORM, { norm(y, factors, x, rows, hidden); })
#define NORM_BACK(T)                                                                                      \
    (T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ x, const float* __restrict__ factors, \
     u64 rows, u64 hidden)
BOTH(norm_back, NORM_BACK, { norm_back(dx, dy, x, factors, rows, hidden); })
#define ROTATE(T)                                                                                     \
    (T* __restrict__ q, T* __restrict__ k, T* __restrict__ v, const T* __restrict__ qkv,              \
     const float2* __restrict__ turns, const u64* __restrict__ start, u64 rows, SHAPE)
BOTH(rotate, ROTATE, { HEADS; rotate(q, k, v, qkv, turns, start, rows, heads); })
#define ROTATE_BACK(T)                                                                                \
    (T* __restrict__ dqkv, const T* __restrict__ dq, const T* __restrict__ dk, const T* __restrict__ dv, \
     const float2* __restrict__ turns, u64 rows, SHAPE)
BOTH(rotate_back, ROTATE_BACK, { HEADS; rotate_back(dqkv, dq, dk, dv, turns, rows, heads); })
#define MOVE(T) (T* __restrict__ to, const T* __restrict__ from, u64 rows, SHAPE)
BOTH(gather, MOVE, { HEADS; gather(to, from, rows, heads); })
BOTH(scatter, MOVE, { HEADS; scatter(to, from, rows, heads); })
#define SOFTMAX(T) (T* __restrict__ x, u64 rows, u64 keys)
BOTH(softmax, SOFTMAX, { softmax(x, rows, keys); })
#define SOFTMAX_BACK(T) (T* __restrict__ dx, const T* __restrict__ p, u64 rows, u64 keys)
BOTH(softmax_back, SOFTMAX_BACK, { softmax_back(dx, p, rows, keys); })
#define GATE(T) (T* __restrict__ y, const T* __restrict__ gu, u64 rows, u64 width)
BOTH(gate, GATE, { gate(y, gu, rows, width); })
#define GATE_BACK(T) (T* __restrict__ dgu, const T* __restrict__ dy, const T* __restrict__ gu, u64 rows, u64 width)
BOTH(gate_back, GATE_BACK, { gate_back(dgu, dy, gu, rows, width); })
#define ENTROPY(T)                                                                                              \
    (T* __restrict__ x, float* __restrict__ losses, const unsigned* __restrict__ targets, u64 rows, u64 width,  \
     u64 counted, u64 of)
BOTH(entropy, ENTROPY, { entropy(x, losses, targets, rows, width, counted, of); })
#define UPDATE(T)                                                                                            \
    (T* __restrict__ weights, float* __restrict__ master, float* __restrict__ mean, float* __restrict__ square, \
     const float* __restrict__ gradient, const u64* __restrict__ step, u64 count)
BOTH(update, UPDATE, { update(weights, master, mean, square, gradient, step, count); })
#define WIDEN(T) (float* __restrict__ to, const T* __restrict__ from, u64 count)
BOTH(widen, WIDEN, { widen(to, from, count); })
#define ZERO(T) (T* __restrict__ to, u64 count)
BOTH(zero, ZERO, { for (u64 i = first_place(); i < count; i += places()) set(to[i], 0.0f); })
#define CHOOSE(T)                                                                                       \
    (unsigned* __restrict__ ids, unsigned* __restrict__ history, const T* __restrict__ x,               \
     const u64* __restrict__ words, u64 rows, u64 width)
BOTH(choose, CHOOSE, { choose(ids, history, x, words, rows, width); })

// Numbers of tokens: before this step, with it, and steps so far. Kept on the device, so that a graph counts.
extern "C" __global__ void __launch_bounds__(256) next_step(u64* __restrict__ words) {
    if (threadIdx.x < 3) words[threadIdx.x] += 1;
}

extern "C" __global__ void __launch_bounds__(256)
first_step(u64* __restrict__ words, unsigned* __restrict__ ids, const unsigned* __restrict__ first, u64 context, u64 rows) {
    if (threadIdx.x < 3) words[threadIdx.x] = threadIdx.x == 2 ? 0 : context + threadIdx.x;
    for (u64 i = threadIdx.x; i < rows; i += blockDim.x) ids[i] = first[i];
}
