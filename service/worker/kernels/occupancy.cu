// A copy with one access of 16 bytes of each thread in flight: how much of the bandwidth so many warps reach is all
// that differs between launches.
typedef unsigned long long u64;

extern "C" __global__ void __launch_bounds__(1024)
occupancy_copy(uint4* __restrict__ a, const uint4* __restrict__ b, u64 vectors) {
    const u64 step = (u64)gridDim.x * blockDim.x;
#pragma unroll 1
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step) a[i] = b[i];
}
