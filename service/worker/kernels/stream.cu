// Memory bandwidth. Neighbours touch neighbours, 16 bytes at a time. A thread either has several accesses in flight and
// goes on, or touches one vector: which is faster differs between devices and patterns.
typedef unsigned long long u64;

constexpr int unroll = 4;

// Calls for_full(i) once for `unroll` vectors that lie blockDim.x apart from i on, for_one(i) at the end.
template <class Full, class One>
__device__ __forceinline__ void over(u64 vectors, Full for_full, One for_one) {
    const u64 threads = blockDim.x;
    const u64 step = gridDim.x * threads * unroll;
    for (u64 i = blockIdx.x * threads * unroll + threadIdx.x; i < vectors; i += step) {
        if (i + (unroll - 1) * threads < vectors) {
            for_full(i);
        } else {
            for (u64 j = i; j < vectors; j += threads) for_one(j);
        }
    }
}

__device__ __forceinline__ unsigned sum_of(uint4 v) { return v.x + v.y + v.z + v.w; }

// What each thread has read is summed and kept: the result is checked, and no read can be left out.
extern "C" __global__ void __launch_bounds__(256)
stream_read(const uint4* __restrict__ a, u64 vectors, unsigned* __restrict__ sums) {
    unsigned sum = 0;
    const u64 threads = blockDim.x;
    over(vectors, [&](u64 i) {
        uint4 v[unroll];
#pragma unroll
        for (int j = 0; j < unroll; j++) v[j] = a[i + j * threads];
#pragma unroll
        for (int j = 0; j < unroll; j++) sum += sum_of(v[j]);
    }, [&](u64 i) { sum += sum_of(a[i]); });
    sums[blockIdx.x * threads + threadIdx.x] = sum;
}

// Word w becomes seed + w * odd, modulo 2^32: no two neighbours alike, and next to no arithmetic.
__device__ __forceinline__ uint4 words_at(u64 vector, unsigned seed) {
    const unsigned odd = 0x9E3779B9u;
    const unsigned first = seed + (unsigned)(4 * vector) * odd;
    return uint4{first, first + odd, first + 2 * odd, first + 3 * odd};
}

extern "C" __global__ void __launch_bounds__(256)
stream_write(uint4* __restrict__ a, u64 vectors, u64 seed) {
    const unsigned low = (unsigned)seed;
    const u64 threads = blockDim.x;
    over(vectors, [&](u64 i) {
#pragma unroll
        for (int j = 0; j < unroll; j++) a[i + j * threads] = words_at(i + j * threads, low);
    }, [&](u64 i) { a[i] = words_at(i, low); });
}

extern "C" __global__ void __launch_bounds__(256)
stream_write_once(uint4* __restrict__ a, u64 vectors, u64 seed) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < vectors) a[i] = words_at(i, (unsigned)seed);
}

extern "C" __global__ void __launch_bounds__(256)
stream_copy(uint4* __restrict__ a, const uint4* __restrict__ b, u64 vectors) {
    const u64 threads = blockDim.x;
    over(vectors, [&](u64 i) {
        // Four names, because HIP would keep an array in memory.
        static_assert(unroll == 4);
        const uint4 v0 = b[i], v1 = b[i + threads], v2 = b[i + 2 * threads], v3 = b[i + 3 * threads];
        a[i] = v0, a[i + threads] = v1, a[i + 2 * threads] = v2, a[i + 3 * threads] = v3;
    }, [&](u64 i) { a[i] = b[i]; });
}

extern "C" __global__ void __launch_bounds__(256)
stream_copy_once(uint4* __restrict__ a, const uint4* __restrict__ b, u64 vectors) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < vectors) a[i] = b[i];
}

__device__ __forceinline__ float4 triad(float4 b, float4 c) {
    return float4{b.x + 3.0f * c.x, b.y + 3.0f * c.y, b.z + 3.0f * c.z, b.w + 3.0f * c.w};
}

extern "C" __global__ void __launch_bounds__(256)
stream_triad(float4* __restrict__ a, const float4* __restrict__ b, const float4* __restrict__ c, u64 vectors) {
    const u64 threads = blockDim.x;
    over(vectors, [&](u64 i) {
        float4 left[unroll], right[unroll];
#pragma unroll
        for (int j = 0; j < unroll; j++) {
            left[j] = b[i + j * threads];
            right[j] = c[i + j * threads];
        }
#pragma unroll
        for (int j = 0; j < unroll; j++) a[i + j * threads] = triad(left[j], right[j]);
    }, [&](u64 i) { a[i] = triad(b[i], c[i]); });
}

extern "C" __global__ void __launch_bounds__(256)
stream_triad_once(
    float4* __restrict__ a, const float4* __restrict__ b, const float4* __restrict__ c, u64 vectors) {
    const u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < vectors) a[i] = triad(b[i], c[i]);
}
