/* Collapsed inference of one document at fixed topics (CVB0).  This is a template; see vector.h.
 *
 * The distribution of a token's topic depends on the topics of the document's other tokens,
 *     phi_vk proportional to (alpha_k + n_k - o_v phi_vk) beta_vk,   n_k = sum_v c_v phi_vk,
 * where c_v is the count of word v, and o_v = min(c_v, 1) subtracts one token.  Words are updated
 * one after the other; each update uses the new n of the words before.  n is computed again in
 * every sweep, so that rounding errors do not add up.
 */

/* The factor with which a row of p sums to 1.  If p underflows or overflows, p is replaced by
 * beta, whose largest element is about 1. */
INLINE REAL FN(normaliser)(int K_pad, const REAL *beta, REAL total, REAL *p)
{
    const REAL largest = (REAL)(BITS == 64 ? 1e300 : 1e37);
    if (total > (REAL)TINY && total < largest)
        return 1 / total;
    V sum[PARTS] = {{0}};
    OVER_ROW(k, i, K_pad) {
        const V b = FN(load)(beta + k);
        FN(store)(p + k, b);
        sum[i] += b;
    }
    return 1 / FN(sum_of_line)(sum);
}

/* Returns the number of sweeps. */
static int FN(collapse_document)(int64_t n_words, int K_pad, const REAL *const *beta,
                                 const REAL *counts, /* IN  (n_words,)                         */
                                 const REAL *alpha,  /* IN  (K_pad,) 0 in the padding          */
                                 double enough,      /* IN  least change of a sweep, in tokens */
                                 int max_iter,       /* IN                                     */
                                 REAL *p,            /* OUT (K_pad,) scratch                   */
                                 REAL *before,       /* OUT (K_pad,) scratch                   */
                                 REAL *phi,          /* OUT (n_words, K_pad)                   */
                                 REAL *gamma)        /* OUT (K_pad,) alpha + n                 */
{
    __builtin_memcpy(gamma, alpha, K_pad * sizeof(REAL));
    for (int64_t i = 0; i < n_words; i++) {
        REAL *own = phi + i * K_pad;
        V sum[PARTS] = {{0}};
        OVER_ROW(k, j, K_pad) {
            const V product = FN(load)(alpha + k) * FN(load)(beta[i] + k);
            FN(store)(own + k, product);
            sum[j] += product;
        }
        const REAL scale = FN(normaliser)(K_pad, beta[i], FN(sum_of_line)(sum), own);
        for (int k = 0; k < K_pad; k += LANES) {
            const V share = scale * FN(load)(own + k);
            FN(store)(own + k, share);
            FN(store)(gamma + k, FN(fma)(FN(splat)(counts[i]), share, FN(load)(gamma + k)));
        }
    }
    for (int sweep = 0; sweep < max_iter; sweep++) {
        double change = 0;
        __builtin_memcpy(before, gamma, K_pad * sizeof(REAL));
        __builtin_memcpy(gamma, alpha, K_pad * sizeof(REAL));
        for (int64_t i = 0; i < n_words; i++) {
            const REAL count = counts[i], left_out = count < 1 ? count : 1;
            REAL *own = phi + i * K_pad;
            const V all = FN(splat)(count), none = FN(splat)(-left_out);
            V sum[PARTS] = {{0}}, moved[PARTS] = {{0}};
            OVER_ROW(k, j, K_pad) {
                const V others = FN(fma)(none, FN(load)(own + k), FN(load)(before + k));
                const V product = FN(max)(others, FN(load)(alpha + k)) * FN(load)(beta[i] + k);
                FN(store)(p + k, product);
                sum[j] += product;
            }
            const REAL scale = FN(normaliser)(K_pad, beta[i], FN(sum_of_line)(sum), p);
            OVER_ROW(k, j, K_pad) {
                const V share = scale * FN(load)(p + k);
                const V step = share - FN(load)(own + k);
                moved[j] += FN(abs)(step);
                FN(store)(own + k, share);
                FN(store)(before + k, FN(fma)(all, step, FN(load)(before + k)));
                FN(store)(gamma + k, FN(fma)(all, share, FN(load)(gamma + k)));
            }
            change += (double)count * (double)FN(sum_of_line)(moved);
        }
        if (!(change > enough))
            return sweep + 1;
    }
    return max_iter;
}

/* Each document of a batch; see kernels.h. */
static void FN(collapse_documents)(const annealvi_collapse *all)
{
    const annealvi_weights *weights = &all->weights;
    const int K = all->K, K_pad = weights->K_pad;
    SHARE_OUT(all->n_threads, dynamic, 4)
    for (int64_t d = 0; d < all->rows.n; d++) {
        const int64_t at = first_entry(&all->rows, d), n_words = first_entry(&all->rows, d + 1) - at;
        const REAL *data = (const REAL *)all->rows.data + at;
        const REAL *values = weights->values, *gamma = all->alpha;
        const REAL **row_of =
            (const REAL **)(all->pointers + omp_get_thread_num() * all->pointers_width);
        REAL *own = (REAL *)all->scratch + omp_get_thread_num() * all->scratch_width;
        double tokens = 0;
        for (int64_t j = 0; j < n_words; j++) {
            tokens += (double)data[j];
            row_of[j] = values + (int64_t)K_pad * weights->place[word_of(&all->rows, at + j)];
        }
        all->n_iter[d] = 0;
        if (n_words > 0) {
            all->n_iter[d] = FN(collapse_document)(
                n_words, K_pad, row_of, data, all->alpha, all->tolerance * tokens, all->max_iter,
                own, own + K_pad, own + 3 * K_pad, own + 2 * K_pad);
            gamma = own + 2 * K_pad;
        }
        memcpy((REAL *)all->gamma + d * K, gamma, K * sizeof(REAL));
    }
}
