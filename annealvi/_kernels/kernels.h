/* The table of kernels that each instruction set provides, and the arguments of large kernels. */
#ifndef ANNEALVI_KERNELS_H
#define ANNEALVI_KERNELS_H

#include <stddef.h>
#include <stdint.h>

/* The arguments of kernels with many arguments.  `void *` are arrays of the kernel's floating type.
 * Doubles are rounded to this type, except tolerances.  Fields that are not OUT are only read. */

/* Documents: rows of a CSR matrix. */
typedef struct {
    const void *data;
    const void *indices;     /* int64_t if they are wide, else int32_t, and so indptr */
    const void *indptr;
    int wide;
    int64_t start;           /* the row of document 0 */
    int64_t n;
} annealvi_rows;

/* Topic weights: rows of words, from refresh_weights. */
typedef struct {
    int K_pad;
    int normalise;           /* whether each row is relative to its largest E log beta */
    double b0;
    int32_t *place;          /* (V,) the row of each word in what follows, or -1 */
    void *values;            /* (rows, K_pad) exp(b0 (E log beta - log_scale)) */
    void *logs;              /* (rows, K_pad) E log beta - log_scale, or NULL */
    void *log_scale;         /* (rows,) about the row's largest, or 0 */
    void *row_sums;          /* (rows,) the sums of the rows of values */
} annealvi_weights;

typedef struct {
    annealvi_rows rows;
    annealvi_weights weights;
    int K;
    const int64_t *order;    /* (n,) the documents as threads take them */
    const void *b;           /* (n,) inverse temperature of each document */
    const void *alpha;       /* (K_pad,) */
    double eps;              /* added to each norm; 0 to normalise instead */
    double sparsity;         /* see lda_rows.h */
    double relaxation;       /* factor of a step from the second on; 1 for none */
    double tolerance;        /* on sum_k |change of gamma_dk|, relative: see by_topic */
    int by_topic;            /* relative to K, or else to the document's tokens */
    int max_iter;
    double least_share;      /* a topic of a smaller share may be dropped; 0: none is */
    double usual_alpha;      /* topics of a larger alpha are kept */
    double edge;             /* f(usual_alpha + least_share) */
    int want_statistics;     /* whether t, active, n_active and ratio are wanted */
    int n_threads;
    void *gamma;             /* IN/OUT (n, K) */
    void *t;                 /* OUT (n, K_pad) exp(b (f(gamma) - f(reference))), packed */
    int32_t *active;         /* OUT (n, K_pad) the topics in t, if some were dropped */
    int32_t *n_active;       /* OUT (n,) their number, or K_pad if all are in t */
    void *ratio;             /* OUT (entries,) count divided by norm, from the first entry on */
    double *log_normalizer;  /* OUT (n,) sum_v n_v log norm_v, scales included; or NULL */
    double *energy;          /* OUT (n,) sum_v n_v E[log theta + log beta], likewise */
    int64_t longest;         /* words of the longest document */
    int64_t room;            /* numbers for rows of the topics that are left */
    char *scratch;           /* OUT (2 n_threads, scratch_width), see document_bytes */
    int64_t scratch_width;   /* bytes */
    void *raised;            /* OUT (2 n_threads, longest * K_pad), if any b is not b0 */
} annealvi_documents;

/* The entries of fitted documents, in the order of their words. */
typedef struct {
    annealvi_weights weights;
    const int64_t *first;    /* (words + 1,) where the entries of each word start, and the end */
    const int64_t *document; /* (entries,) */
    const int64_t *position; /* (entries,) the index of its ratio */
    const void *ratio;       /* the next four are results of fit_documents */
    const void *t;
    const int32_t *active;
    const int32_t *n_active;
    const void *b;           /* (n,) inverse temperature of each document */
    double *sums;            /* OUT (n_threads, sums_width) scratch */
    int64_t sums_width;
    void *scratch;           /* OUT (n_threads, scratch_width) scratch, of 2 K_pad or more */
    int64_t scratch_width;
} annealvi_block;

/* The statistics of a block, which are added to the statistics of other blocks. */
typedef struct {
    annealvi_block block;
    int64_t n_words;
    const int64_t *words;    /* (n_words,) */
    const int32_t *row_of;   /* (V,) the row of each word in statistics */
    int64_t n_before;        /* rows that hold earlier statistics */
    void *statistics;        /* IN/OUT (rows, K_pad) sum_d b_d n_dv phi_dvk */
    double *word_energy;     /* OUT (V,) sum_dk n_dv phi_dvk E log beta_kv, or NULL */
    int n_threads;
} annealvi_sums;

/* The step lambda_v = max(eta_v + now / decay_v (lambda_v - eta_v) + amount statistics_v, floor) */
typedef struct {
    int64_t n_words;
    const int64_t *words;    /* (n_words,) the rows to update, ascending */
    int K;
    int K_pad;
    void *lam;               /* IN/OUT (V, K_pad) */
    const void *eta;         /* (V, K) */
    int64_t eta_stride;      /* numbers from row to row, perhaps 0 */
    double *decay;           /* IN/OUT (V,) the value of `now` at the row's last update */
    double now;              /* the product of 1 - rho over all steps */
    const int32_t *row_of;   /* (V,) rows of statistics, or numbers of words in the block, or -1 */
    const void *statistics;  /* (rows, K_pad), or NULL: they are summed from the block */
    annealvi_block block;
    double amount;           /* factor of the statistics */
    double floor;
    int whole;               /* whether sums are of lambda, or else of the statistics */
    int n_threads;
    int64_t n_parts;         /* see VOCABULARY_BLOCK */
    double *partial;         /* OUT (n_parts, partial_width) sums over a block of words */
    int64_t partial_width;
} annealvi_step;

