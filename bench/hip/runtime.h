// What hip_runtime.h declares of the words that the kernels use, for a compiler without ROCm. Nothing of it runs.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads) __attribute__((amdgpu_flat_work_group_size(1, threads)))
#define __align__(bytes) __attribute__((aligned(bytes)))

// Vectors are those of the compiler, as in HIP, so that they are moved as one.
#define VECTOR_2(name, type)                                                               \
    struct name {                                                                          \
        union {                                                                            \
            type __attribute__((ext_vector_type(2))) data;                                 \
            struct { type x, y; };                                                         \
        };                                                                                 \
        name() = default;                                                                  \
        __device__ name(type x, type y) : data{x, y} {}                                    \
    };
#define VECTOR_4(name, type)                                                               \
    struct name {                                                                          \
        union {                                                                            \
            type __attribute__((ext_vector_type(4))) data;                                 \
            struct { type x, y, z, w; };                                                   \
        };                                                                                 \
        name() = default;                                                                  \
        __device__ name(type x, type y, type z, type w) : data{x, y, z, w} {}              \
    };
VECTOR_2(uint2, unsigned)
VECTOR_2(float2, float)
VECTOR_4(uint4, unsigned)
VECTOR_4(float4, float)
struct Index { unsigned x; };

#define threadIdx (Index{(unsigned)__builtin_amdgcn_workitem_id_x()})
#define blockIdx (Index{(unsigned)__builtin_amdgcn_workgroup_id_x()})
#define blockDim (Index{(unsigned)__builtin_amdgcn_workgroup_size_x()})
#define gridDim (Index{(unsigned)__builtin_amdgcn_grid_size_x() / (unsigned)__builtin_amdgcn_workgroup_size_x()})

#define OF_DEVICE static __device__ __forceinline__
OF_DEVICE void __syncthreads() {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
    __builtin_amdgcn_s_barrier();
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
OF_DEVICE unsigned __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0)); }
OF_DEVICE unsigned long long __ballot(bool is_true) { return __builtin_amdgcn_ballot_w64(is_true); }
OF_DEVICE unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
OF_DEVICE float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
OF_DEVICE float __shfl_xor(float value, int step, int width) {
    const int lane = (int)__lane_id(), other = lane ^ step;
    const int from = other >= ((lane + width) & ~(width - 1)) ? lane : other;
    return __uint_as_float((unsigned)__builtin_amdgcn_ds_bpermute(from * 4, (int)__float_as_uint(value)));
}
OF_DEVICE float __fadd_rn(float a, float b) {
#pragma clang fp contract(off)
    return a + b;
}
OF_DEVICE float __fsub_rn(float a, float b) {
#pragma clang fp contract(off)
    return a - b;
}
OF_DEVICE float __fmul_rn(float a, float b) {
#pragma clang fp contract(off)
    return a * b;
}
OF_DEVICE float __fdiv_rn(float a, float b) { return a / b; }
OF_DEVICE float __fsqrt_rn(float a) { return __builtin_sqrtf(a); }
OF_DEVICE int __float2int_rn(float a) { return (int)__builtin_rintf(a); }
OF_DEVICE int __popc(unsigned bits) { return __builtin_popcount(bits); }
OF_DEVICE float fmaxf(float a, float b) { return __builtin_fmaxf(a, b); }
OF_DEVICE float sqrtf(float a) { return __builtin_sqrtf(a); }
OF_DEVICE float expf(float a) { return __builtin_expf(a); }
OF_DEVICE float logf(float a) { return __builtin_logf(a); }
OF_DEVICE float powf(float a, float b) { return __builtin_exp2f(b * __builtin_log2f(a)); }

template <class T>
OF_DEVICE T atomicAdd(T* at, T more) {
    return __hip_atomic_fetch_add(at, more, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
}
