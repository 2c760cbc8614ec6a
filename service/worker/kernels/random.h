// Random numbers by counter: an element depends on the seed and its place alone, so any of them can be
// computed again elsewhere. The generator is splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
typedef unsigned long long u64;

__device__ __forceinline__ u64 random_bits(u64 seed, u64 place) {
    u64 z = seed + (place + 1) * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
}

// Four uniform numbers of 16 bits less their mean: close to normal, and exact in integers.
__device__ __forceinline__ int centred_sum(u64 seed, u64 place) {
    const u64 bits = random_bits(seed, place);
    const int sum = (int)(bits & 65535) + (int)(bits >> 16 & 65535) + (int)(bits >> 32 & 65535) + (int)(bits >> 48);
    return sum - 2 * 65535;
}

// Makes the standard deviation 1: sqrt(3) / 65536.
__device__ __forceinline__ double normal_64(u64 seed, u64 place) {
    return centred_sum(seed, place) * 2.6428998893999523e-05;
}

__device__ __forceinline__ float normal_32(u64 seed, u64 place) {
    return (float)centred_sum(seed, place) * 2.6428998893999523e-05f;
}

// Rounds to nearest, ties to even, as IEEE 754 does. By hand, because the headers of the narrow types are
// not everywhere where the compiler is. For numbers far below the largest, which these are.
__device__ __forceinline__ unsigned narrow(float value, int exponent_bits, int mantissa_bits) {
    const unsigned bits = __float_as_uint(value);
    const unsigned sign = bits >> 31 << (exponent_bits + mantissa_bits);
    const int exponent = (int)(bits >> 23 & 255);
    if (exponent == 0) return sign;
    const unsigned mantissa = (bits & 0x7FFFFF) | 0x800000;
    const int target = exponent - 127 + (1 << (exponent_bits - 1)) - 1;
    const int shift = 23 - mantissa_bits + (target > 0 ? 0 : 1 - target);
    if (shift > 24) return sign;
    const unsigned rounded = (mantissa + (1u << (shift - 1)) - 1 + (mantissa >> shift & 1)) >> shift;
    // The leading bit of a normal number adds 1 to the exponent, and so does a carry.
    return sign + (target > 0 ? (unsigned)(target - 1) << mantissa_bits : 0) + rounded;
}
