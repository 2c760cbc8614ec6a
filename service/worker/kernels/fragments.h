// Products of fragments by tensor cores, numbers of 16 bits, and loads with a hint. What only the machine's own language
// says: on a processor the tests bring these.
constexpr int bf16 = 0, fp16 = 1;

#ifdef __CUDACC__
template <int format>
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    if constexpr (format == bf16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <int format>
__device__ __forceinline__ unsigned pair_of(float low, float high) {
    unsigned pair;
    if constexpr (format == bf16) asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    else asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// Four words that nothing reads again, past the first cache.
__device__ __forceinline__ uint4 load_once(const uint4* place) {
    uint4 v;
    asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "l"(place));
    return v;
}

// Sums of two pairs of bf16, each rounded once: a product by 1, because the oldest devices have no sum of pairs.
__device__ __forceinline__ unsigned add_pairs(unsigned a, unsigned b) {
    unsigned sum;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(0x3F803F80u), "r"(b));
    return sum;
}
#endif
