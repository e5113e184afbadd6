/* All kernels for both floating types.  setup.py compiles this file once for
 * each instruction set, with KERNELS_NAME set to baseline, avx2 or avx512. */
#include "kernels.h"

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)

#define REAL float
#define INT int32_t
#define BITS 32
#define FN(name) PASTE(name, f32)
#include "vector.h"
#include "special.h"
#include "lda_rows.h"
#include "lda_sweeps.h"
#include "lda_document.h"
#include "lda_words.h"
#include "lda_collapsed.h"
#include "fmm_rows.h"
#include "product.h"
#include "arrays.h"
#undef REAL
#undef INT
#undef BITS
#undef FN

#define REAL double
#define INT int64_t
#define BITS 64
#define FN(name) PASTE(name, f64)
#include "vector.h"
#include "special.h"
#include "lda_rows.h"
#include "lda_sweeps.h"
#include "lda_document.h"
#include "lda_words.h"
#include "lda_collapsed.h"
#include "fmm_rows.h"
#include "product.h"
#include "arrays.h"
#include "power_rows.h"
#include "draw_rows.h"
#include "estimate_rows.h"
#include "log_gamma.h"
#include "bound_rows.h"

/* out += factor * row. */
static void add_row(int64_t n, double factor, const double *row, double *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] += factor * row[i];
}

#define QUOTE_(a) #a
#define QUOTE(a) QUOTE_(a)
#define TABLE(suffix)                                                                            \
    {                                                                                            \
        begin_document_##suffix, fit_documents_##suffix, spread_##suffix, mixture_##suffix,      \
            log_normalizer_##suffix, energy_##suffix, raise_row_##suffix,                        \
            add_statistics_##suffix, log_dot_##suffix, topic_weights_##suffix,                   \
            step_row_##suffix,                                                                   \
            bernoulli_sweep_##suffix, bernoulli_held_sweep_##suffix, bernoulli_energy_##suffix,  \
            bernoulli_entropy_##suffix, product_##suffix,                                        \
            exp_array_##suffix, log_array_##suffix, digamma_array_##suffix,                      \
            exp_digamma_array_##suffix, log_gamma_array_##suffix, dirichlet_row_##suffix,        \
            collapse_document_##suffix                                                           \
    }

const annealvi_kernels PASTE(annealvi_kernels, KERNELS_NAME) = {
    QUOTE(KERNELS_NAME), TABLE(f32), TABLE(f64), power_sums, log_gamma_draws,
    centre_row, centre_columns, exp_row, log_words, add_log_means, add_row,
};
