// Arrays that stay in the last-level cache, gone over many times in one launch. Each pass begins elsewhere and the
// loads pass the multiprocessor's own cache by: what is measured is the cache that all of them share.
typedef unsigned long long u64;

constexpr int unroll = 4;

__device__ __forceinline__ uint4 past_the_first_cache(const uint4* at) {
#ifdef __CUDA_ARCH__
    uint4 v;
    // Volatile, because two reads of one address are two.
    asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
    return v;
#else
    return *at;
#endif
}

// Calls visit(place of each of `unroll` vectors) for every vector once a pass, the first of a pass further on by
// `shift`, which is below `vectors`. `vectors` is a multiple of `unroll` times the threads of a block.
//
// The tiles of all passes are dealt out in a row, so that every block has its share of them: of an array of fewer tiles
// than there are blocks, a pass by itself would leave multiprocessors without any.
template <class Visit>
__device__ __forceinline__ void over_passes(u64 vectors, u64 passes, u64 shift, Visit visit) {
    const u64 threads = blockDim.x, tile = threads * unroll, stride = gridDim.x * tile;
    const u64 more_passes = stride / vectors, more = stride % vectors, more_begin = more_passes * shift % vectors;
    u64 pass = blockIdx.x * tile / vectors, place = blockIdx.x * tile % vectors, begin = pass * shift % vectors;
    const auto wrapped = [vectors](u64 at) { return at < vectors ? at : at - vectors; };
    while (pass < passes) {
        // Whole tiles are moved, so that none is cut by the end of the array.
        visit(wrapped(place + begin) + threadIdx.x, threads);
        place += more;
        pass += more_passes;
        begin = wrapped(begin + more_begin);
        if (place >= vectors) {
            place -= vectors;
            pass++;
            begin = wrapped(begin + shift);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
cache_read(const uint4* __restrict__ a, u64 vectors, u64 passes, u64 shift, unsigned* __restrict__ sums) {
    unsigned sum = 0;
    over_passes(vectors, passes, shift, [&](u64 first, u64 threads) {
        uint4 v[unroll];
#pragma unroll
        for (int j = 0; j < unroll; j++) v[j] = past_the_first_cache(a + first + j * threads);
#pragma unroll
        for (int j = 0; j < unroll; j++) sum += v[j].x + v[j].y + v[j].z + v[j].w;
    });
    sums[(u64)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

extern "C" __global__ void __launch_bounds__(256)
cache_copy(uint4* a, const uint4* b, u64 vectors, u64 passes, u64 shift) {
    over_passes(vectors, passes, shift, [&](u64 first, u64 threads) {
        uint4 v[unroll];
#pragma unroll
        for (int j = 0; j < unroll; j++) v[j] = past_the_first_cache(b + first + j * threads);
#pragma unroll
        for (int j = 0; j < unroll; j++) a[first + j * threads] = v[j];
    });
}
