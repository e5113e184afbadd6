/* Functions of rows that LDA needs both for documents and for words.  This is a template; see
 * vector.h.  lda_sweeps.h, lda_document.h and lda_words.h use this file.
 *
 * A row has K numbers, padded with K_pad - K others to a whole number of
 * 64-byte lines.  In the padding, rows of topic weights are 0, and rows of
 * prior counts repeat their first element.  So padded lanes never contribute
 * and never overflow, and the code below does not treat them separately.
 *
 * The updates of a document at inverse temperature b, with W_vk ~ exp(b E log beta_kv), are
 *     t_k     = exp(b (psi(gamma_k) - sparsity / gamma_k - reference))
 *     norm_v  = sum_k t_k W_vk
 *     gamma_k = alpha_k + b t_k sum_v (n_v / norm_v) W_vk
 * These are the updates with phi_vk = t_k W_vk / norm_v, written without phi (Hoffman et al. 2013;
 * Mandt et al. 2016 for the tempered likelihood).  In the mean field the sparsity is 0.
 */

/* Exponents are clamped from below, so that no norm is 0 and no ratio overflows.  If exponents
 * are relative to a maximum, e^-40 = 4e-18 is smaller than any share of a word that matters in
 * float.  With scikit-learn's arithmetic the result must only be close to 0. */
#undef CLAMP
#undef CLAMP_PLAIN
#define CLAMP ((REAL)(BITS == 64 ? -300 : -40))
#define CLAMP_PLAIN ((REAL)(BITS == 64 ? -600 : -60))
/* The value in the padding of rows of logarithms.  It is smaller than the logarithms of all topics
 * that matter.  (In float E log beta can be -1e38, but then the topic has no weight at any b.) */
#undef PADDED_LOG
#define PADDED_LOG (-1e30)

/* exp(f(reference)) = scale * exp(-shift) with f(x) = psi(x) - sparsity / x, or 1 if reference = 0.
 * If b != 1, the scale is 1 and the shift is -f(reference). */
INLINE void FN(reference_parts)(REAL reference, REAL sparsity, REAL b, V *scale, V *shift)
{
    *scale = FN(splat)(1);
    *shift = (V){0};
    if (reference > 0)
        FN(sparse_digamma_parts)(FN(splat)(reference), 0, sparsity, scale, shift);
    if (b != 1) {
        *shift -= FN(log)(*scale);
        *scale = FN(splat)(1);
    }
}

/* out_k = exp(max(b (f(x_k) - f(reference)), clamp)) with f(x) = psi(x) - sparsity / x.  The
 * reference is passed in parts.  For b = 1 the clamp applies only to a part of the exponent.
 * `near` means that all x < FAR. */
INLINE void FN(exp_digamma_row_at)(int near, int K_pad, const REAL *x, V ref_scale, V ref_shift,
                                   REAL b, REAL sparsity, REAL clamp, REAL *out)
{
    const V floor = FN(splat)(clamp);
    if (b == 1) {
        const V unit = 1 / ref_scale;
        for (int k = 0; k < K_pad; k += LANES) {
            V scale, shift;
            FN(sparse_digamma_parts)(FN(load)(x + k), near, sparsity, &scale, &shift);
            const V factor = FN(exp_clamped)(FN(max)(ref_shift - shift, floor));
            FN(store)(out + k, scale * unit * factor);
        }
    } else {
        for (int k = 0; k < K_pad; k += LANES) {
            V scale, shift;
            FN(sparse_digamma_parts)(FN(load)(x + k), near, sparsity, &scale, &shift);
            const V exponent = b * (FN(log)(scale) + (ref_shift - shift));
            FN(store)(out + k, FN(exp_clamped)(FN(max)(exponent, floor)));
        }
    }
}

INLINE void FN(exp_digamma_row)(int K_pad, const REAL *x, REAL largest, V ref_scale, V ref_shift,
                                REAL b, REAL sparsity, REAL clamp, REAL *out)
{
    if (largest < (REAL)FAR)
        FN(exp_digamma_row_at)(1, K_pad, x, ref_scale, ref_shift, b, sparsity, clamp, out);
    else
        FN(exp_digamma_row_at)(0, K_pad, x, ref_scale, ref_shift, b, sparsity, clamp, out);
}

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

/* The largest number of a row or of its padding.  This does no harm, because the padding contains
 * a prior. */
INLINE REAL FN(largest_of)(int K_pad, const REAL *x)
{
    V top = FN(load)(x);
    for (int k = LANES; k < K_pad; k += LANES)
        top = FN(max)(top, FN(load)(x + k));
    return FN(largest_lane)(top);
}

/* The sum of the lines of a row, without the padding. */
INLINE REAL FN(add_lanes)(int K, int K_pad, const REAL *x, const V *sum)
{
    double total = (double)FN(sum_of_line)(sum);
    for (int k = K; k < K_pad; k++)
        total -= (double)x[k];
    return (REAL)total;
}

INLINE REAL FN(total_of)(int K, int K_pad, const REAL *x)
{
    V sum[PARTS] = {{0}};
    OVER_ROW(k, p, K_pad)
        sum[p] += FN(load)(x + k);
    return FN(add_lanes)(K, K_pad, x, sum);
}
