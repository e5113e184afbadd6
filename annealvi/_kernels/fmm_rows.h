/* Coordinate updates of Bernoulli factors.  This is a template; see vector.h.
 *
 * A datum n has K factors q(z_nk) = Bern(nu_nk) and an energy that is quadratic in z,
 *     E_n(z) = sum_k z_k linear_nk - sum_{k<j} z_k z_j coupling_kj.
 * With all other factors fixed, the optimum of factor k is
 *     logit nu_nk = b (linear_nk - sum_{j != k} nu_nj coupling_kj).
 * Factors are updated one after the other, each with the new values of earlier factors
 * (Gauss-Seidel).  Data are independent of each other: a vector contains the same factor of LANES
 * data, and matrices have K rows with one number for each datum.  UNROLL vectors are processed
 * together, which hides the latency of the sigmoid.  `linear` is not stored but computed:
 *     linear_nk = offset_k + scale * projection_nk.
 */

#undef UNROLL
#undef SIGMOID_LIMIT
#define SIGMOID_LIMIT (BITS == 64 ? 708.0 : 87.0)
#define UNROLL (ANNEALVI_DATA_BLOCK / LANES < 8 ? ANNEALVI_DATA_BLOCK / LANES : 8)

/* A logit that is kept near its centre c.  Both the argument a and the result are negated.
 *
 * If a is within [lower, upper], which contains c, the logit is a.  Otherwise the logit is the
 * limit or
 *     t = c + b (a - c),
 * the one that is farther from c.  So its inverse temperature (logit - c) / (a - c) is 1 within the
 * limits and b far outside.  Between these, it is the inverse temperature that leads to the limit.
 * This is the effect of a penalty of k times the amount by which the KL from c exceeds its running
 * average.  Then b = 1/(1 + k), and at the limits the KL equals the average
 * (docs/record/proximity.md).
 */
INLINE V FN(held_logit)(V minus, REAL b, REAL centre, V lower, V upper, REAL *inverse)
{
    const V a = -minus;
    const V far = a - centre;
    const V t = FN(fma)(FN(splat)(b), far, FN(splat)(centre));
    const V logit = FN(min)(FN(max)(a, FN(min)(lower, t)), FN(max)(upper, t));
    FN(store)(inverse, FN(select)(far == 0, FN(splat)(1), (logit - centre) / far));
    return -logit;
}

/* One Gauss-Seidel sweep over a block of DATA_BLOCK data that starts at datum `start`.  `held` is
 * known at compile time. */
INLINE void FN(sweep_block)(const annealvi_bernoulli *all, int64_t start, const int held)
{
    const int K = all->K, b_each = all->b_each;
    const int64_t stride = all->stride, b_row = all->b_row;
    const REAL *projection = (const REAL *)all->projection + start, *coupling = all->coupling;
    const REAL *offset = all->offset, *b = (const REAL *)all->b + (b_each ? start : 0);
    const REAL *centre = all->centre, *lower = all->lower, *upper = all->upper;
    const REAL scale = (REAL)all->scale;
    REAL *nu = (REAL *)all->nu + start, *inverse = all->inverse;
    if (held) {
        lower += start;
        upper += start;
        inverse += start;
    }
    for (int first = 0; first < ANNEALVI_DATA_BLOCK; first += UNROLL * LANES) {
        REAL *own = nu + first;
        const int64_t next = first + ANNEALVI_DATA_BLOCK; /* the same place in the next block */
        for (int k = 0; k < K; k++) {
            const REAL *row = coupling + (int64_t)k * K;
            V field[UNROLL];
#pragma GCC unroll 8
            for (int u = 0; u < UNROLL; u++) {
                field[u] = (V){0};
                /* rows are read in blocks that are too short for the hardware to prefetch */
                __builtin_prefetch(projection + k * stride + next + u * LANES);
                __builtin_prefetch(nu + k * stride + next + u * LANES, 1);
            }
            /* factors that were just updated come last, so that most of the sum does not wait
             * for them */
            for (int j = k + 1; j < K; j++)
#pragma GCC unroll 8
                for (int u = 0; u < UNROLL; u++)
                    field[u] = FN(fma)(FN(splat)(row[j]),
                                       FN(load)(own + j * stride + u * LANES), field[u]);
            for (int j = 0; j < k; j++)
#pragma GCC unroll 8
                for (int u = 0; u < UNROLL; u++)
                    field[u] = FN(fma)(FN(splat)(row[j]),
                                       FN(load)(own + j * stride + u * LANES), field[u]);
#pragma GCC unroll 8
            for (int u = 0; u < UNROLL; u++) {
                const int64_t at = k * stride + first + u * LANES;
                const V linear =
                    FN(fma)(FN(splat)(scale), FN(load)(projection + at), FN(splat)(offset[k]));
                V minus; /* the logit, negated */
                if (held) {
                    minus = FN(held_logit)(field[u] - linear, b[0], centre[k],
                                           FN(load)(lower + at), FN(load)(upper + at),
                                           inverse + at);
                } else {
                    const V heat = b_each ? FN(load)(b + k * b_row + first + u * LANES)
                                          : FN(splat)(b[k * b_row]);
                    minus = heat * (field[u] - linear);
                }
                /* 1/(1 + exp(-logit)) is accurate in both tails; the clamp avoids subnormals */
                const V x = FN(min)(FN(splat)((REAL)SIGMOID_LIMIT),
                                    FN(max)(FN(splat)((REAL)-SIGMOID_LIMIT), minus));
                FN(store)(nu + at, 1 / (1 + FN(exp_clamped)(x)));
            }
        }
    }
}

