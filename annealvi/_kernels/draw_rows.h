/* Logarithms of Gamma(a, 1) variates for small a, in double.
 *
 * x = log Gamma(a) has a density proportional to exp(a x - e^x).  It is drawn by rejection
 * (Liu, Martin and Syring 2017).  The envelope is e^(a x) below 0, which is tight because all
 * but a fraction of about a of the variates lie far below 0, and e^(-(1 - a) x - 1) above 0.
 * The two parts have masses 1 / a and 1 / (e (1 - a)).  Uniform numbers come from eight
 * generators xoshiro256++ (Blackman and Vigna 2021) side by side, for every instruction set.
 */

enum { GENERATORS = 8 }; /* a state holds 4 numbers of each */

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
    /* with an exponent of 0 it is a number from 1 to 2 */
    return (vec_f64)((bits >> 12) | 0x3ff0000000000000ULL) - (1 - 0x1p-53);
}

/* Draw n variates; they and their order depend only on the state. */
static void log_gamma_draws(
    uint64_t *state, /* IN/OUT (4, GENERATORS) */
    double a,        /* IN  0 < a < 1 */
    int64_t n,       /* IN */
    double *out)     /* OUT (n) */
{
    const double below = 1 / (1 + a / (2.718281828459045 * (1 - a)));
    double x_lanes[LANES], chance_lanes[LANES], v_lanes[LANES];
    int64_t done = 0;
    while (done < n) {
        for (int g = 0; g < GENERATORS; g += LANES) {
            const vec_f64 u = uniform(state + g), v = uniform(state + g);
            const vec_int_f64 above = u > below;
            const vec_f64 share = select_f64(above, (u - below) / (1 - below), u / below);
            const vec_f64 l = log_f64(share);
            const vec_f64 x = select_f64(above, l / (a - 1), l / a);
            /* exp(-exp(x)) is 1 below -37 */
            const vec_int_f64 doubtful = x > -37.0;
            int any = 0;
            for (int i = 0; i < LANES; i++)
                any |= (int)doubtful[i];
            if (!any && done + LANES <= n) {
                store_f64(out + done, x);
                done += LANES;
                continue;
            }
            const vec_f64 bent = select_f64(x > 0, 1 + x, (vec_f64){0});
            /* smaller numbers would lead to subnormal ones, which are slow */
            const vec_f64 least = max_f64(x, splat_f64(-37));
            store_f64(chance_lanes, exp_f64(bent - exp_f64(least)));
            store_f64(x_lanes, x);
            store_f64(v_lanes, v);
            for (int i = 0; i < LANES && done < n; i++) {
                out[done] = x_lanes[i];
                done += v_lanes[i] < chance_lanes[i];
            }
        }
    }
}
