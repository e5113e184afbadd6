/* Logarithms of Gamma(a, 1) variates, in double precision.
 *
 * x = log Gamma(a) has a density proportional to exp(a x - e^x).  For small a it is drawn by
 * rejection (Liu, Martin and Syring 2017).  The envelope is e^(a x) for x < 0 and
 * e^(-(1 - a) x - 1) for x > 0.  It is tight, because all variates except a fraction of about a
 * are far below 0.  The two parts of the envelope have masses 1 / a and 1 / (e (1 - a)).
 *
 * For any a, Gamma(a) = Gamma(a + 1) U^(1/a) with a uniform U.  Gamma(a + 1) is drawn by the method
 * of Marsaglia and Tsang (2000): with d = a + 2/3, a normal x and v = (1 + x / sqrt(9 d))^3, d v is
 * accepted with probability exp(x^2 / 2 + d (1 - v + log v)), which is at least 1 - .0331 x^4.
 *
 * With every instruction set, uniform numbers come from eight parallel generators xoshiro256++
 * (Blackman and Vigna 2021).
 */

enum { GENERATORS = 8 }; /* a state contains 4 numbers of each */
#define SMALL_SHAPE 0.5    /* for larger a the first method would reject more draws */
#define LEAST_LOG -1.7e308 /* replaces logarithms out of the range of doubles */

typedef uint64_t vec_u64 __attribute__((vector_size(VECTOR_BYTES)));

INLINE vec_u64 load_u64(const uint64_t *p)
{
    vec_u64 x;
    __builtin_memcpy(&x, p, sizeof x);
    return x;
}
INLINE void store_u64(uint64_t *p, vec_u64 x) { __builtin_memcpy(p, &x, sizeof x); }
INLINE vec_u64 rotated(vec_u64 x, int by) { return (x << by) | (x >> (64 - by)); }

/* Uniform numbers in the open interval from 0 to 1, of 52 bits each. */
INLINE vec_f64 uniform(uint64_t *state)
{
    vec_u64 s0 = load_u64(state), s1 = load_u64(state + GENERATORS);
    vec_u64 s2 = load_u64(state + 2 * GENERATORS), s3 = load_u64(state + 3 * GENERATORS);
    const vec_u64 bits = rotated(s0 + s3, 23) + s0, t = s1 << 17;
    s2 ^= s0;
    s3 ^= s1;
    s1 ^= s2;
    s0 ^= s3;
    s2 ^= t;
    s3 = rotated(s3, 45);
    store_u64(state, s0);
    store_u64(state + GENERATORS, s1);
    store_u64(state + 2 * GENERATORS, s2);
    store_u64(state + 3 * GENERATORS, s3);
    /* with an exponent of 0 this is a number from 1 to 2 */
    return (vec_f64)((bits >> 12) | 0x3ff0000000000000ULL) - (1 - 0x1p-53);
}

static void log_gamma_of_small(uint64_t *state, double a, int64_t n, double *out)
{
    const double below = 1 / (1 + a / (2.718281828459045 * (1 - a)));
    double x_lanes[LANES];
    int64_t done = 0;
    while (done < n) {
        for (int g = 0; g < GENERATORS; g += LANES) {
            const vec_f64 u = uniform(state + g), v = uniform(state + g);
            const vec_int_f64 above = u > below;
            const vec_f64 share =
                select_f64(above, (u - below) * (1 / (1 - below)), u * (1 / below));
            const vec_f64 scale = select_f64(above, splat_f64(1 / (a - 1)), splat_f64(1 / a));
            const vec_f64 x = at_least_f64(log_f64(share) * scale, splat_f64(LEAST_LOG));
            vec_int_f64 taken = v < 1;
            if (largest_lane_f64(x) > -38) { /* below, exp(-exp(x)) is 1 */
                const vec_f64 bent = select_f64(x > 0, 1 + x, (vec_f64){0});
                /* smaller numbers would lead to subnormal numbers, which are slow */
                const vec_f64 least = at_least_f64(x, splat_f64(-38));
                taken = v < exp_f64(bent - exp_f64(least));
            }
            if (done + LANES <= n && sum_of_int_lanes_f64(taken) == -LANES) {
                store_f64(out + done, x);
                done += LANES;
                continue;
            }
            store_f64(x_lanes, x);
            for (int i = 0; i < LANES && done < n; i++) {
                out[done] = x_lanes[i];
                done -= taken[i];
            }
        }
    }
}

INLINE vec_f64 square_root(vec_f64 x)
{
#pragma GCC unroll 8
    for (int i = 0; i < LANES; i++)
        x[i] = __builtin_sqrt(x[i]);
    return x;
}

/* Generator g draws variates g, g + GENERATORS, ..., one after the other. */
static void log_gamma_of_any(uint64_t *state, const double *shapes, int64_t stride, int64_t n,
                             double *out)
{
    int64_t at[GENERATORS], left = n;
    double a_lanes[GENERATORS], x_lanes[LANES];
    for (int i = 0; i < GENERATORS; i++) {
        at[i] = i;
        a_lanes[i] = shapes[i < n ? i * stride : 0];
    }
    while (left > 0)
        for (int g = 0; g < GENERATORS; g += LANES) {
            const vec_f64 a = load_f64(a_lanes + g), d = a + 2. / 3;
            /* the first of two normal numbers from a point of the unit disk, never 0 */
            const vec_f64 p = 2 * uniform(state + g) - 1, q = 2 * uniform(state + g) - 1;
            const vec_f64 u = uniform(state + g), boost = uniform(state + g);
            const vec_int_f64 inside = p * p + q * q < 1;
            const vec_f64 r = select_f64(inside, p * p + q * q, splat_f64(0.5));
            const vec_f64 x = p * square_root(-2 * log_f64(r) / r);
            const vec_f64 w = 1 + x / (3 * square_root(d));
            const vec_int_f64 possible = inside & (w > 0);
            const vec_f64 root = select_f64(possible, w, splat_f64(1)), xx = x * x;
            const vec_f64 log_v = 3 * log_f64(root);
            const vec_int_f64 taken =
                possible & ((u < 1 - 0.0331 * xx * xx) |
                            (log_f64(u) < 0.5 * xx + d * (1 - root * root * root + log_v)));
            store_f64(x_lanes, at_least_f64(log_f64(d) + log_v + log_f64(boost) / a,
                                            splat_f64(LEAST_LOG)));
            for (int i = 0; i < LANES; i++) {
                const int64_t own = at[g + i];
                if (own >= n)
                    continue;
                out[own] = x_lanes[i];
                left += taken[i];
                at[g + i] = own - GENERATORS * taken[i];
                a_lanes[g + i] = shapes[at[g + i] < n ? at[g + i] * stride : 0];
            }
        }
}

/* Draw n variates.  The variates and their order depend only on the state. */
static void log_gamma_draws(
    uint64_t *state,      /* IN/OUT (4, GENERATORS) */
    const double *shapes, /* IN  a of each, positive */
    int64_t stride,       /* IN  from one a to the next; 0 if all are the same */
    int64_t n,            /* IN */
    double *out)          /* OUT (n) finite */
{
    if (stride || *shapes >= SMALL_SHAPE)
        log_gamma_of_any(state, shapes, stride, n, out);
    else
        log_gamma_of_small(state, *shapes, n, out);
}
