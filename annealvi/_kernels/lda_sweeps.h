/* Sweeps over the words of one document, by rows or by columns.  This is a template; see vector.h
 * and lda_rows.h. */

/* The number of words whose sums stay in registers. */
#undef SOME
#define SOME (WORD_BLOCK / PARTS)

/* norm_j = sum_k t_k W_jk for `n` (4 or 8) words.  Whole vectors are written. */
INLINE void FN(norms)(int n, int K_pad, const REAL *const *rows, const REAL *t, REAL *norm)
{
    const int some = n < SOME ? n : SOME;
    V sum[WORD_BLOCK];
#pragma GCC unroll 4
    for (int first = 0; first < n; first += some) {
        V acc[SOME][PARTS];
        const REAL *row[SOME];
#pragma GCC unroll 8
        for (int j = 0; j < some; j++) {
            EACH_PART(p)
                acc[j][p] = (V){0};
            row[j] = rows[first + j];
        }
        OVER_ROW(k, p, K_pad) {
            const V tk = FN(load)(t + k);
#pragma GCC unroll 8
            for (int j = 0; j < some; j++)
                acc[j][p] = FN(fma)(tk, FN(load)(row[j] + k), acc[j][p]);
        }
#pragma GCC unroll 8
        for (int j = 0; j < some; j++)
            sum[first + j] = FN(add_parts)(acc[j]);
    }
    FN(sum_lanes)(sum, n, norm);
}

/* Compute norm_j as above, and also ratio_j = n_j / (norm_j + eps). */
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
            even = FN(fma)(r[j], FN(load)(row[j] + k), even);
            odd = FN(fma)(r[j + 1], FN(load)(row[j + 1] + k), odd);
        }
        FN(store)(s + k, even + odd);
    }
}

/* The number of words in a block, which is half as large if the last words of a document fit into
 * half a block.  Rows and counts are padded to a whole block with words of count 0. */
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
 * The norms of the next block are computed before the rows of the present block are added, so
 * that nothing waits for the division.  Sweeps alternate between forwards and backwards, because
 * the rows of a document are often slightly larger than the level 1 cache, and the rows that the
 * last sweep used at its end are still in the cache. */
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

/* The first sweep over a document whose topics all have the same t.  Up to a factor the norms are
 * the sums of the rows, which are known: s_k += sum_v (n_v / sum_v) W_vk. */
static void FN(even_sweep)(int64_t n_words, int K_pad, const REAL *const *rows, const REAL *counts,
                           const REAL *row_sums, REAL *ratio, REAL *s)
{
    const int64_t n_padded = (n_words + WORD_BLOCK - 1) / WORD_BLOCK * WORD_BLOCK;
    for (int64_t j = 0; j < n_padded; j += LANES)
        FN(store)(ratio + j, FN(load)(counts + j) / FN(load)(row_sums + j));
    for (int64_t j = 0; j < n_words; j += WORD_BLOCK)
        if (FN(block_size)(n_words, j) == WORD_BLOCK)
            FN(add_rows)(WORD_BLOCK, K_pad, rows + j, ratio + j, s);
        else
            FN(add_rows)(WORD_BLOCK / 2, K_pad, rows + j, ratio + j, s);
}

/* Compute only the norms and ratios, for all words. */
static void FN(all_normalizers)(int64_t n_words, int K_pad, const REAL *const *rows,
                                const REAL *counts, const REAL *t, REAL eps, REAL *norm,
                                REAL *ratio)
{
    for (int64_t j = 0; j < n_words; j += WORD_BLOCK)
        FN(block_normalizers)(n_words, j, K_pad, rows, counts, t, eps, norm + j, ratio + j);
}

/* Compute the norms of all words of a document.  With E[theta] as t and E[beta] as W they are the
 * probabilities of the words. */
static void FN(mixture)(int64_t n_words, int K_pad, const void *const *rows, const void *t,
                        void *norm)
{
    for (int64_t j = 0; j < n_words; j += WORD_BLOCK)
        FN(norms)(WORD_BLOCK, K_pad, (const REAL *const *)rows + j, t, (REAL *)norm + j);
}

