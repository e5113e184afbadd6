/* Short vectors of one floating type, and the few operations the kernels need.
 *
 * This header is a template: it is included once for each floating type by
 * kernels.c with
 *     REAL    float or double
 *     INT     the signed integer of the same width
 *     BITS    that width in bits
 *     FN(x)   x with a suffix for the type
 * and is compiled once for each instruction set.  It uses the vector extension
 * of GCC and Clang, so the same source serves SSE2, AVX2, AVX-512 and NEON;
 * only max and min use intrinsics.  VECTOR_BYTES is the size of a vector.
 */

#ifndef ANNEALVI_VECTOR_BYTES
#define ANNEALVI_VECTOR_BYTES
#if defined(__AVX512F__) && defined(__AVX512DQ__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
#if defined(__SSE2__)
#include <immintrin.h>
#endif
#define INLINE static inline __attribute__((always_inline))
#define WORD_BLOCK 8      /* words that a sweep processes together */
#define FIRST_CACHE 32768   /* bytes of the level 1 cache that two blocks of rows may fill */
#define LONG_DOCUMENT 512 /* most words that are summed in float; a whole number of blocks */
#endif

#undef V
#undef VU
#undef VI
#undef LANES
#define V FN(vec)
#define VU FN(vec_unaligned)
#define VI FN(vec_int)
#define LANES ((int)(VECTOR_BYTES / sizeof(REAL)))

typedef REAL V __attribute__((vector_size(VECTOR_BYTES)));
typedef INT VI __attribute__((vector_size(VECTOR_BYTES)));
/* The same vector at any address of a REAL: rows are aligned, counts are not. */
typedef REAL VU __attribute__((vector_size(VECTOR_BYTES), aligned(sizeof(REAL)), may_alias));

INLINE V FN(load)(const REAL *p) { return *(const VU *)p; }
INLINE void FN(store)(REAL *p, V x) { *(VU *)p = x; }
INLINE V FN(splat)(REAL x) { return x - (V){0}; }
INLINE V FN(select)(VI mask, V yes, V no) { return (V)((mask & (VI)yes) | (~mask & (VI)no)); }

/* a > b ? a : b, and a < b ? a : b.  Compilers turn the select into several instructions; the
 * intrinsic is a single one with the same result, also for NaN (b is returned). */
#if VECTOR_BYTES == 64 && BITS == 64
INLINE V FN(max)(V a, V b) { return (V)_mm512_max_pd((__m512d)a, (__m512d)b); }
INLINE V FN(min)(V a, V b) { return (V)_mm512_min_pd((__m512d)a, (__m512d)b); }
#elif VECTOR_BYTES == 64
INLINE V FN(max)(V a, V b) { return (V)_mm512_max_ps((__m512)a, (__m512)b); }
INLINE V FN(min)(V a, V b) { return (V)_mm512_min_ps((__m512)a, (__m512)b); }
#elif VECTOR_BYTES == 32 && BITS == 64
INLINE V FN(max)(V a, V b) { return (V)_mm256_max_pd((__m256d)a, (__m256d)b); }
INLINE V FN(min)(V a, V b) { return (V)_mm256_min_pd((__m256d)a, (__m256d)b); }
#elif VECTOR_BYTES == 32
INLINE V FN(max)(V a, V b) { return (V)_mm256_max_ps((__m256)a, (__m256)b); }
INLINE V FN(min)(V a, V b) { return (V)_mm256_min_ps((__m256)a, (__m256)b); }
#elif defined(__SSE2__) && BITS == 64
INLINE V FN(max)(V a, V b) { return (V)_mm_max_pd((__m128d)a, (__m128d)b); }
INLINE V FN(min)(V a, V b) { return (V)_mm_min_pd((__m128d)a, (__m128d)b); }
#elif defined(__SSE2__)
INLINE V FN(max)(V a, V b) { return (V)_mm_max_ps((__m128)a, (__m128)b); }
INLINE V FN(min)(V a, V b) { return (V)_mm_min_ps((__m128)a, (__m128)b); }
#else
INLINE V FN(max)(V a, V b) { return FN(select)(a > b, a, b); }
INLINE V FN(min)(V a, V b) { return FN(select)(a < b, a, b); }
#endif
INLINE V FN(at_least)(V x, V least) { return FN(max)(least, x); } /* NaN stays */
INLINE V FN(abs)(V x) { return (V)((VI)x & ((INT)((1ULL << (BITS - 1)) - 1))); }

