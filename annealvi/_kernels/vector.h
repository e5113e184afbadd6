/* Short vectors of one floating type, and the few operations that the kernels need.
 *
 * This header is a template: kernels.c includes it once for each floating type, with
 *     REAL    float or double
 *     INT     the signed integer of the same width
 *     BITS    that width in bits
 *     FN(x)   x with a suffix for the type
 * and is compiled once for each instruction set.  It uses the vector extension
 * of GCC and Clang, so the same source serves SSE2, AVX2, AVX-512 and NEON;
 * only max, min and fma use intrinsics.  VECTOR_BYTES is the size of a vector.
 *
 * All instruction sets return identical results.  A line is 64 bytes, or PARTS vectors.  Sums over
 * a row are first computed for each number of a line; these sums are then added in a fixed order.
 * The compiler fuses no multiplication with an addition; fma is written where it is wanted.
 */

#ifndef ANNEALVI_VECTOR_BYTES
#define ANNEALVI_VECTOR_BYTES
#ifdef VECTOR_BYTES /* a test sets it, and the compiler makes long vectors from shorter ones */
#elif defined(__AVX512F__) && defined(__AVX512DQ__)
#define VECTOR_BYTES 64
#define INTRINSIC(name, type) _mm512_##name##_##type
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#define INTRINSIC(name, type) _mm256_##name##_##type
#else
#define VECTOR_BYTES 16
#ifdef __SSE2__
#define INTRINSIC(name, type) _mm_##name##_##type
#endif
#endif
#ifdef __SSE2__
#include <immintrin.h>
#endif
#ifdef __aarch64__
#include <arm_neon.h>
#endif
#if defined(__FMA__) || defined(__aarch64__)
#define HAS_FMA 1
#else
#define HAS_FMA 0 /* the C library computes it, slowly */
#endif
#define INLINE static inline __attribute__((always_inline))
#define PARTS (64 / VECTOR_BYTES)
#define WORD_BLOCK 8      /* words that a sweep processes together */
#define FIRST_CACHE 32768   /* bytes of the level 1 cache that two blocks of rows may fill */
#define LONG_DOCUMENT 512 /* most words that are summed in float; a whole number of blocks */
#define EACH_PART(p) _Pragma("GCC unroll 4") for (int p = 0; p < PARTS; p++)
/* Loop over the vectors of a row of whole lines: k is the start of a vector, and p its part. */
#define OVER_ROW(k, p, K_pad)                                                                    \
    for (int line = 0; line < (K_pad); line += LINE)                                             \
        _Pragma("GCC unroll 4") for (int p = 0, k = line; p < PARTS; p++, k += LANES)
/* c[0] x^n + c[1] x^(n-1) + ... + c[n]. */
#define POLYNOMIAL(x, ...)                                                                       \
    FN(polynomial)(x, (int)(sizeof((REAL[]){__VA_ARGS__}) / sizeof(REAL)), (REAL[]){__VA_ARGS__})
#endif

#undef V
#undef VU
#undef VI
#undef LANES
#undef LINE
#undef NATIVE
#define V FN(vec)
#define VU FN(vec_unaligned)
#define VI FN(vec_int)
#define LANES ((int)(VECTOR_BYTES / sizeof(REAL)))
#define LINE ((int)(64 / sizeof(REAL)))
#if BITS == 64
#define NATIVE(name) INTRINSIC(name, pd)
#else
#define NATIVE(name) INTRINSIC(name, ps)
#endif

typedef REAL V __attribute__((vector_size(VECTOR_BYTES)));
typedef INT VI __attribute__((vector_size(VECTOR_BYTES)));
/* A vector at any address of a REAL, because rows are aligned but counts are not. */
typedef REAL VU __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

INLINE V FN(load)(const REAL *p) { return *(const VU *)p; }
INLINE void FN(store)(REAL *p, V x) { *(VU *)p = x; }
INLINE V FN(splat)(REAL x) { return x - (V){0}; }
INLINE V FN(select)(VI mask, V yes, V no) { return (V)((mask & (VI)yes) | (~mask & (VI)no)); }

/* a > b ? a : b, and a < b ? a : b.  Compilers make several instructions of the select.  The
 * intrinsic is one instruction with the same result, even for NaN (b is returned). */
#ifdef INTRINSIC
INLINE V FN(max)(V a, V b) { return NATIVE(max)(a, b); }
INLINE V FN(min)(V a, V b) { return NATIVE(min)(a, b); }
#else
INLINE V FN(max)(V a, V b) { return FN(select)(a > b, a, b); }
INLINE V FN(min)(V a, V b) { return FN(select)(a < b, a, b); }
#endif
INLINE V FN(at_least)(V x, V least) { return FN(max)(least, x); } /* NaN stays */
INLINE V FN(abs)(V x) { return (V)((VI)x & ((INT)((1ULL << (BITS - 1)) - 1))); }

#if !HAS_FMA
/* This is not inlined: with a call of the C library for each lane in every sum, compiling would
 * take a minute. */
static __attribute__((noinline)) V FN(fma_of_lanes)(V a, V b, V c)
{
    for (int l = 0; l < LANES; l++)
        c[l] = BITS == 64 ? __builtin_fma(a[l], b[l], c[l]) : __builtin_fmaf(a[l], b[l], c[l]);
    return c;
}
#endif

