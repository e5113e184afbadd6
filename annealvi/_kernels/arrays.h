/* The special functions of whole arrays.  At points that never occur in the
 * kernels (0, infinity, NaN, subnormals) they return the same as SciPy.  This is
 * a template; see vector.h. */

/* Replace `y` at points x for which the series are not valid. */
INLINE V FN(at_limits)(V x, V y, REAL at_zero, REAL at_infinity)
{
    const V infinity = FN(splat)((REAL)__builtin_inf());
    y = FN(select)(x == 0, FN(splat)(at_zero), y);
    y = FN(select)(x == infinity, FN(splat)(at_infinity), y);
    y = FN(select)(x < 0, FN(splat)((REAL)__builtin_nan("")), y);
    return FN(select)(x != x, x, y);
}

INLINE V FN(log_anywhere)(V x)
{
    const REAL infinity = (REAL)__builtin_inf();
    /* scale subnormals into the normal range, by a power of 2 */
    const VI small = x < (REAL)TINY;
    const V scaled = FN(select)(small, x * (REAL)(BITS == 64 ? 0x1p54 : 0x1p25), x);
    const V y = FN(log)(scaled) - FN(select)(small, FN(splat)((REAL)((BITS == 64 ? 54 : 25) *
                                                                     0.6931471805599453)), (V){0});
    return FN(at_limits)(x, y, -infinity, infinity);
}

INLINE V FN(digamma_anywhere)(V x)
{
    const REAL infinity = (REAL)__builtin_inf();
    const VI small = x < (REAL)TINY;
    const V y = FN(digamma)(FN(select)(small, FN(splat)(1), x));
    return FN(at_limits)(x, FN(select)(small, -1 / x, y), -infinity, infinity);
}

/* exp(b psi(x)).  As in exp_digamma_row, it is computed from its parts for b = 1, and otherwise
 * through the logarithm, but without a clamp. */
INLINE V FN(exp_digamma_anywhere)(V x, REAL b)
{
    V scale, shift;
    const VI small = x < (REAL)TINY;
    const V a = FN(select)(small, FN(splat)((REAL)TINY), x);
    FN(digamma_parts)(a, 0, &scale, &shift);
    /* multiply by e^8 and by e^-8, because exp(-shift) may underflow although its product with
     * scale does not */
    V y = b == 1 ? scale * (REAL)3.3546262790251185e-4 * FN(exp)(8 - shift)
                 : FN(exp)(b * FN(digamma)(a));
    y = FN(select)(y < (REAL)TINY, (V){0}, y);
    return FN(at_limits)(x, y, 0, (REAL)__builtin_inf());
}

#undef OVER_ARRAY
#define OVER_ARRAY(name, args, call)                                                             \
    static void FN(name) args                                                                    \
    {                                                                                            \
        const REAL *x = from;                                                                    \
        REAL *out = to;                                                                          \
        int64_t i = 0;                                                                           \
        for (; i + LANES <= n; i += LANES) {                                                     \
            const V block = FN(load)(x + i);                                                     \
            FN(store)(out + i, call);                                                            \
        }                                                                                        \
        for (; i < n; i += LANES) {                                                              \
            V block = FN(splat)(1);                                                              \
            const int filled = n - i < LANES ? (int)(n - i) : LANES;                             \
            for (int l = 0; l < filled; l++)                                                     \
                block[l] = x[i + l];                                                             \
            block = call;                                                                        \
            for (int l = 0; l < filled; l++)                                                     \
                out[i + l] = block[l];                                                           \
        }                                                                                        \
    }
OVER_ARRAY(exp_array, (int64_t n, const void *from, void *to), FN(exp)(block))
OVER_ARRAY(log_array, (int64_t n, const void *from, void *to), FN(log_anywhere)(block))
OVER_ARRAY(digamma_array, (int64_t n, const void *from, void *to), FN(digamma_anywhere)(block))
OVER_ARRAY(exp_digamma_array, (int64_t n, double b, const void *from, void *to),
           FN(exp_digamma_anywhere)(block, (REAL)b))
