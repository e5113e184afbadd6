/* Sums of powers over an even grid of exponents, in double precision.
 *
 * log C(T) is computed from sum_i w_i(b) p_i^b at many b.  The errors of these sums are multiplied
 * by the number of words, so double precision is needed.  On an even grid b_j = b_0 + j h, powers
 * are computed by repeated multiplication, p^(b_0 + (j+1) h) = p^(b_0 + j h) p^h.  Each p needs two
 * exponentials (one if b_0 is a multiple of h), and then one multiplication and one addition for
 * each grid point.  The relative error at point j is about j rounding errors.
 */

enum {
    POWER_GROUP = VECTOR_BYTES == 64 ? 8 : 4, /* vectors whose powers stay in registers */
    MOST_STEPS = 256,                         /* most multiplications, each with a rounding error */
};

/* The whole number k <= MOST_STEPS with b_0 = k h, or 0. */
static int64_t whole_steps(double b0, double h)
{
    const double steps = b0 / h;
    const int64_t k = steps < MOST_STEPS ? (int64_t)(steps + 0.5) : 0;
    return __builtin_fabs(steps - (double)k) < 1e-13 ? k : 0;
}

/* x^k for k > 0. */
INLINE vec_f64 whole_power(vec_f64 x, int64_t k)
{
    vec_f64 out = splat_f64(1);
    for (; k > 1; k >>= 1) {
        if (k & 1)
            out *= x;
        x *= x;
    }
    return out * x;
}

/* Add the powers of `group` vectors to acc, which contains one line for each grid point. */
INLINE void power_group(int group, int64_t stride, const double *logs, double b0, double h,
                        int64_t whole, int64_t n_points, double *acc)
{
    vec_f64 power[POWER_GROUP], ratio[POWER_GROUP], square[POWER_GROUP];
#pragma GCC unroll 8
    for (int u = 0; u < group; u++) {
        const vec_f64 l = load_f64(logs + u * stride);
        ratio[u] = exp_f64(h * l);
        power[u] = whole ? whole_power(ratio[u], whole) : exp_f64(b0 * l);
        square[u] = ratio[u] * ratio[u];
    }
    /* two points together: the products of the second point are fused with its sum */
    int64_t j = 0;
    for (; j + 2 <= n_points; j += 2) {
        vec_f64 first = load_f64(acc + j * LINE), second = load_f64(acc + (j + 1) * LINE);
#pragma GCC unroll 8
        for (int u = 0; u < group; u++) {
            first += power[u];
            second = fma_f64(power[u], ratio[u], second);
            power[u] *= square[u];
        }
        store_f64(acc + j * LINE, first);
        store_f64(acc + (j + 1) * LINE, second);
    }
    if (j < n_points) {
        vec_f64 last = load_f64(acc + j * LINE);
#pragma GCC unroll 8
        for (int u = 0; u < group; u++)
            last += power[u];
        store_f64(acc + j * LINE, last);
    }
}

/* Add powers as above, with a weight for each power, or for each vector of powers if `shared`. */
INLINE void weighted_group(int group, int64_t stride, const double *logs, double b0, double h,
                           int64_t whole, int64_t n_points, const double *weights,
                           int64_t weight_stride, int shared, double *acc)
{
    vec_f64 power[POWER_GROUP], ratio[POWER_GROUP];
#pragma GCC unroll 8
    for (int u = 0; u < group; u++) {
        const vec_f64 l = load_f64(logs + u * stride);
        ratio[u] = exp_f64(h * l);
        power[u] = whole ? whole_power(ratio[u], whole) : exp_f64(b0 * l);
    }
    for (int64_t j = 0; j < n_points; j++) {
        vec_f64 sum = load_f64(acc + j * LINE);
#pragma GCC unroll 8
        for (int u = 0; u < group; u++) {
            const double *own = weights + j * weight_stride;
            const vec_f64 w = shared ? splat_f64(own[u]) : load_f64(own + u * stride);
            sum = fma_f64(power[u], w, sum);
            power[u] *= ratio[u];
        }
        store_f64(acc + j * LINE, sum);
    }
}

/* acc_j += sum_i w_ij exp((b0 + j h) l_i), elementwise, where l_i and w_ij are lines. */
static void power_sums(
    int64_t n_lines,       /* IN */
    int64_t stride,        /* IN  numbers from one line to the next */
    const double *logs,    /* IN  l; -infinity counts as a power of 0 */
    double b0,             /* IN  positive */
    double h,              /* IN  positive */
    int64_t n_points,      /* IN */
    const double *weights, /* IN  n_points rows with the layout of logs, or NULL for ones */
    int64_t weight_stride, /* IN  numbers from one row of weights to the next */
    int shared,            /* IN  whether rows have one weight for each line instead */
    double *acc)           /* IN/OUT n_points lines */
{
    const int64_t whole = whole_steps(b0, h);
#define POWER_GROUPS(group)                                                                      \
    for (; i + (group) <= n_lines; i += (group))                                                 \
        if (weights && shared)                                                                   \
            weighted_group(group, stride, logs + i * stride, b0, h, whole, n_points,             \
                           weights + i, weight_stride, 1, acc);                                  \
        else if (weights)                                                                        \
            weighted_group(group, stride, logs + i * stride, b0, h, whole, n_points,             \
                           weights + i * stride, weight_stride, 0, acc);                         \
        else                                                                                     \
            power_group(group, stride, logs + i * stride, b0, h, whole, n_points, acc);
    for (int p = 0; p < PARTS; p++, logs += LANES, acc += LANES) {
        int64_t i = 0;
        POWER_GROUPS(POWER_GROUP)
        POWER_GROUPS(POWER_GROUP / 2)
        POWER_GROUPS(1)
        if (weights && !shared)
            weights += LANES;
    }
#undef POWER_GROUPS
}
