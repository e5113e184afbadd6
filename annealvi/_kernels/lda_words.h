/* Statistics of words, topic weights and steps of lambda.  This is a template; see vector.h and
 * lda_rows.h.  One thread sums each word, over the word's documents in their order. */

/* acc_k += b_d ratio_e t_dk for ENTRIES entries, one after the other.  The sum of a topic stays in
 * a register meanwhile. */
#undef ENTRIES
#define ENTRIES 4
#define AHEAD 8 /* entries */
#undef HALF_LINE
#define HALF_LINE (LINE / 2)
/* sum + c t; no fma is needed, because the product of two floats is exact in double. */
INLINE double FN(add_product)(double sum, REAL c, REAL t)
{
    return BITS == 64 || HAS_FMA ? __builtin_fma((double)c, (double)t, sum)
                                 : sum + (double)c * (double)t;
}

INLINE void FN(add_entries)(int width, int K_pad, const int64_t *document,
                            const int64_t *position, const REAL *ratio, const REAL *t,
                            const REAL *b, double *restrict acc)
{
    const REAL *restrict t0 = t + document[0] * K_pad, *restrict t1 = t + document[1] * K_pad;
    const REAL *restrict t2 = t + document[2] * K_pad, *restrict t3 = t + document[3] * K_pad;
    REAL c[ENTRIES];
    for (int e = 0; e < ENTRIES; e++)
        c[e] = b[document[e]] * ratio[position[e]];
    for (int k = 0; k < width; k++) {
        double sum = acc[k];
        sum = FN(add_product)(sum, c[0], t0[k]);
        sum = FN(add_product)(sum, c[1], t1[k]);
        sum = FN(add_product)(sum, c[2], t2[k]);
        sum = FN(add_product)(sum, c[3], t3[k]);
        acc[k] = sum;
    }
}

/* The scratch of this thread. */
INLINE REAL *FN(scratch_of)(const annealvi_block *block)
{
    return (REAL *)block->scratch + omp_get_thread_num() * block->scratch_width;
}

/* The statistics of word v, the i-th word of the block, summed over its documents in their order:
 *     S_vk (+)= sum_d b_d ratio_dv t_dk exp(b_d l_vk). */
static void FN(sum_word)(const annealvi_block *block, int64_t i, int64_t v, int add,
                         REAL *restrict raised, /* OUT K_pad: scratch */
                         REAL *restrict s_row)  /* IN/OUT K_pad; `add`: it holds others' */
{
    const int K_pad = block->weights.K_pad, normalise = block->weights.normalise;
    const int64_t row = (int64_t)K_pad * block->weights.place[v];
    const REAL b0 = (REAL)block->weights.b0, *all_logs = block->weights.logs;
    const REAL *restrict weights = (const REAL *)block->weights.values + row;
    const REAL *restrict logs = all_logs ? all_logs + row : NULL;
    const int64_t n_entries = block->first[i + 1] - block->first[i];
    const int64_t *document = block->document + block->first[i];
    const int64_t *position = block->position + block->first[i];
    const REAL *ratio = block->ratio, *t = block->t, *b = block->b;
    const int32_t *active = block->active, *n_active = block->n_active;
    double *restrict acc = block->sums + omp_get_thread_num() * block->sums_width;
    int at_b0 = 1;
    for (int64_t e = 0; logs && e < n_entries; e++)
        at_b0 &= b[document[e]] == b0;
    if (at_b0) { /* W is the same for all documents */
        REAL half = 0;
        for (int k = K_pad - HALF_LINE; k < K_pad; k++)
            half += weights[k];
        const int width = half == 0 ? K_pad - HALF_LINE : K_pad; /* the rest is padding */
        for (int k = 0; k < K_pad; k++)
            acc[k] = 0;
        for (int64_t e = 0; e < n_entries;) {
            /* rows of documents are read in an order that the processor cannot predict */
            const int64_t stop = e + AHEAD + ENTRIES < n_entries ? e + AHEAD + ENTRIES : n_entries;
            for (int64_t ahead = e + AHEAD; ahead < stop; ahead++) {
                __builtin_prefetch(t + document[ahead] * K_pad);
                __builtin_prefetch(t + document[ahead] * K_pad + 64 / sizeof(REAL));
            }
            /* entries of documents with all topics; if there are few topics, documents have all */
            int together = K_pad <= SPREAD && e + ENTRIES <= n_entries ? ENTRIES : 0;
            while (together < ENTRIES && e + together < n_entries &&
                   n_active[document[e + together]] == K_pad)
                together++;
            if (together == ENTRIES) {
                FN(add_entries)(width, K_pad, document + e, position + e, ratio, t, b, acc);
                e += ENTRIES;
                continue;
            }
            const REAL *restrict td = t + document[e] * K_pad;
            const REAL c = b[document[e]] * ratio[position[e]];
            const int n = n_active[document[e]];
            if (n == K_pad) {
                for (int k = 0; k < width; k++)
                    acc[k] = FN(add_product)(acc[k], c, td[k]);
            } else {
                const int32_t *restrict topics = active + document[e] * K_pad;
                for (int j = 0; j < n; j++)
                    acc[topics[j]] = FN(add_product)(acc[topics[j]], c, td[j]);
            }
            e++;
        }
        for (int k = 0; k < K_pad; k++)
            acc[k] = acc[k] * (double)weights[k] + (add ? (double)s_row[k] : 0);
    } else {
        for (int k = 0; k < K_pad; k++)
            acc[k] = add ? (double)s_row[k] : 0;
        for (int64_t e = 0; e < n_entries; e++) {
            const REAL *restrict td = t + document[e] * K_pad;
            const double c = (double)b[document[e]] * (double)ratio[position[e]];
            const int n = n_active[document[e]];
            FN(raise_row)(K_pad, logs, b[document[e]], normalise, raised);
            if (n == K_pad) {
                for (int k = 0; k < K_pad; k++)
                    acc[k] += c * (double)td[k] * (double)raised[k];
            } else {
                const int32_t *restrict topics = active + document[e] * K_pad;
                for (int j = 0; j < n; j++)
                    acc[topics[j]] += c * (double)td[j] * (double)raised[topics[j]];
            }
        }
    }
    for (int k = 0; k < K_pad; k++)
        s_row[k] = (REAL)acc[k];
}