/* For a document with at most NARROW topics, sweeps use columns.  LANES words are processed
 * together: the weights of one topic for these words are a vector, and the vectors of all topics
 * follow each other.  Lanes are then words, so norms are not summed over lanes, and the s_k stay in
 * registers until the end of a part. */
#define NARROW 24
#define NARROW_STEP 4
#define AGAIN_FROM_MEMORY __asm__ volatile("" ::: "memory")

/* Process the words of m vectors that are a line apart.  With two vectors t is read half as often.
 * AGAIN_FROM_MEMORY makes the compiler read the columns twice.  Otherwise it would keep the columns
 * in registers, and the sums in memory. */
INLINE void FN(sweep_vectors)(const int n, const int m, int64_t v, const REAL *columns,
                              const REAL *counts, const REAL *t, REAL eps, REAL *norm,
                              REAL *ratio, V *sum)
{
    V part[2][NARROW_STEP], r[2];
#pragma GCC unroll 4
    for (int k = 0; k < NARROW_STEP; k++) {
        const V tk = FN(splat)(t[k]);
#pragma GCC unroll 2
        for (int i = 0; i < m; i++)
            part[i][k] = tk * FN(load)(columns + i * n * LINE + k * LANES);
    }
#pragma GCC unroll 24
    for (int k = NARROW_STEP; k < n; k++) {
        const V tk = FN(splat)(t[k]);
#pragma GCC unroll 2
        for (int i = 0; i < m; i++)
            part[i][k % NARROW_STEP] = FN(fma)(tk, FN(load)(columns + i * n * LINE + k * LANES),
                                               part[i][k % NARROW_STEP]);
    }
#pragma GCC unroll 2
    for (int i = 0; i < m; i++) {
        const V total = (part[i][0] + part[i][1]) + (part[i][2] + part[i][3]);
        r[i] = FN(load)(counts + v + i * LINE) / (total + eps);
        if (norm) {
            FN(store)(norm + v + i * LINE, total);
            FN(store)(ratio + v + i * LINE, r[i]);
        }
    }
    AGAIN_FROM_MEMORY;
    if (!norm)
#pragma GCC unroll 24
        for (int k = 0; k < n; k++)
#pragma GCC unroll 2
            for (int i = 0; i < m; i++)
                sum[k] = FN(fma)(r[i], FN(load)(columns + i * n * LINE + k * LANES), sum[k]);
}

INLINE void FN(sweep_columns_of)(const int n, int64_t n_words, const REAL *columns,
                                 const REAL *counts, const REAL *t, REAL eps, REAL *norm,
                                 REAL *ratio, REAL *s)
{
    V sums[NARROW][PARTS];
    EACH_PART(p) {
        V sum[NARROW];
#pragma GCC unroll 24
        for (int k = 0; k < n; k++)
            sum[k] = (V){0};
        int64_t v = p * LANES;
        const REAL *own = columns + v * n;
        for (; v + LINE < n_words; v += 2 * LINE, own += 2 * n * LINE)
            FN(sweep_vectors)(n, 2, v, own, counts, t, eps, norm, ratio, sum);
        if (v < n_words)
            FN(sweep_vectors)(n, 1, v, own, counts, t, eps, norm, ratio, sum);
#pragma GCC unroll 24
        for (int k = 0; k < n; k++)
            sums[k][p] = sum[k];
    }
    if (!norm)
#pragma GCC unroll 12
        for (int k = 0; k < n; k += LANES) {
            V sum[LANES];
#pragma GCC unroll 16
            for (int j = 0; j < LANES; j++)
                sum[j] = k + j < n ? FN(add_parts)(sums[k + j]) : (V){0};
            FN(store)(s + k, FN(sums_of_vectors)(LANES, sum));
        }
}

/* If `norm` is not NULL, compute the norms and ratios, otherwise s. */
static void FN(sweep_columns)(int n, int64_t n_words, const REAL *columns, const REAL *counts,
                              const REAL *t, REAL eps, REAL *norm, REAL *ratio, REAL *s)
{
#define SWEEP(n) FN(sweep_columns_of)(n, n_words, columns, counts, t, eps, norm, ratio, s)
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
