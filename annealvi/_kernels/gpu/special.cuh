/* Functions of a number, and sums over a block of threads, for the kernels in this folder.  They
 * are compiled together at run time, for the number of topics K and its padded length K_PAD.  The
 * formulas are those of ../special.h. */

typedef long long int64;

#ifndef DYNAMIC_SHARED /* emulated.h has its own */
#define DYNAMIC_SHARED(type, name) extern __shared__ type name[]
#endif
#define K4 (K_PAD / 4) /* a row in vectors of four */
#define CLAMP -40.f    /* least exponents, see ../lda_rows.h */
#define CLAMP_PLAIN -60.f
#define PADDED_LOG -1e30f
#define FAR 1e4f
#define LEAST 1.17549435e-38f

/* exp(psi(x) - sparsity / x) = the result times exp(-*shift). */
__device__ __forceinline__ float digamma_parts(float x, float sparsity, float *shift)
{
    const bool near = x < FAR;
    const float a = near ? x : 1.f, g = fmaf(a + 3.f, a, 2.f), slope = 2.f * a + 3.f;
    float y = a + 2.5f;
    const float square = y * y, part = g * square, fraction = 1.f / (a * part);
    float z = a * g * fraction;
    *shift = near ? fmaf(1.f + sparsity, part, a * slope * square) * fraction : 0.f;
    if (!near) {
        y = x - 0.5f;
        z = 1.f / (y * y);
    }
    const float p = fmaf(fmaf(fmaf(-0.00246196995187f, z, 0.00342414307231f), z,
                              -0.00641974015505f), z, 0.0416666475266f);
    return fmaf(y, z * p, y);
}

/* psi(x) - sparsity / x. */
__device__ __forceinline__ float digamma(float x, float sparsity)
{
    float shift;
    const float scale = digamma_parts(x, sparsity, &shift);
    return logf(scale) - shift;
}

/* A weight of a word at another temperature: exp(max(b l, clamp)), 0 in the padding. */
__device__ __forceinline__ float raise(float log, float b, float clamp)
{
    return log > PADDED_LOG ? expf(fmaxf(b * log, clamp)) : 0.f;
}

/* The sum or the largest of the threads' numbers, in a fixed order.  `room` has space for one
 * number of each warp.  Every thread gets the result. */
template <typename T> __device__ T over_block(T x, bool largest, T *room)
{
    const int n_warps = blockDim.x / 32;
    for (int o = 16; o; o /= 2) {
        const T other = __shfl_xor_sync(~0u, x, o);
        x = largest ? (x > other ? x : other) : x + other;
    }
    if (threadIdx.x % 32 == 0)
        room[threadIdx.x / 32] = x;
    __syncthreads();
    x = room[0];
    for (int w = 1; w < n_warps; w++)
        x = largest ? (x > room[w] ? x : room[w]) : x + room[w];
    __syncthreads();
    return x;
}
