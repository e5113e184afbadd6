/* log Gamma(x) for x > 0, in double: terms cancel, both within the function and in the bounds
 * computed from it.
 *
 * With y + 1/2 = x, or x + 6 if x < 6,
 *     log Gamma(y + 1/2) = y (log y - 1) + log(2 pi)/2 + w q(w^2),       w = 1/y,
 * from Stirling's series about y + 1/2, which has no term in log y alone.  q interpolates at the
 * Chebyshev points of 0 < w^2 <= 1/5.5^2, with an error of 1.3e-17 in the result.  Below 6 the
 * recurrence gives
 *     log Gamma(x) = log Gamma(x + 6) - log(x G(x)),   G(x) = prod_{0<i<6} (x + i).
 * From 6 on nothing cancels, and the error is a few rounding errors of the result.  Below 6 the
 * terms are of size 30, so the absolute error is below 1e-14, also at the zeros 1 and 2.  For
 * tiny x the relative error is small.
 */

enum { LOG_GAMMA_SHIFT = 6 };

/* log Gamma(x) for normal x > 0. */
INLINE vec_f64 log_gamma(vec_f64 x)
{
    const vec_int_f64 near = x < LOG_GAMMA_SHIFT;
    const vec_f64 a = select_f64(near, x, splat_f64(1));
    const vec_f64 g = POLYNOMIAL(a, 1, 15, 85, 225, 274, 120);
    const vec_f64 y = x + select_f64(near, splat_f64(LOG_GAMMA_SHIFT - 0.5), splat_f64(-0.5));
    vec_f64 high;
    const vec_f64 low = log_parts_f64(y, &high);
    const vec_f64 w = 1 / y;
    const vec_f64 z = w * w;
    const vec_f64 q = POLYNOMIAL(z, -0.0040179508984101177712, 0.0018206241180459700744,
                                 -0.00083806788318784735073, 0.00059056495309699550552,
                                 -0.00076884908273697074062, 0.002430555555302454266,
                                 -0.04166666666666658144);
    const vec_f64 product = select_f64(near, a * g, splat_f64(1));
    /* so that log y - 1 is rounded once, and not log y first and then the difference */
    const vec_f64 rest = fma_f64(w, q, splat_f64(0.91893853320467274178));
    return fma_f64(y, (high - 1) + low, rest) - log_f64(product);
}

INLINE vec_f64 log_gamma_anywhere(vec_f64 x)
{
    /* below the normal range log Gamma(x) = -log x in double */
    const vec_int_f64 small = x < TINY;
    const vec_f64 y = log_gamma(select_f64(small, splat_f64(1), x));
    return at_limits_f64(x, select_f64(small, -log_anywhere_f64(x), y), __builtin_inf(),
                         __builtin_inf());
}

static void log_gamma_array(int64_t n, const double *x, double *out)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        store_f64(out + i, log_gamma_anywhere(load_f64(x + i)));
    if (i < n) {
        double block[LANES] = {0};
        __builtin_memcpy(block, x + i, (size_t)(n - i) * sizeof *x);
        store_f64(block, log_gamma_anywhere(load_f64(block)));
        __builtin_memcpy(out + i, block, (size_t)(n - i) * sizeof *x);
    }
}
