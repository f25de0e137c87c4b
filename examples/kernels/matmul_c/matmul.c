/* C = A * B for row-major float matrices, blocked for caches and registers by macros. */
#ifndef BLOCK_I
#define BLOCK_I 32
#define BLOCK_J 32
#define BLOCK_K 32
#define TILE_I 2
#define TILE_J 8
#define PACK 0
#endif

#include <string.h>

/* The three loops as written on paper: the form to beat and the reference. */
void matmul_naive(const float *a, const float *b, float *c, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            float sum = 0.0f;
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
}

/* A tile of C stays in registers while a block of K passes by. */
static void tile(const float *restrict a, const float *restrict b, float *restrict c, int n, int stride, int depth)
{
    float sum[TILE_I][TILE_J];
    for (int i = 0; i < TILE_I; i++)
        for (int j = 0; j < TILE_J; j++)
            sum[i][j] = c[i * n + j];
    for (int k = 0; k < depth; k++)
        for (int i = 0; i < TILE_I; i++)
            for (int j = 0; j < TILE_J; j++)
                sum[i][j] += a[i * n + k] * b[k * stride + j];
    for (int i = 0; i < TILE_I; i++)
        for (int j = 0; j < TILE_J; j++)
            c[i * n + j] = sum[i][j];
}

void matmul(const float *a, const float *b, float *c, int n)
{
#if PACK
    static float packed[BLOCK_K * BLOCK_J];
#endif
    memset(c, 0, sizeof(float) * n * n);
    for (int k0 = 0; k0 < n; k0 += BLOCK_K)
        for (int j0 = 0; j0 < n; j0 += BLOCK_J) {
            const float *block = b + k0 * n + j0;
            int stride = n;
#if PACK
            for (int k = 0; k < BLOCK_K; k++)
                memcpy(packed + k * BLOCK_J, block + k * n, sizeof(float) * BLOCK_J);
            block = packed;
            stride = BLOCK_J;
#endif
            for (int i0 = 0; i0 < n; i0 += BLOCK_I)
                for (int i = i0; i < i0 + BLOCK_I; i += TILE_I)
                    for (int j = 0; j < BLOCK_J; j += TILE_J)
                        tile(a + i * n + k0, block + j, c + i * n + j0 + j, n, stride, BLOCK_K);
        }
}
