/* The sum of n floats: every thread sums ITEMS vectors, warps and then the block combine, blocks add up. */
#if VECTOR == 4
typedef float4 vector_t;
#define SUM(v) ((v).x + (v).y + (v).z + (v).w)
#elif VECTOR == 2
typedef float2 vector_t;
#define SUM(v) ((v).x + (v).y)
#else
typedef float vector_t;
#define SUM(v) (v)
#endif

__global__ void reduction(const float *x, float *out, int n)
{
    const vector_t *in = (const vector_t *)x;
    int count = n / VECTOR;
    float sum = 0.0f;
    int stride = gridDim.x * blockDim.x;
#pragma unroll ITEMS
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride)
        sum += SUM(in[i]);
#if SHUFFLE
    __shared__ float partial[32];
    for (int offset = 16; offset; offset >>= 1)
        sum += __shfl_down_sync(0xffffffff, sum, offset);
    if (threadIdx.x % 32 == 0)
        partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x < 32) {
        sum = threadIdx.x < (blockDim.x + 31) / 32 ? partial[threadIdx.x] : 0.0f;
        for (int offset = 16; offset; offset >>= 1)
            sum += __shfl_down_sync(0xffffffff, sum, offset);
    }
#else
    __shared__ float partial[BLOCK];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int half = BLOCK / 2; half; half >>= 1) {
        if (threadIdx.x < half)
            partial[threadIdx.x] += partial[threadIdx.x + half];
        __syncthreads();
    }
    sum = partial[0];
#endif
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}
