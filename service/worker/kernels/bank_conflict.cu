// Reads of the memory that a multiprocessor shares: the threads of a warp ask for words `stride_words` apart.
typedef unsigned long long u64;

constexpr unsigned turned = 4096, unroll = 16, banks = 32, table_words = turned + unroll * banks;

// A warp's words move on by one bank a turn, all by the same, so how many of them meet in a bank stays as it is. Of
// one turn the reads are 32 words apart: other words of the same banks, at offsets that cost no instruction.
extern "C" __global__ void __launch_bounds__(256)
bank_conflict(const unsigned* __restrict__ table, unsigned* __restrict__ sums, u64 threads, u64 reads,
              unsigned stride_words) {
    __shared__ unsigned held[table_words];
    for (unsigned word = threadIdx.x; word < table_words; word += blockDim.x) held[word] = table[word];
    __syncthreads();
    const u64 thread = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (thread >= threads) return;
    unsigned at = (threadIdx.x % 32 * stride_words + (unsigned)(thread / 32)) % turned, sum = 0;
    u64 read = 0;
    for (; read + unroll <= reads; read += unroll) {
#pragma unroll
        for (unsigned j = 0; j < unroll; j++) sum += held[at + j * banks];
        at = (at + 1) % turned;
    }
    for (; read < reads; read++) {
        sum += held[at];
        at = (at + 1) % turned;
    }
    sums[thread] = sum;
}