/* a b + c, rounded once. */
INLINE V FN(fma)(V a, V b, V c)
{
#if defined(INTRINSIC) && HAS_FMA
    return NATIVE(fmadd)(a, b, c);
#elif defined(__aarch64__) && BITS == 64
    return vfmaq_f64(c, a, b);
#elif defined(__aarch64__)
    return vfmaq_f32(c, a, b);
#else
    return FN(fma_of_lanes)(a, b, c);
#endif
}

INLINE V FN(polynomial)(V x, int n, const REAL *c)
{
    V y = FN(splat)(c[0]);
#pragma GCC unroll 8
    for (int i = 1; i < n; i++)
        y = FN(fma)(y, x, FN(splat)(c[i]));
    return y;
}

#if BITS == 64
static const INT FN(lane_index)[8] = {0, 1, 2, 3, 4, 5, 6, 7};
#else
static const INT FN(lane_index)[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#endif

INLINE VI FN(lanes)(void)
{
    VI lane;
    __builtin_memcpy(&lane, FN(lane_index), sizeof lane);
    return lane;
}

/* Lane i of a, or lane i - LANES of b, for each i in `index`. */
INLINE V FN(shuffle)(V a, V b, VI index)
{
#ifdef __clang__
    V out = a;
#pragma unroll
    for (int l = 0; l < LANES; l++)
        out[l] = index[l] < LANES ? a[index[l]] : b[index[l] - LANES];
    return out;
#else
    return __builtin_shuffle(a, b, index);
#endif
}

/* Lane i holds a[i] + a[i ^ s] if bit s of i is clear, and b[i] + b[i ^ s] if it is set. */
INLINE V FN(fold)(V a, V b, int s)
{
    const VI lane = FN(lanes)();
    const VI from_b = ((lane & s) != 0) & LANES;
    return FN(shuffle)(a, b, lane + from_b) + FN(shuffle)(a, b, (lane ^ s) + from_b);
}

/* Transpose: exchange lane j of x[i] and lane i of x[j]. */
INLINE void FN(transpose)(V *x)
{
    const VI lane = FN(lanes)();
#pragma GCC unroll 4
    for (int s = 1; s < LANES; s *= 2) {
        const VI upper = (lane & s) != 0, other = lane ^ s;
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            if (!(i & s)) {
                const V a = x[i], b = x[i + s];
                x[i] = FN(shuffle)(a, b, (upper & (other + LANES)) | (~upper & lane));
                x[i + s] = FN(shuffle)(a, b, (upper & (lane + LANES)) | (~upper & other));
            }
    }
}

/* Halve the number of vectors if there are at least two; count and s are known at compile time. */
INLINE int FN(fold_halves)(V *acc, int count, int s)
{
    const int half = count / 2, left = half ? half : 1;
#pragma GCC unroll 8
    for (int i = 0; s && i < left; i++)
        acc[i] = FN(fold)(acc[i], acc[i + half], s);
    return left;
}

/* The sums over lanes of `count` vectors, a power of 2 and at most LANES, in the first lanes.
 *
 * Lanes that are far apart are added first, as are parts before lanes.  Transposing while adding
 * needs fewer shuffles than a reduction of each vector. */
INLINE V FN(sums_of_vectors)(int count, V *acc)
{
    int left = FN(fold_halves)(acc, count, LANES / 2);
    left = FN(fold_halves)(acc, left, LANES / 4);
    left = FN(fold_halves)(acc, left, LANES / 8);
    FN(fold_halves)(acc, left, LANES / 16);
    /* vector j is in lane j * LANES / count */
    const VI place = FN(lanes)() * (LANES / count) & (LANES - 1);
    return count == 1 || count == LANES ? acc[0] : FN(shuffle)(acc[0], acc[0], place);
}

/* Write the sums of n vectors (4 or 8) to out[0..n), which must be padded to whole vectors. */
INLINE void FN(sum_lanes)(V *acc, int n, REAL *out)
{
    const int count = n < LANES ? n : LANES;
#pragma GCC unroll 4
    for (int j = 0; j < n; j += count)
        FN(store)(out + j, FN(sums_of_vectors)(count, acc + j));
}

/* The sum of the PARTS vectors of a line; the sum of their lanes; and this sum in double. */
INLINE V FN(add_parts)(const V *x)
{
    return PARTS == 4   ? (x[0] + x[2 % PARTS]) + (x[1 % PARTS] + x[3 % PARTS])
           : PARTS == 2 ? x[0] + x[1 % PARTS]
                        : x[0];
}
INLINE REAL FN(sum_of_line)(const V *x)
{
    V sum = FN(add_parts)(x);
    return FN(sums_of_vectors)(1, &sum)[0];
}
INLINE double FN(wide_sum_of_line)(const V *x)
{
    double total = 0;
    for (int p = 0; p < PARTS; p++)
        for (int l = 0; l < LANES; l++)
            total += (double)x[p][l];
    return total;
}

/* The largest lane of a vector, and the sum of integer lanes; the order does not matter. */
INLINE REAL FN(largest_lane)(V x)
{
#pragma GCC unroll 4
    for (int s = LANES / 2; s; s /= 2)
        x = FN(max)(x, FN(shuffle)(x, x, FN(lanes)() ^ s));
    return x[0];
}
INLINE int FN(sum_of_int_lanes)(VI x)
{
    int total = 0;
#pragma GCC unroll 16
    for (int l = 0; l < LANES; l++)
        total += (int)x[l];
    return total;
}
