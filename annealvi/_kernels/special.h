/* Vectorised exp, log, digamma and exp(digamma).  This is a template; see vector.h.
 *
 * exp   x = n log 2 + r with |r| <= log(2)/2, and exp(r) = 1 + r + r^2 p(r), where p is
 *       the minimax polynomial (error 1.3e-17 in double, 7.8e-9 in float).  Even and odd
 *       powers are summed separately, which halves the chain of dependent operations.
 *
 * log   x = 2^k m with m in [sqrt(1/2), sqrt(2)), s = (m-1)/(m+1),
 *       log m = 2 atanh(s) = 2s + s^3 p(s^2)  (error 1e-17 and 3.4e-11).
 *
 * psi   For x > 0 the recurrence psi(x) = psi(x + N) - R(x), R(x) = sum_{i<N} 1/(x+i),
 *       moves the argument to y + 1/2 = x + N, where the asymptotic series
 *           exp(psi(y + 1/2)) = y (1 + z/24 - 37 z^2/5760 + ...),   z = 1/y^2,
 *       is short (the exponential of Abramowitz & Stegun 6.3.18).
 *       The coefficients below are the minimax ones on 0 < z <= 1/(N - 1/2)^2:
 *       error 4e-17 with N = 6 in double, 3e-9 with N = 3 in float.  So
 *           exp(psi(x)) = S(x) exp(-R(x))      without a logarithm,
 *           psi(x)      = log S(x) - R(x).
 *       With G(x) = prod_{0<i<N} (x + i),
 *           R = (G + x G') / (x G),
 *       whose relative error is only a few rounding errors even if x is tiny and R huge.
 *       R and z need a single division, 1/(x G y^2).  Beyond FAR the powers of x could
 *       overflow, and R is not needed.
 */

#undef MANTISSA_BITS
#undef EXPONENT_BIAS
#undef ROUND_MAGIC
#undef LN2_HI
#undef LN2_LO
#undef SQRT_HALF_BITS
#undef LOG_TINY
#undef LOG_HUGE
#undef FAR
#undef SHIFT
#undef TINY
#undef EPSILON

#if BITS == 64
#define MANTISSA_BITS 52
#define EXPONENT_BIAS 1023
#define ROUND_MAGIC 0x1.8p52 /* adding it rounds to an integer, which is then in the low bits */
#define LN2_HI 0x1.62e42feep-1 /* trailing zeros: n * LN2_HI is exact without an FMA */
#define LN2_LO 0x1.a39ef35793c76p-33
#define SQRT_HALF_BITS 0x3fe6a09e667f3bcdLL
#define LOG_TINY -0x1.6232bdd7abcd2p9
#define LOG_HUGE 0x1.62e42fefa39efp9
#define FAR 1e8
#define SHIFT 6
#define TINY 0x1p-1022
#define EPSILON 0x1p-52
#else
#define MANTISSA_BITS 23
#define EXPONENT_BIAS 127
#define ROUND_MAGIC 0x1.8p23f
#define LN2_HI 0x1.62ep-1f
#define LN2_LO 0x1.0bfbe8p-15f
#define SQRT_HALF_BITS 0x3f3504f3
#define LOG_TINY -0x1.5d589ep6f
#define LOG_HUGE 0x1.62e42ep6f
#define FAR 1e4f
#define SHIFT 3
#define TINY 0x1p-126f
#define EPSILON 0x1p-23f
#endif

/* exp(x) for LOG_TINY <= x <= LOG_HUGE, the least and the largest x whose exponential is
 * normal and finite.  The kernels clamp their exponents well within these limits. */
INLINE V FN(exp_clamped)(V x)
{
    const V magic = FN(splat)((REAL)ROUND_MAGIC);
    const V rounded = FN(fma)(x, FN(splat)((REAL)1.4426950408889634), magic);
    const V n = rounded - magic;
    const V high = FN(fma)(n, FN(splat)(-(REAL)LN2_HI), x);
    const V r = FN(fma)(n, FN(splat)(-(REAL)LN2_LO), high);
    const V q = r * r;
#if BITS == 64
    const V odd = POLYNOMIAL(q, 2.762008844540974815964e-7, 2.480152129595437513121e-5,
                             1.388888891721371690144e-3, 4.1666666666624127873e-2,
                             0.5000000000000001022112);
    const V even = POLYNOMIAL(q, 2.510038549551031907655e-8, 2.755726845999706477171e-6,
                              1.984126986305361687787e-4, 8.333333333330061832518e-3,
                              0.1666666666666666745273);
#else
    const V odd = POLYNOMIAL(q, 0.00139261835877f, 0.0416665546172f, 0.5f);
    const V even = POLYNOMIAL(q, 0.00836317905272f, 0.166665769897f);
#endif
    const V p = FN(fma)(even, r, odd);
    /* times 2^n: the integer n is in the low bits of `rounded` */
    return (V)((VI)(FN(fma)(q, p, r) + 1) + ((VI)rounded << MANTISSA_BITS));
}