/* sum_k s_k log W_k, and sum_k s_k. */
static double FN(log_dot)(int K_pad, const REAL *s, const REAL *weights, double *sum)
{
    const V tiny = FN(splat)((REAL)TINY);
    V dot[PARTS] = {{0}}, all[PARTS] = {{0}};
    OVER_ROW(k, p, K_pad) {
        const V share = FN(load)(s + k);
        dot[p] = FN(fma)(share, FN(log)(FN(max)(FN(load)(weights + k), tiny)), dot[p]);
        all[p] += share;
    }
    *sum = FN(wide_sum_of_line)(all);
    return FN(wide_sum_of_line)(dot);
}

/* Add the statistics of a block; see kernels.h. */
static void FN(add_statistics)(const annealvi_sums *all)
{
    const annealvi_weights *weights = &all->block.weights;
    const REAL *log_scale = weights->log_scale;
    const double b0 = (double)(REAL)weights->b0;
    SHARE_OUT(all->n_threads, dynamic, 16)
    for (int64_t i = 0; i < all->n_words; i++) {
        const int64_t v = all->words[i], row = weights->place[v], to = all->row_of[v];
        REAL *s_row = (REAL *)all->statistics + to * weights->K_pad;
        FN(sum_word)(&all->block, i, v, to < all->n_before, FN(scratch_of)(&all->block), s_row);
        if (all->word_energy) { /* computed here, while the rows are in the cache */
            double total = 0;
            const REAL *values = (const REAL *)weights->values + row * weights->K_pad;
            const double dot = FN(log_dot)(weights->K_pad, s_row, values, &total);
            all->word_energy[v] = (dot / b0 + total * (double)log_scale[row]) / b0;
        }
    }
}

/* The exponents of a row of topic weights.  At b = 1 they are split into a scale and the rest;
 * otherwise the scale is 1.  The largest exponent is returned.  `kind` is NEAR if all lambda are
 * below FAR, and MEAN if log lambda replaces psi(lambda).  It is WIDE_MEAN if, in addition,
 * log_sums differ so much that the rest alone would be clamped.  Then exponents are not split. */