/* The computation of topic weights of new words. */
typedef struct {
    int64_t n_words;
    const int64_t *words;    /* (n_words,) */
    int64_t first_row;       /* the row of the first; those of the others follow */
    int K;
    int kind;                /* 0: E log beta; 1, 2: log E beta, see topic_weights */
    const void *lam;         /* these four as in annealvi_step */
    const void *eta;
    int64_t eta_stride;
    const double *decay;
    double now;
    const void *log_sums;    /* (K_pad,) psi or log of lambda's sums over words */
    annealvi_weights weights; /* OUT, but for their place */
    int n_threads;
    void *scratch;           /* OUT (n_threads, scratch_width), of 2 K_pad or more */
    int64_t scratch_width;
} annealvi_refresh;

/* Collapsed inference of documents at fixed topics. */
typedef struct {
    annealvi_rows rows;
    annealvi_weights weights; /* multiples of E beta, 0 in the padding */
    int K;
    const void *alpha;       /* (K_pad,) 0 in the padding */
    double tolerance;        /* on the tokens that change their topic, relative to all */
    int max_iter;
    int n_threads;
    int64_t *pointers;       /* OUT (n_threads, pointers_width) scratch, a pointer for each word */
    int64_t pointers_width;
    void *scratch;           /* OUT (n_threads, scratch_width), (longest document + 3) K_pad */
    int64_t scratch_width;
    void *gamma;             /* OUT (n, K) alpha + the expected number of tokens of each topic */
    int32_t *n_iter;         /* OUT (n,) sweeps made */
} annealvi_collapse;

/* Bernoulli factors of data; see fmm_rows.h.  N is the padded number of data. */
typedef struct {
    int K;
    int64_t stride;          /* N */
    const void *projection;  /* (K, N) */
    const void *coupling;    /* (K, K), diagonal 0 */
    const void *offset;      /* (K,) */
    double scale;
    const void *b;           /* inverse temperatures */
    int64_t b_row;           /* numbers between their rows, perhaps 0 */
    int b_each;              /* whether each datum has one */
    const void *centre;      /* (K,), and (K, N) limits of a held sweep; or NULL */
    const void *lower;
    const void *upper;
    void *inverse;           /* OUT (K, N) the 1/T of each factor of a held sweep */
    void *nu;                /* (K, N), OUT of a sweep */
    double *out;             /* OUT (N,) energies or entropies */
    int n_threads;
} annealvi_bernoulli;

/* Kernels for both floating types: KERNEL(result type, name, arguments).  From these lists setup.py
 * makes Cython's declarations, and kernels.c makes the tables. */
#define ANNEALVI_KERNELS(KERNEL)                                                                 \
    KERNEL(int64_t, document_bytes, (int, int64_t, int64_t))                                     \
    KERNEL(void, fit_documents, (const annealvi_documents *))                                    \
    KERNEL(void, collapse_documents, (const annealvi_collapse *))                                \
    KERNEL(void, refresh_weights, (const annealvi_refresh *))                                    \
    KERNEL(void, add_statistics, (const annealvi_sums *))                                        \
    KERNEL(void, step_words, (const annealvi_step *))                                            \
    KERNEL(void, mixture, (int64_t, int, const void *const *, const void *, void *))             \
    KERNEL(void, bernoulli_sweep, (const annealvi_bernoulli *))                                  \
    KERNEL(void, bernoulli_energy, (const annealvi_bernoulli *))                                 \
    KERNEL(void, bernoulli_entropy, (const annealvi_bernoulli *))                                \
    KERNEL(void, product, (int64_t, int64_t, int64_t, const void *, int64_t, int64_t,            \
        const void *, int64_t, int64_t, int, void *, int64_t))                                   \
    KERNEL(void, exp_array, (int64_t, const void *, void *))                                     \
    KERNEL(void, log_array, (int64_t, const void *, void *))                                     \
    KERNEL(void, digamma_array, (int64_t, const void *, void *))                                 \
    KERNEL(void, exp_digamma_array, (int64_t, double, const void *, void *))

/* Kernels that exist only in double precision. */
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
    KERNEL(void, add_row, (int64_t, double, const double *, double *))                           \
    KERNEL(void, log_gamma_array, (int64_t, const double *, double *))

#define ANNEALVI_FIELD(result, name, arguments) result (*name) arguments;
typedef struct {
    ANNEALVI_KERNELS(ANNEALVI_FIELD)
} annealvi_table;
typedef struct {
    const char *name;
    annealvi_table real[2]; /* of float and of double */
    ANNEALVI_DOUBLE_KERNELS(ANNEALVI_FIELD)
} annealvi_kernels;

/* Number of words that a sweep processes together.  Buffers are padded to a multiple of it. */
enum { ANNEALVI_WORD_BLOCK = 8 };

/* Number of documents that a thread fits alternately. */
enum { ANNEALVI_TOGETHER = 2 };

/* Number of words in a block of step_words.  The topics' sums are added in the order of blocks. */
enum { ANNEALVI_VOCABULARY_BLOCK = 64 };

/* Number of data that a Bernoulli sweep processes together.  Rows are padded to a multiple. */
enum { ANNEALVI_DATA_BLOCK = 128 };

extern const annealvi_kernels annealvi_kernels_baseline;
#ifdef ANNEALVI_X86
extern const annealvi_kernels annealvi_kernels_avx2;
extern const annealvi_kernels annealvi_kernels_avx512;
#endif

/* The table with this name, or NULL if there is none or the processor cannot run it. */
const annealvi_kernels *annealvi_find_kernels(const char *name);

#endif
