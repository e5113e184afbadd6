/* The table of kernels that each instruction set provides. */
#ifndef ANNEALVI_KERNELS_H
#define ANNEALVI_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* All kernels for one floating type: KERNEL(what it returns, name, arguments).  setup.py makes
 * Cython's declarations of these lists, kernels.c the tables. */
#define ANNEALVI_KERNELS(KERNEL, REAL)                                                           \
    KERNEL(void, begin_document, (void *, int64_t, int, int, const REAL *const *, const REAL *,  \
        const REAL *, const REAL *, REAL, REAL, REAL, REAL, REAL, REAL, double, int, int,        \
        int64_t, REAL *, REAL *, int32_t *, int32_t *, REAL *, REAL *, REAL *, REAL *, double *, \
        REAL *, const REAL **, int32_t *, REAL *, REAL *))                                       \
    KERNEL(void, fit_documents, (int, void *, void *))                                           \
    KERNEL(void, spread, (int, const int32_t *, const REAL *, int, const REAL *, REAL *))        \
    KERNEL(void, mixture, (int64_t, int, const REAL *const *, const REAL *, REAL *))             \
    KERNEL(double, log_normalizer, (int64_t, int, const REAL *, const REAL *, REAL, REAL, REAL,  \
        REAL *))                                                                                 \
    KERNEL(double, energy, (int64_t, int, int, const REAL *const *, const REAL *const *,         \
        const REAL *, const REAL *, const REAL *, REAL *))                                       \
    KERNEL(void, raise_row, (int, const REAL *, REAL, int, REAL *))                              \
    KERNEL(void, add_statistics, (int64_t, int, const int64_t *, const int64_t *, const REAL *,  \
        const REAL *, const int32_t *, const int32_t *, const REAL *, REAL, const REAL *,        \
        const REAL *, int, int, double *, REAL *, REAL *))                                       \
    KERNEL(double, log_dot, (int, const REAL *, const REAL *, double *))                         \
    KERNEL(REAL, topic_weights, (int, int, int, const REAL *, const REAL *, REAL, const REAL *,  \
        REAL, int, REAL *, REAL *, REAL *, REAL *))                                              \
    KERNEL(void, step_row, (int, REAL, REAL, REAL, int, const REAL *, const REAL *, REAL *,      \
        double *))                                                                               \
    KERNEL(void, bernoulli_sweep, (int, int64_t, const REAL *, const REAL *, const REAL *, REAL, \
        const REAL *, int64_t, int, REAL *))                                                     \
    KERNEL(void, bernoulli_held_sweep, (int, int64_t, const REAL *, const REAL *, const REAL *,  \
        REAL, REAL, const REAL *, const REAL *, const REAL *, REAL *, REAL *))                   \
    KERNEL(void, bernoulli_energy, (int, int64_t, const REAL *, const REAL *, const REAL *,      \
        REAL, const REAL *, double *))                                                           \
    KERNEL(void, bernoulli_entropy, (int, int64_t, const REAL *, double *))                      \
    KERNEL(void, product, (int64_t, int64_t, int64_t, const REAL *, int64_t, int64_t,            \
        const REAL *, int64_t, int64_t, int, REAL *, int64_t))                                   \
    KERNEL(void, exp_array, (int64_t, const REAL *, REAL *))                                     \
    KERNEL(void, log_array, (int64_t, const REAL *, REAL *))                                     \
    KERNEL(void, digamma_array, (int64_t, const REAL *, REAL *))                                 \
    KERNEL(void, exp_digamma_array, (int64_t, REAL, const REAL *, REAL *))                       \
    KERNEL(void, log_gamma_array, (int64_t, const REAL *, REAL *))                               \
    KERNEL(void, dirichlet_row, (int, const REAL *, const double *, const double *, double *))   \
    KERNEL(int, collapse_document, (int64_t, int, const REAL *const *, const REAL *,             \
        const REAL *, double, int, REAL *, REAL *, REAL *, REAL *))

/* Those in double precision alone. */
#define ANNEALVI_DOUBLE_KERNELS(KERNEL)                                                          \
    KERNEL(void, power_sums, (int64_t, int64_t, const double *, double, double, int64_t,         \
        const double *, int64_t, int, double *))                                                 \
    KERNEL(void, log_gamma_draws, (uint64_t *, const double *, int64_t, int64_t, double *))      \
    KERNEL(void, centre_row, (int64_t, double *))                                                \
    KERNEL(void, centre_columns, (int64_t, int64_t, double *))                                   \
    KERNEL(double, exp_row, (int64_t, double *))                                                 \
    KERNEL(void, log_words, (int64_t, const double *, const int32_t *, const int32_t *,          \
        const double *, const double *, int64_t, double *))                                      \
    KERNEL(void, add_log_means, (int64_t, int64_t, int64_t, double *, int64_t, const double *,   \
        const double *, int64_t, double *, double *, double *))                                  \
    KERNEL(void, add_row, (int64_t, double, const double *, double *))

#define ANNEALVI_FIELD(result, name, arguments) result (*name) arguments;
typedef struct {
    ANNEALVI_KERNELS(ANNEALVI_FIELD, float)
} annealvi_table_f32;
typedef struct {
    ANNEALVI_KERNELS(ANNEALVI_FIELD, double)
} annealvi_table_f64;
typedef struct {
    const char *name;
    annealvi_table_f32 f32;
    annealvi_table_f64 f64;
    ANNEALVI_DOUBLE_KERNELS(ANNEALVI_FIELD)
} annealvi_kernels;

/* Number of words that a sweep processes together: buffers are padded to a multiple of it. */
enum { ANNEALVI_WORD_BLOCK = 8 };

/* Bytes of the state of a document's local step. */
enum { ANNEALVI_STATE = 512 };

/* A topic may be dropped from a document's sweeps if its share is small, and its t_k is below this
 * times the share. */
#define ANNEALVI_NEGLIGIBLE 1e-2

/* A document with at most this many topics is swept over by columns. */
enum { ANNEALVI_NARROW = 24 };

/* Number of data that a Bernoulli sweep processes together: rows are padded to a multiple. */
enum { ANNEALVI_DATA_BLOCK = 128 };

extern const annealvi_kernels annealvi_kernels_baseline;
#ifdef ANNEALVI_X86
extern const annealvi_kernels annealvi_kernels_avx2;
extern const annealvi_kernels annealvi_kernels_avx512;
#endif

/* The table of that name, or NULL if there is none or this processor cannot run it. */
const annealvi_kernels *annealvi_find_kernels(const char *name);

#endif