enum { FN(DISTANT), FN(NEAR), FN(MEAN), FN(WIDE_MEAN) };
INLINE REAL FN(weight_exponents)(int kind, int K, int K_pad, const REAL *lambda,
                                 const REAL *log_sums, REAL b, REAL *scales, REAL *exponents)
{
    for (int k = 0; k < K_pad; k += LANES) {
        V scale = FN(load)(lambda + k), shift = {0};
        if (kind < FN(MEAN))
            FN(digamma_parts)(scale, kind == FN(NEAR), &scale, &shift);
        const V rest = -shift - FN(load)(log_sums + k);
        const int apart = b == 1 && kind != FN(WIDE_MEAN);
        FN(store)(scales + k, apart ? scale : FN(splat)(1));
        FN(store)(exponents + k, apart ? rest : rest + FN(log)(scale));
    }
    const REAL any = exponents[0];
    for (int k = K; k < K_pad; k++) {
        exponents[k] = any;
        scales[k] = 0;
    }
    return FN(largest_of)(K_pad, exponents);
}

/* The row of topic weights below, for log E beta, b != 1 and no logarithms, in two loops. */
INLINE REAL FN(mean_weights)(int K, int K_pad, const REAL *lambda, const REAL *log_sums, REAL b,
                             int normalise, REAL *exponents, REAL *weights, REAL *row_sum)
{
    V top = FN(log)(FN(splat)(lambda[0])) - log_sums[0], sum[PARTS] = {{0}};
    for (int k = 0; k < K_pad; k += LANES) { /* in the padding log_sums are huge */
        const V exponent = FN(log)(FN(load)(lambda + k)) - FN(load)(log_sums + k);
        FN(store)(exponents + k, exponent);
        top = FN(max)(top, exponent);
    }
    const REAL reference = normalise ? FN(largest_lane)(top) : 0;
    const V floor = FN(splat)(normalise ? CLAMP : CLAMP_PLAIN);
    OVER_ROW(k, p, K_pad) {
        const V exponent = b * (FN(load)(exponents + k) - reference);
        const V weight = FN(exp_clamped)(FN(max)(exponent, floor));
        FN(store)(weights + k, weight);
        sum[p] += weight;
    }
    *row_sum = FN(add_lanes)(K, K_pad, weights, sum);
    for (int k = K; k < K_pad; k++)
        weights[k] = 0;
    return reference;
}

/* Compute one row of topic weights, W_k = exp(b (l_k - reference)), with 0 in the padding; return
 * the reference.  l_k is E log beta_k = psi(lambda_k) - log_sums_k or, if `mean`, log E beta_k =
 * log lambda_k - log_sums_k, where log_sums are psi or the logarithm of lambda's sums over words.
 * `mean` is 2 if log_sums differ much; see WIDE_MEAN.  With `normalise` the reference is about the
 * largest l_k of the row, otherwise 0.  `logs`, if it is not NULL, receives the exponents at b = 1
 * without a clamp.  If `factor` is not 1, lambda is first moved towards eta, as in step_row.
 * `row_sum` receives the sum of the row.  `scratch` has 2 K_pad numbers. */
static REAL FN(topic_weights)(int mean, int K, int K_pad, const REAL *lambda, const REAL *eta,
                              REAL factor, const REAL *log_sums, REAL b, int normalise,
                              REAL *scratch, REAL *weights, REAL *row_sum, REAL *logs)
{
    REAL *exponents = scratch;
    if (factor != 1) { /* the row has missed steps */
        REAL *row = scratch + K_pad;
        for (int k = 0; k < K; k++)
            row[k] = eta[k] + factor * (lambda[k] - eta[k]);
        for (int k = K; k < K_pad; k++)
            row[k] = lambda[k];
        lambda = row;
    }
    REAL reference;
    if (mean == 1 && b != 1 && !logs)
        return FN(mean_weights)(K, K_pad, lambda, log_sums, b, normalise, exponents, weights,
                                row_sum);
#define EXPONENTS(kind)                                                                          \
    FN(weight_exponents)(FN(kind), K, K_pad, lambda, log_sums, b, weights, exponents)
    if (mean == 2)
        reference = EXPONENTS(WIDE_MEAN);
    else if (mean)
        reference = EXPONENTS(MEAN);
    else if (FN(largest_of)(K_pad, lambda) < (REAL)FAR)
        reference = EXPONENTS(NEAR);
    else
        reference = EXPONENTS(DISTANT);
#undef EXPONENTS
    if (!normalise)
        reference = 0;
    const V floor = FN(splat)(normalise ? CLAMP : CLAMP_PLAIN);
    if (logs) {
        for (int k = 0; k < K_pad; k += LANES) {
            const V log = FN(load)(exponents + k) - reference;
            FN(store)(logs + k, b == 1 ? log + FN(log)(FN(load)(weights + k)) : log);
        }
        for (int k = K; k < K_pad; k++)
            logs[k] = (REAL)PADDED_LOG;
    }
    V sum[PARTS] = {{0}};
    OVER_ROW(k, p, K_pad) {
        const V exponent = b * (FN(load)(exponents + k) - reference);
        const V factor = FN(exp_clamped)(FN(max)(exponent, floor));
        const V weight = FN(load)(weights + k) * factor;
        FN(store)(weights + k, weight);
        sum[p] += weight;
    }
    *row_sum = FN(sum_of_line)(sum);
    return reference;
}

