/* Sums of powers over an even grid of exponents, in double.
 *
 * log C(T) is made of sum_i w_i(b) p_i^b at many b, and errors in it are multiplied by the
 * number of words, so all of this is in double.  On an even grid b_j = b_0 + j h the powers
 * follow by repeated multiplication, p^(b_0 + (j+1) h) = p^(b_0 + j h) p^h: a number costs
 * two exponentials and then one multiplication and one addition a grid point, at a
 * relative error of about j roundings.
 */

enum { POWER_GROUP = VECTOR_BYTES == 64 ? 8 : 4 }; /* vectors whose powers stay in registers */

/* Add the powers of `group` vectors to acc, one vector a grid point. */
INLINE void power_group(int group, int64_t stride, const double *logs, double b0, double h,
                        int64_t n_points, const double *weights, int64_t weight_stride,
                        double *acc)
{
    vec_f64 power[POWER_GROUP], ratio[POWER_GROUP];
#pragma GCC unroll 8
    for (int u = 0; u < group; u++) {
        const vec_f64 l = load_f64(logs + u * stride);
        power[u] = exp_f64(b0 * l);
        ratio[u] = exp_f64(h * l);
    }
    for (int64_t j = 0; j < n_points; j++) {
        vec_f64 even = load_f64(acc + j * LANES), odd = {0};
#pragma GCC unroll 8
        for (int u = 0; u < group; u++) {
            const vec_f64 term =
                weights ? power[u] * load_f64(weights + j * weight_stride + u * stride) : power[u];
            if (u & 1)
                odd += term;
            else
                even += term;
            power[u] *= ratio[u];
        }
        store_f64(acc + j * LANES, even + odd);
    }
}

/* acc_j += sum_i w_ij exp((b0 + j h) l_i), lane by lane, l_i and w_ij being vectors. */
static void power_sums(
    int64_t n_vectors,     /* IN */
    int64_t stride,        /* IN  numbers from one vector to the next */
    const double *logs,    /* IN  l; -infinity counts as a power of 0 */
    double b0,             /* IN  positive */
    double h,              /* IN  positive */
    int64_t n_points,      /* IN */
    const double *weights, /* IN  n_points rows that lie as the logs do, or NULL for ones */
    int64_t weight_stride, /* IN  numbers from one row of weights to the next */
    double *acc)           /* IN/OUT n_points vectors */
{
    int64_t i = 0;
#define POWER_GROUPS(group)                                                                      \
    for (; i + (group) <= n_vectors; i += (group))                                               \
        if (weights)                                                                             \
            power_group(group, stride, logs + i * stride, b0, h, n_points, weights + i * stride, \
                        weight_stride, acc);                                                     \
        else                                                                                     \
            power_group(group, stride, logs + i * stride, b0, h, n_points, NULL, 0, acc);
    POWER_GROUPS(POWER_GROUP)
    POWER_GROUPS(POWER_GROUP / 2)
    POWER_GROUPS(1)
#undef POWER_GROUPS
}
