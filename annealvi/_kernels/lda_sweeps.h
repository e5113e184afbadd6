/* Sweeps over the words of one document, by rows or by columns.  A template: see vector.h and
 * lda_rows.h. */

/* norm_j = sum_k t_k W_jk for `n` (4 or 8) words.  Whole vectors are written. */
INLINE void FN(norms)(int n, int K_pad, const REAL *const *rows, const REAL *t, REAL *norm)
{
    V acc[WORD_BLOCK];
    const REAL *row[WORD_BLOCK];
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        acc[j] = (V){0};
        row[j] = rows[j];
    }
    for (int k = 0; k < K_pad; k += LANES) {
        const V tk = FN(load)(t + k);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++)
            acc[j] += tk * FN(load)(row[j] + k);
    }
    FN(sum_lanes)(acc, n, norm);
}

/* The same, and also ratio_j = n_j / (norm_j + eps). */
INLINE void FN(normalizers)(int n, int K_pad, const REAL *const *rows, const REAL *counts,
                            const REAL *t, REAL eps, REAL *norm, REAL *ratio)
{
    FN(norms)(n, K_pad, rows, t, norm);
#pragma GCC unroll 4
    for (int j = 0; j < n; j += LANES)
        FN(store)(ratio + j, FN(load)(counts + j) / (FN(load)(norm + j) + eps));
}

/* s_k += sum_j ratio_j W_jk for the same words, whose rows are still in the level 1 cache. */
INLINE void FN(add_rows)(int n, int K_pad, const REAL *const *rows, const REAL *ratio, REAL *s)
{
    V r[WORD_BLOCK];
    const REAL *row[WORD_BLOCK];
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        r[j] = FN(splat)(ratio[j]);
        row[j] = rows[j];
    }
    for (int k = 0; k < K_pad; k += LANES) {
        V even = FN(load)(s + k), odd = (V){0};
#pragma GCC unroll 4
        for (int j = 0; j < n; j += 2) {
            even += r[j] * FN(load)(row[j] + k);
            odd += r[j + 1] * FN(load)(row[j + 1] + k);
        }
        FN(store)(s + k, even + odd);
    }
}

/* The number of words in a block: a whole block, or half a block if the last words of a document
 * fit into it.  Rows and counts are padded to a whole block with words of count 0. */
INLINE int FN(block_size)(int64_t n_words, int64_t first)
{
    return n_words - first > WORD_BLOCK / 2 ? WORD_BLOCK : WORD_BLOCK / 2;
}

INLINE void FN(block_normalizers)(int64_t n_words, int64_t j, int K_pad, const REAL *const *rows,
                                  const REAL *counts, const REAL *t, REAL eps, REAL *norm,
                                  REAL *ratio)
{
    if (FN(block_size)(n_words, j) == WORD_BLOCK)
        FN(normalizers)(WORD_BLOCK, K_pad, rows + j, counts + j, t, eps, norm, ratio);
    else
        FN(normalizers)(WORD_BLOCK / 2, K_pad, rows + j, counts + j, t, eps, norm, ratio);
}

/* One sweep over a document: s_k += sum_v ratio_v W_vk.
 *
 * The norms of the next block are computed before the rows of this one are added, so that
 * nothing waits for the division.  Sweeps alternate between forwards and backwards: the rows
 * of a document are often a little larger than the level 1 cache, and the rows that the last
 * sweep used at its end are still in it. */
static void FN(sweep)(int backwards, int64_t n_words, int K_pad, const REAL *const *rows,
                      const REAL *counts, const REAL *t, REAL eps, REAL *s)
{
    REAL norm[WORD_BLOCK + LANES], ratio[2][WORD_BLOCK + LANES];
    const int64_t n_blocks = (n_words + WORD_BLOCK - 1) / WORD_BLOCK;
    const int64_t step = backwards ? -WORD_BLOCK : WORD_BLOCK;
    int64_t j = backwards ? (n_blocks - 1) * WORD_BLOCK : 0;
    const int ahead = 2 * WORD_BLOCK * K_pad * (int)sizeof(REAL) <= FIRST_CACHE;
    if (n_blocks > 0 && ahead)
        FN(block_normalizers)(n_words, j, K_pad, rows, counts, t, eps, norm, ratio[0]);
    for (int64_t i = 0; i < n_blocks; i++, j += step) {
        if (!ahead)
            FN(block_normalizers)(n_words, j, K_pad, rows, counts, t, eps, norm, ratio[i & 1]);
        else if (i + 1 < n_blocks)
            FN(block_normalizers)(n_words, j + step, K_pad, rows, counts, t, eps, norm,
                                  ratio[(i + 1) & 1]);
        if (FN(block_size)(n_words, j) == WORD_BLOCK)
            FN(add_rows)(WORD_BLOCK, K_pad, rows + j, ratio[i & 1], s);
        else
            FN(add_rows)(WORD_BLOCK / 2, K_pad, rows + j, ratio[i & 1], s);
    }
}