/* Compute the rows of new words; see kernels.h. */
static void FN(refresh_weights)(const annealvi_refresh *all)
{
    const annealvi_weights *weights = &all->weights;
    const int K_pad = weights->K_pad;
    REAL *log_scale = weights->log_scale, *row_sums = weights->row_sums, *logs = weights->logs;
    SHARE_OUT(all->n_threads, dynamic, 16)
    for (int64_t i = 0; i < all->n_words; i++) {
        const int64_t v = all->words[i], row = all->first_row + i;
        log_scale[row] = FN(topic_weights)(
            all->kind, all->K, K_pad, (const REAL *)all->lam + v * K_pad,
            (const REAL *)all->eta + v * all->eta_stride, (REAL)(all->now / all->decay[v]),
            all->log_sums, (REAL)weights->b0, weights->normalise,
            (REAL *)all->scratch + omp_get_thread_num() * all->scratch_width,
            (REAL *)weights->values + row * K_pad, row_sums + row,
            logs ? logs + row * K_pad : NULL);
    }
}

/* lambda after steps towards eta.  Without a step it is lambda itself, because eta + (lambda - eta)
 * would be 0 if eta is so large that lambda - eta has lost all digits of lambda. */
static inline REAL FN(moved)(REAL lambda, REAL eta, REAL factor)
{
    return factor == 1 ? lambda : eta + factor * (lambda - eta);
}

/* One row of the natural-gradient step, which moves lambda towards the prior and adds statistics:
 *     lambda = max(eta + factor * (lambda - eta) + amount * S, floor).
 * S or, if `whole`, the new lambda is added to `sums`.  Rounding errors are relative to the new
 * lambda + eta, so they are large relative to lambda only if lambda is far below the prior. */
static void FN(step_row)(int K, REAL factor, REAL amount, REAL floor, int whole,
                         const REAL *restrict eta, const REAL *restrict s_row,
                         REAL *restrict lambda, double *restrict sums)
{
    if (s_row)
        for (int k = 0; k < K; k++) {
            const REAL new = FN(moved)(lambda[k], eta[k], factor) + amount * s_row[k];
            lambda[k] = new < floor ? floor : new; /* NaN stays NaN */
            sums[k] += (double)(whole ? lambda[k] : s_row[k]);
        }
    else
        for (int k = 0; k < K; k++) {
            const REAL new = FN(moved)(lambda[k], eta[k], factor);
            lambda[k] = new < floor ? floor : new;
            sums[k] += (double)(whole ? lambda[k] : 0);
        }
}

/* The step of some rows, and the topics' sums over each block of rows; see kernels.h.  Statistics
 * that are summed from a block of documents stay in the cache. */
static void FN(step_words)(const annealvi_step *all)
{
    const int K = all->K, K_pad = all->K_pad;
    SHARE_OUT(all->n_threads, dynamic, 1)
    for (int64_t part = 0; part < all->n_parts; part++) {
        const int64_t first = part * ANNEALVI_VOCABULARY_BLOCK;
        double *sums = all->partial + part * all->partial_width;
        memset(sums, 0, K * sizeof(double));
        for (int64_t i = first; i < first + ANNEALVI_VOCABULARY_BLOCK && i < all->n_words; i++) {
            const int64_t v = all->words[i], own = all->row_of[v];
            const REAL *s_row = NULL;
            if (own >= 0 && all->statistics) {
                s_row = (const REAL *)all->statistics + own * K_pad;
            } else if (own >= 0) {
                REAL *summed = FN(scratch_of)(&all->block);
                FN(sum_word)(&all->block, own, v, 0, summed + K_pad, summed);
                s_row = summed;
            }
            FN(step_row)(K, (REAL)(all->now / all->decay[v]), (REAL)all->amount,
                         (REAL)all->floor, all->whole,
                         (const REAL *)all->eta + v * all->eta_stride, s_row,
                         (REAL *)all->lam + v * K_pad, sums);
            all->decay[v] = all->now;
        }
    }
}
