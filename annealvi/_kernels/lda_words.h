/* Functions for one word: statistics, topic weights and the step of lambda.  A template: see
 * vector.h and lda_rows.h. */

/* raised_k = exp(max(b l_k, clamp)), 0 in the padding. */
static void FN(raise_row)(int K_pad, const REAL *logs, REAL b, int normalise, REAL *raised)
{
    const V floor = FN(splat)(normalise ? CLAMP : CLAMP_PLAIN);
    for (int k = 0; k < K_pad; k += LANES) {
        const V l = FN(load)(logs + k);
        const V power = FN(exp_clamped)(FN(max)(b * l, floor));
        FN(store)(raised + k, FN(select)(l > (REAL)PADDED_LOG, power, (V){0}));
    }
}

/* acc_k += b_d ratio_e t_dk of ENTRIES entries, one after the other: the sum of a topic stays in a
 * register meanwhile. */
#undef ENTRIES
#define ENTRIES 4
#define AHEAD 8 /* entries */
/* sum + c t; without fma too, for the product of two floats is exact in double. */
INLINE double FN(add_product)(double sum, REAL c, REAL t)
{
    return BITS == 64 || HAS_FMA ? __builtin_fma((double)c, (double)t, sum)
                                 : sum + (double)c * (double)t;
}

INLINE void FN(add_entries)(int K_pad, const int64_t *document, const int64_t *position,
                            const REAL *ratio, const REAL *t, const REAL *b, double *restrict acc)
{
    const REAL *restrict t0 = t + document[0] * K_pad, *restrict t1 = t + document[1] * K_pad;
    const REAL *restrict t2 = t + document[2] * K_pad, *restrict t3 = t + document[3] * K_pad;
    REAL c[ENTRIES];
    for (int e = 0; e < ENTRIES; e++)
        c[e] = b[document[e]] * ratio[position[e]];
    for (int k = 0; k < K_pad; k++) {
        double sum = acc[k];
        sum = FN(add_product)(sum, c[0], t0[k]);
        sum = FN(add_product)(sum, c[1], t1[k]);
        sum = FN(add_product)(sum, c[2], t2[k]);
        sum = FN(add_product)(sum, c[3], t3[k]);
        acc[k] = sum;
    }
}

/* The statistics of one word over the documents that contain it, in their order:
 *     S_vk (+)= sum_d b_d ratio_dv t_dk exp(b_d l_vk). */
static void FN(add_statistics)(
    int64_t n_entries,
    int K_pad,
    const int64_t *document, /* IN  n_entries: the document of each entry */
    const int64_t *position, /* IN  n_entries: the index of its ratio */
    const REAL *ratio,       /* IN */
    const REAL *t,           /* IN  K_pad for each document: of its active topics, or all */
    const int32_t *active,   /* IN  K_pad for each document */
    const int32_t *n_active, /* IN  number of active topics, K_pad if all are active */
    const REAL *b,           /* IN  inverse temperature of each document */
    REAL b0,                 /* IN  the inverse temperature of `weights` */
    const REAL *restrict weights, /* IN  K_pad: the word's row */
    const REAL *restrict logs,    /* IN  K_pad: l, needed if any b differs from b0 */
    int normalise,                /* IN  which clamp to use for exponents */
    int add,                      /* IN  whether s_row holds earlier statistics */
    double *restrict acc,         /* OUT K_pad: scratch */
    REAL *restrict raised,        /* OUT K_pad: scratch */
    REAL *restrict s_row)         /* IN/OUT K_pad */
{
    int at_b0 = 1;
    for (int64_t e = 0; logs && e < n_entries; e++)
        at_b0 &= b[document[e]] == b0;
    if (at_b0) { /* W is the same for all documents */
        for (int k = 0; k < K_pad; k++)
            acc[k] = 0;
        for (int64_t e = 0; e < n_entries;) {
            /* rows of documents are read in an order that the processor does not foresee */
            const int64_t stop = e + AHEAD + ENTRIES < n_entries ? e + AHEAD + ENTRIES : n_entries;
            for (int64_t ahead = e + AHEAD; ahead < stop; ahead++) {
                __builtin_prefetch(t + document[ahead] * K_pad);
                __builtin_prefetch(t + document[ahead] * K_pad + 64 / sizeof(REAL));
            }
            /* entries of documents with all topics; few topics are always all there */
            int together = K_pad <= SPREAD && e + ENTRIES <= n_entries ? ENTRIES : 0;
            while (together < ENTRIES && e + together < n_entries &&
                   n_active[document[e + together]] == K_pad)
                together++;
            if (together == ENTRIES) {
                FN(add_entries)(K_pad, document + e, position + e, ratio, t, b, acc);
                e += ENTRIES;
                continue;
            }
            const REAL *restrict td = t + document[e] * K_pad;
            const REAL c = b[document[e]] * ratio[position[e]];
            const int n = n_active[document[e]];
            if (n == K_pad) {
                for (int k = 0; k < K_pad; k++)
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

/* The exponents of a row of topic weights.  At b = 1 they are split into a scale and the rest;
 * otherwise the scale is 1.  Returns the largest exponent.  `kind` says what is known of lambda.
 * NEAR: it is below FAR everywhere.  MEAN: log lambda replaces psi(lambda).  WIDE_MEAN: the same,
 * and log_sums differ so much that the rest alone would be clamped, so exponents are not split. */
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

/* The row of topic weights below for log E beta, b != 1 and no logarithms: in two passes. */
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

/* One row of topic weights, W_k = exp(b (l_k - reference)), with 0 in the padding.  Here l_k =
 * E log beta_k = psi(lambda_k) - log_sums_k or, for the `mean`, log E beta_k = log lambda_k -
 * log_sums_k, where log_sums are psi or the logarithm of lambda's sums over words.  `mean` is 2 if
 * these differ much, see WIDE_MEAN.  With `normalise` the reference is about the largest l_k of the
 * row, else 0.  Returns the reference.  `logs`, unless NULL, receives the exponents at b = 1,
 * without a clamp.  If `factor` is not 1, lambda is first moved towards eta, as in step_row.
 * `row_sum` receives the row's sum.  `scratch` has 2 K_pad numbers. */
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
    if (mean == 2)
        reference = FN(weight_exponents)(FN(WIDE_MEAN), K, K_pad, lambda, log_sums, b, weights,
                                         exponents);
    else if (mean)
        reference = FN(weight_exponents)(FN(MEAN), K, K_pad, lambda, log_sums, b, weights,
                                         exponents);
    else if (FN(largest_of)(K_pad, lambda) < (REAL)FAR)
        reference = FN(weight_exponents)(FN(NEAR), K, K_pad, lambda, log_sums, b, weights,
                                         exponents);
    else
        reference = FN(weight_exponents)(FN(DISTANT), K, K_pad, lambda, log_sums, b, weights,
                                         exponents);
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

/* lambda after steps towards eta.  Without a step it is lambda itself: where eta is so large that
 * lambda - eta has lost all digits of lambda, eta + (lambda - eta) would be 0. */
static inline REAL FN(moved)(REAL lambda, REAL eta, REAL factor)
{
    return factor == 1 ? lambda : eta + factor * (lambda - eta);
}

/* One row of the natural-gradient step, which moves lambda towards the prior and adds statistics:
 *     lambda = max(eta + factor * (lambda - eta) + amount * S, floor).
 * S or, if `whole`, the new lambda is added to `sums`.  Rounding errors are relative to the new
 * lambda + eta, thus large relative to lambda only far below the prior. */
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