/* Only the norms and ratios, for all words. */
static void FN(all_normalizers)(int64_t n_words, int K_pad, const REAL *const *rows,
                                const REAL *counts, const REAL *t, REAL eps, REAL *norm,
                                REAL *ratio)
{
    for (int64_t j = 0; j < n_words; j += WORD_BLOCK)
        FN(block_normalizers)(n_words, j, K_pad, rows, counts, t, eps, norm + j, ratio + j);
}

/* The norms of all words of a document.  With E[theta] as t and E[beta] as W they are the
 * probabilities of the words. */
static void FN(mixture)(int64_t n_words, int K_pad, const REAL *const *rows, const REAL *t,
                        REAL *norm)
{
    for (int64_t j = 0; j < n_words; j += WORD_BLOCK)
        FN(norms)(WORD_BLOCK, K_pad, rows + j, t, norm + j);
}

/* A document with at most NARROW topics is swept over by columns.  A column holds the weights of
 * one topic for all words, n_columns of them after padding.  Lanes are then words, so norms need
 * not be summed over lanes, and the s_k stay in registers until the end. */
#define NARROW ANNEALVI_NARROW
#define NARROW_STEP 4

INLINE void FN(sweep_columns_of)(const int n, int64_t n_words, int64_t n_columns,
                                 const REAL *columns, const REAL *counts, const REAL *t,
                                 REAL eps, REAL *norm, REAL *ratio, REAL *s)
{
    V sum[NARROW];
    REAL sums[WORD_BLOCK + LANES];
#pragma GCC unroll 24
    for (int k = 0; k < n; k++)
        sum[k] = (V){0};
    for (int64_t v = 0; v < n_words; v += LANES) {
        V part[NARROW_STEP];
#pragma GCC unroll 4
        for (int k = 0; k < NARROW_STEP; k++)
            part[k] = t[k] * FN(load)(columns + k * n_columns + v);
#pragma GCC unroll 24
        for (int k = NARROW_STEP; k < n; k++)
            part[k % NARROW_STEP] += t[k] * FN(load)(columns + k * n_columns + v);
        const V total = (part[0] + part[1]) + (part[2] + part[3]);
        const V r = FN(load)(counts + v) / (total + eps);
        if (norm) {
            FN(store)(norm + v, total);
            FN(store)(ratio + v, r);
        } else {
#pragma GCC unroll 24
            for (int k = 0; k < n; k++)
                sum[k] += r * FN(load)(columns + k * n_columns + v);
        }
    }
    if (!norm)
#pragma GCC unroll 6
        for (int k = 0; k < n; k += NARROW_STEP) {
            FN(sum_lanes)(sum + k, NARROW_STEP, sums);
            for (int j = 0; j < NARROW_STEP; j++)
                s[k + j] = sums[j];
        }
}

/* If `norm` is given, compute the norms and ratios, otherwise s. */
static void FN(sweep_columns)(int n, int64_t n_words, int64_t n_columns, const REAL *columns,
                              const REAL *counts, const REAL *t, REAL eps, REAL *norm,
                              REAL *ratio, REAL *s)
{
#define SWEEP(n) FN(sweep_columns_of)(n, n_words, n_columns, columns, counts, t, eps, norm, ratio, s)
    switch (n) {
    case 4: SWEEP(4); break;
    case 8: SWEEP(8); break;
    case 12: SWEEP(12); break;
    case 16: SWEEP(16); break;
    case 20: SWEEP(20); break;
    default: SWEEP(24);
    }
#undef SWEEP
}