/* exp(x) for any x; results below the normal range are 0. */
INLINE V FN(exp)(V x)
{
    const VI underflow = x < (REAL)LOG_TINY;
    const VI overflow = x > (REAL)LOG_HUGE;
    const V y = FN(exp_clamped)(FN(select)(underflow | overflow, (V){0}, x));
    const V limits = FN(select)(overflow, FN(splat)((REAL)__builtin_inf()), (V){0});
    return FN(select)(x != x, x, FN(select)(underflow | overflow, limits, y));
}

/* log x = *high + the result, for positive normal x; the caller must handle other x.  *high is
 * exact, and the result has a rounding error relative to its own size. */
INLINE V FN(log_parts)(V x, V *high)
{
    const VI bits = (VI)x - (INT)SQRT_HALF_BITS;
    const VI k = bits >> MANTISSA_BITS;
    const V m = (V)((VI)x - (k << MANTISSA_BITS));
    const V n = (V)(k + (VI)FN(splat)((REAL)ROUND_MAGIC)) - (REAL)ROUND_MAGIC;
    const V f = m - 1;
    const V s = f / (f + 2);
    const V z = s * s;
#if BITS == 64
    const V p = POLYNOMIAL(z, 0.1461658542488862197445, 0.1533171061821077156922,
                           0.1818288945567494603847, 0.2222221113025987702904,
                           0.2857142862600326874162, 0.3999999999989944323319,
                           0.6666666666666669688307);
#else
    const V p = POLYNOMIAL(z, 0.233305819382f, 0.285508165997f, 0.40000121877f, 0.666666665545f);
#endif
    /* 2s = f - s f, accurate enough for log 1 = 0 and for small results */
    *high = n * (REAL)LN2_HI;
    return FN(fma)(n, FN(splat)((REAL)LN2_LO), FN(fma)(s, FN(fma)(z, p, -f), f));
}

INLINE V FN(log)(V x)
{
    V high;
    const V low = FN(log_parts)(x, &high);
    return high + low;
}

/* exp(psi(x)) = *scale * exp(-(*one + *rest) * *inverse) for normal x > 0, where
 * *one * *inverse = 1 / x up to x = FAR and *inverse = 0 beyond; see the top of the file.
 * `near`: it is known that x < FAR. */
INLINE void FN(digamma_fraction)(V x, int near, V *scale, V *one, V *rest, V *inverse)
{
    const VI is_near = x < (REAL)FAR;
    const V a = near ? x : FN(select)(is_near, x, FN(splat)(1));
#if SHIFT == 6
    const V g = POLYNOMIAL(a, 1, 15, 85, 225, 274, 120);
    const V slope = POLYNOMIAL(a, 5, 60, 255, 450, 274);
#else
    const V g = POLYNOMIAL(a, 1, 3, 2);
    const V slope = a * 2 + 3; /* the product is exact */
#endif
    const V y_near = a + (REAL)(SHIFT - 0.5);
    const V square = y_near * y_near;
    const V part = g * square;
    const V fraction = 1 / (a * part);
    V y = y_near;
    V z = a * g * fraction;
    *one = part;
    *rest = a * slope * square;
    *inverse = fraction;
    if (!near) {
        const V y_far = x - (REAL)0.5;
        y = FN(select)(is_near, y_near, y_far);
        z = FN(select)(is_near, z, 1 / (y_far * y_far));
        *inverse = FN(select)(is_near, fraction, (V){0});
    }
#if BITS == 64
    const V zz = z * z;
    const V even = POLYNOMIAL(zz, 0.048269770696766624979, 0.0073366375657223828285,
                              0.0035524812040708326841);
    const V odd = POLYNOMIAL(zz, -0.019387804068462155652, -0.0039532406191906198078,
                             -0.0064236111076130731792);
    const V p = FN(fma)(FN(fma)(even, z, odd), z, FN(splat)(0.041666666666665489042));
#else
    const V p = POLYNOMIAL(z, -0.00246196995187f, 0.00342414307231f, -0.00641974015505f,
                           0.0416666475266f);
#endif
    *scale = FN(fma)(y, z * p, y);
}

/* exp(psi(x) - sparsity / x) = *scale * exp(-*shift); the second term is left out beyond FAR. */
INLINE void FN(sparse_digamma_parts)(V x, int near, REAL sparsity, V *scale, V *shift)
{
    V one, rest, inverse;
    FN(digamma_fraction)(x, near, scale, &one, &rest, &inverse);
    *shift = FN(fma)(FN(splat)(1 + sparsity), one, rest) * inverse;
}

/* exp(psi(x)) = *scale * exp(-*shift).  G y^2 is rounded once, and used in the numerator and the
 * denominator.  For tiny x it nearly equals both.  So R has an error below 4 rounding errors. */
INLINE void FN(digamma_parts)(V x, int near, V *scale, V *shift)
{
    FN(sparse_digamma_parts)(x, near, 0, scale, shift);
}

/* psi(x) uses a second division, for accuracy.  1 / x, the largest term of R, is then rounded once,
 * and its sum with all other terms is rounded once. */
INLINE V FN(digamma)(V x)
{
    V scale, one, rest, inverse;
    FN(digamma_fraction)(x, 0, &scale, &one, &rest, &inverse);
    return FN(fma)(-rest, inverse, FN(log)(scale)) -
           FN(select)(x < (REAL)FAR, 1 / x, (V){0});
}
