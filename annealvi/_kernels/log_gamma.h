/* log Gamma(x) for x > 0, in double precision for both floating types.  Double precision is needed
 * because terms cancel, both in the function and in the bounds that use it.  Speed matters less,
 * because no inner loop uses the function.
 *
 * With y + 1/2 = x, or x + 6 if x < 6,
 *     log Gamma(y + 1/2) = y (log y - 1) + log(2 pi)/2 + w q(w^2),       w = 1/y,
 *     psi(y + 1/2)       = log y + w^2 p(w^2),
 * where the first line is Stirling's series about y + 1/2, which has no term in log y alone.  q and
 * p interpolate at the Chebyshev points of 0 < w^2 <= 1/5.5^2, and cause errors of 1.3e-17 and
 * 3.3e-17 in the results.  For x < 6 the recurrences are
 *     log Gamma(x) = log Gamma(x + 6) - log(x G(x)),   G(x) = prod_{0<i<6} (x + i),
 *     psi(x)       = psi(x + 6) - (1 / x + G'(x) / G(x)).
 * For x >= 6 nothing cancels, and the error is a few rounding errors of the result.  For x < 6 the
 * terms have about the size 30, so the absolute error is below 1e-14, even at the zeros 1 and 2.
 * For tiny x the relative error is small.
 */

enum { LOG_GAMMA_SHIFT = 6 };

/* log Gamma(x) for normal x > 0; psi(x) is written to *psi unless that is NULL. */
INLINE vec_f64 log_gamma_and_psi(vec_f64 x, vec_f64 *psi)
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
    if (psi) {
        const vec_f64 slope = POLYNOMIAL(a, 5, 60, 255, 450, 274);
        const vec_f64 p = POLYNOMIAL(z, 0.048903082616307285825, -0.01972305921155808175,
                                     0.007532296375300073746, -0.0041337947256181143526,
                                     0.0038442443049313777148, -0.0072916666631349610901,
                                     0.041666666666665477703);
        const vec_f64 ratio = select_f64(near, slope / g, (vec_f64){0});
        const vec_f64 first = select_f64(near, 1 / x, (vec_f64){0});
        *psi = ((high + low) + fma_f64(z, p, -ratio)) - first;
    }
    const vec_f64 product = select_f64(near, a * g, splat_f64(1));
    /* so that log y - 1 is rounded once instead of twice */
    const vec_f64 rest = fma_f64(w, q, splat_f64(0.91893853320467274178));
    return fma_f64(y, (high - 1) + low, rest) - log_f64(product);
}

INLINE vec_f64 log_gamma_anywhere(vec_f64 x)
{
    /* below the normal range log Gamma(x) = -log x in double */
    const vec_int_f64 small = x < TINY;
    const vec_f64 y = log_gamma_and_psi(select_f64(small, splat_f64(1), x), NULL);
    return at_limits_f64(x, select_f64(small, -log_anywhere_f64(x), y), __builtin_inf(),
                         __builtin_inf());
}

/* Convert floats to a vector of doubles, and back. */
typedef float vec_narrow __attribute__((vector_size(VECTOR_BYTES / 2)));

INLINE vec_f64 load_wide_f64(const double *p) { return load_f64(p); }

INLINE vec_f64 load_wide_f32(const float *p)
{
    vec_narrow x;
    __builtin_memcpy(&x, p, sizeof x);
    return __builtin_convertvector(x, vec_f64);
}

INLINE void store_narrow_f64(double *p, vec_f64 x) { store_f64(p, x); }

INLINE void store_narrow_f32(float *p, vec_f64 x)
{
    const vec_narrow y = __builtin_convertvector(x, vec_narrow);
    __builtin_memcpy(p, &y, sizeof y);
}

#define LOG_GAMMA_ARRAY(suffix, type)                                                            \
    static void log_gamma_array_##suffix(int64_t n, const void *from, void *to)                  \
    {                                                                                            \
        const type *x = from;                                                                    \
        type *out = to;                                                                          \
        int64_t i = 0;                                                                           \
        for (; i + LANES <= n; i += LANES)                                                       \
            store_narrow_##suffix(out + i, log_gamma_anywhere(load_wide_##suffix(x + i)));       \
        if (i < n) {                                                                             \
            type block[LANES] = {0};                                                             \
            __builtin_memcpy(block, x + i, (size_t)(n - i) * sizeof *x);                         \
            store_narrow_##suffix(block, log_gamma_anywhere(load_wide_##suffix(block)));         \
            __builtin_memcpy(out + i, block, (size_t)(n - i) * sizeof *x);                       \
        }                                                                                        \
    }
LOG_GAMMA_ARRAY(f32, float)
LOG_GAMMA_ARRAY(f64, double)
#undef LOG_GAMMA_ARRAY