/* Sums of `n_words` vectors (4 or 8) over their lanes, written to out[0..n_words).
 *
 * Transposing while adding needs fewer shuffles than a reduction of each vector.
 * fold(a, b, s) returns a vector whose lane i holds a[i] + a[i ^ s] if bit s of
 * i is clear and b[i] + b[i ^ s] if it is set, so after folding with
 * s = 1, 2, 4 lane i holds the whole sum of vector i.  `out` needs room for
 * WORD_BLOCK + LANES numbers.
 */
#if defined(__GNUC__) && !defined(__clang__)
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

INLINE V FN(fold)(V a, V b, int s)
{
    const VI lane = FN(lanes)();
    const VI from_b = ((lane & s) != 0) & LANES;
    return __builtin_shuffle(a, b, lane + from_b) + __builtin_shuffle(a, b, (lane ^ s) + from_b);
}

/* Halve the number of vectors; `count` and s are known at compile time. */
INLINE int FN(fold_pairs)(V *acc, int count, int s)
{
    if (s >= LANES || count == 1)
        return count;
#pragma GCC unroll 4
    for (int i = 0; i < count / 2; i++)
        acc[i] = FN(fold)(acc[2 * i], acc[2 * i + 1], s);
    return count / 2;
}

INLINE void FN(sum_lanes)(V *acc, int n_words, REAL *out)
{
    int count = FN(fold_pairs)(acc, n_words, 1);
    count = FN(fold_pairs)(acc, count, 2);
    count = FN(fold_pairs)(acc, count, 4);
    if (n_words < LANES && n_words == 4)
        acc[0] += __builtin_shuffle(acc[0], FN(lanes)() ^ (4 & (LANES - 1)));
    if (n_words < LANES && LANES == 16)
        acc[0] += __builtin_shuffle(acc[0], FN(lanes)() ^ (8 & (LANES - 1)));
#pragma GCC unroll 8
    for (int i = 0; i < count; i++)
        FN(store)(out + i * LANES, acc[i]);
}

/* The sums over lanes of LANES vectors, as one vector. */
INLINE V FN(sums_of_vectors)(V *acc)
{
    int count = LANES;
#pragma GCC unroll 4
    for (int s = 1; s < LANES; s *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < count / 2; i++)
            acc[i] = FN(fold)(acc[2 * i], acc[2 * i + 1], s);
        count /= 2;
    }
    return acc[0];
}

/* The sum of a vector's lanes, and the largest of them. */
INLINE REAL FN(sum_of_lanes)(V x)
{
#pragma GCC unroll 4
    for (int s = LANES / 2; s; s /= 2)
        x += __builtin_shuffle(x, FN(lanes)() ^ s);
    return x[0];
}
INLINE REAL FN(largest_lane)(V x)
{
#pragma GCC unroll 4
    for (int s = LANES / 2; s; s /= 2)
        x = FN(max)(x, __builtin_shuffle(x, FN(lanes)() ^ s));
    return x[0];
}
INLINE int FN(sum_of_int_lanes)(VI x)
{
#pragma GCC unroll 4
    for (int s = LANES / 2; s; s /= 2)
        x += __builtin_shuffle(x, FN(lanes)() ^ s);
    return (int)x[0];
}
#else
INLINE void FN(sum_lanes)(V *acc, int n_words, REAL *out)
{
    for (int j = 0; j < n_words; j++) {
        REAL total = 0;
        for (int l = 0; l < LANES; l++)
            total += acc[j][l];
        out[j] = total;
    }
}

INLINE REAL FN(sum_of_lanes)(V x)
{
    REAL total = 0;
    for (int l = 0; l < LANES; l++)
        total += x[l];
    return total;
}
INLINE REAL FN(largest_lane)(V x)
{
    REAL largest = x[0];
    for (int l = 1; l < LANES; l++)
        largest = x[l] > largest ? x[l] : largest;
    return largest;
}
INLINE int FN(sum_of_int_lanes)(VI x)
{
    int total = 0;
    for (int l = 0; l < LANES; l++)
        total += (int)x[l];
    return total;
}
INLINE V FN(sums_of_vectors)(V *acc)
{
    V sums;
    for (int j = 0; j < LANES; j++)
        sums[j] = FN(sum_of_lanes)(acc[j]);
    return sums;
}
#endif
