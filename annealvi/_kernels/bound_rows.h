/* Terms of the divergence between Dirichlet distributions, in double precision for both types.
 *
 *     -KL(Dir(x) || Dir(a)) = sum_k [(a_k - x_k) (psi(x_k) - psi(s)) + log Gamma(x_k)]
 *                             - log Gamma(s) + log Gamma(sum_k a_k) - sum_k log Gamma(a_k),
 *
 * with s = sum_k x_k.  All numbers of a row may belong to one Dirichlet distribution, or each
 * number to a different one.  In the second case the sums are over rows.  Therefore the terms
 * are added to acc element by element.
 */

/* acc_k += (a_k - x_k) (psi(x_k) - psi_sums_k) + log Gamma(x_k), for normal x_k > 0. */
#define DIRICHLET_ROW(suffix, type)                                                              \
    static void dirichlet_row_##suffix(int n,                  /* IN */                          \
                                       const void *row,        /* IN */                          \
                                       const double *a,        /* IN */                          \
                                       const double *psi_sums, /* IN */                          \
                                       double *acc)            /* IN/OUT */                      \
    {                                                                                            \
        const type *x = row;                                                                     \
        int k = 0;                                                                               \
        for (; k + LANES <= n; k += LANES)                                                       \
            store_f64(acc + k,                                                                   \
                      load_f64(acc + k) + dirichlet_terms(load_wide_##suffix(x + k),             \
                                                          load_f64(a + k),                       \
                                                          load_f64(psi_sums + k)));              \
        if (k < n) {                                                                             \
            vec_f64 own = splat_f64(1), prior = own, psi = own;                                  \
            for (int l = 0; l < n - k; l++) {                                                    \
                own[l] = x[k + l];                                                               \
                prior[l] = a[k + l];                                                             \
                psi[l] = psi_sums[k + l];                                                        \
            }                                                                                    \
            own = dirichlet_terms(own, prior, psi);                                              \
            for (int l = 0; l < n - k; l++)                                                      \
                acc[k + l] += own[l];                                                            \
        }                                                                                        \
    }

INLINE vec_f64 dirichlet_terms(vec_f64 x, vec_f64 a, vec_f64 psi_sums)
{
    vec_f64 psi;
    const vec_f64 log_gamma = log_gamma_and_psi(x, &psi);
    return fma_f64(a - x, psi - psi_sums, log_gamma);
}

DIRICHLET_ROW(f32, float)
DIRICHLET_ROW(f64, double)
#undef DIRICHLET_ROW
