// What HIP means otherwise than CUDA, for the kernels here: their warps have 32 threads, wavefronts of CDNA have 64.
// Included before a kernel where HIP compiles it. Each half of a wavefront is a warp of its own.
#ifdef __HIP__
#define __shfl_xor_sync(lanes, value, step) ((void)(lanes), __shfl_xor(value, step, 32))
#define __ballot_sync(lanes, is_true) ((void)(lanes), (unsigned)(__ballot(is_true) >> (__lane_id() & 32)))
#endif
