// Overwrites a buffer larger than the cache, so that nothing else stays in it; also spoils an output before
// it is checked.
extern "C" __global__ void __launch_bounds__(256)
flush(uint4* __restrict__ a, unsigned long long vectors, unsigned long long word) {
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    const unsigned w = (unsigned)word;
    for (unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; i < vectors; i += step)
        a[i] = uint4{w, w, w, w};
}