/* A sweep over all data, which uses limits if there are any; see kernels.h. */
static void FN(bernoulli_sweep)(const annealvi_bernoulli *all)
{
    SHARE_OUT(all->n_threads, static, 1)
    for (int64_t start = 0; start < all->stride; start += ANNEALVI_DATA_BLOCK)
        if (all->lower)
            FN(sweep_block)(all, start, 1);
        else
            FN(sweep_block)(all, start, 0);
}

/* E_q[E_n(z)] of each datum. */
static void FN(bernoulli_energy)(const annealvi_bernoulli *all)
{
    const int K = all->K;
    const int64_t stride = all->stride;
    const REAL *projection = all->projection, *coupling = all->coupling, *offset = all->offset;
    const REAL scale = (REAL)all->scale;
    SHARE_OUT(all->n_threads, static, ANNEALVI_DATA_BLOCK)
    for (int64_t first = 0; first < stride; first += LANES) {
        const REAL *own = (const REAL *)all->nu + first;
        double total[LANES] = {0};
        for (int k = 0; k < K; k++) {
            const REAL *row = coupling + (int64_t)k * K;
            V field = (V){0};
            for (int j = 0; j < k; j++) /* every pair is counted once */
                field = FN(fma)(FN(splat)(row[j]), FN(load)(own + j * stride), field);
            const V linear =
                FN(fma)(FN(splat)(scale), FN(load)(projection + k * stride + first),
                        FN(splat)(offset[k]));
            const V e = FN(load)(own + k * stride) * (linear - field);
            for (int l = 0; l < LANES; l++)
                total[l] += e[l];
        }
        memcpy(all->out + first, total, sizeof(total));
    }
}

/* The entropy of the factors of each datum. */
static void FN(bernoulli_entropy)(const annealvi_bernoulli *all)
{
    const V tiny = FN(splat)((REAL)TINY); /* so that 0 log 0 is 0 */
    SHARE_OUT(all->n_threads, static, ANNEALVI_DATA_BLOCK)
    for (int64_t first = 0; first < all->stride; first += LANES) {
        double total[LANES] = {0};
        for (int k = 0; k < all->K; k++) {
            const V p = FN(load)((const REAL *)all->nu + first + k * all->stride);
            const V left = 1 - p;
            const V h = FN(fma)(p, FN(log)(FN(max)(p, tiny)),
                                left * FN(log)(FN(max)(left, tiny)));
            for (int l = 0; l < LANES; l++)
                total[l] -= h[l];
        }
        memcpy(all->out + first, total, sizeof(total));
    }
}
