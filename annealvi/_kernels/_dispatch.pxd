from libc.stdint cimport int32_t, int64_t, uint64_t

cdef extern from "kernels.h" nogil:
    ctypedef struct table_f32 "annealvi_table_f32":
        void (*begin_document)(
            void *, int64_t, int, int, const float **, const float *, const float *,
            const float *, float, float, float, float, float,
            float, double, int, int, int64_t, float *, float *, int32_t *, int32_t *, float *,
            float *, float *, float *,
            double *, float *, const float **, int32_t *, float *, float *
        ) noexcept nogil
        void (*fit_documents)(int, void *, void *) noexcept nogil
        void (*spread)(
            int, const int32_t *, const float *, int, const float *, float *
        ) noexcept nogil
        void (*mixture)(int64_t, int, const float **, const float *, float *) noexcept nogil
        double (*log_normalizer)(
            int64_t, int, const float *, const float *, float, float, float, float *
        ) noexcept nogil
        double (*energy)(
            int64_t, int, int, const float **, const float **, const float *, const float *, const
            float *, float *
        ) noexcept nogil
        void (*raise_row)(int, const float *, float, int, float *) noexcept nogil
        void (*add_statistics)(
            int64_t, int, const int64_t *, const int64_t *, const float *, const float *, const
            int32_t *, const int32_t *, const float *, float, const float *, const float *, int,
            int, double *, float *, float *
        ) noexcept nogil
        double (*log_dot)(int, const float *, const float *, double *) noexcept nogil
        float (*topic_weights)(
            int, int, int, const float *, const float *, float, const float *, float, int, float *,
            float *, float *, float *
        ) noexcept nogil
        void (*step_row)(
            int, float, float, float, int, const float *, const float *, float *, double *
        ) noexcept nogil
        void (*bernoulli_sweep)(
            int, int64_t, const float *, const float *, const float *, float, const float *,
            int64_t, int, float *
        ) noexcept nogil
        void (*bernoulli_held_sweep)(
            int, int64_t, const float *, const float *, const float *, float, float, const float *,
            const float *, const float *, float *, float *
        ) noexcept nogil
        void (*bernoulli_energy)(
            int, int64_t, const float *, const float *, const float *, float, const float *, double
            *
        ) noexcept nogil
        void (*bernoulli_entropy)(int, int64_t, const float *, double *) noexcept nogil
        void (*product)(
            int64_t, int64_t, int64_t, const float *, int64_t, int64_t, const float *, int64_t,
            int64_t, int, float *, int64_t
        ) noexcept nogil
        void (*exp)(int64_t, const float *, float *) noexcept nogil
        void (*log)(int64_t, const float *, float *) noexcept nogil
        void (*digamma)(int64_t, const float *, float *) noexcept nogil
        void (*exp_digamma)(int64_t, float, const float *, float *) noexcept nogil
        void (*lgamma)(int64_t, const float *, float *) noexcept nogil
        void (*dirichlet_row)(
            int, const float *, const double *, const double *, double *
        ) noexcept nogil
        int (*collapse_document)(
            int64_t, int, const float **, const float *, const float *, double, int, float *,
            float *,
            float *, float *
        ) noexcept nogil

    ctypedef struct table_f64 "annealvi_table_f64":
        void (*begin_document)(
            void *, int64_t, int, int, const double **, const double *, const double *,
            const double *, double, double, double, double, double,
            double, double, int, int, int64_t, double *, double *, int32_t *, int32_t *, double *,
            double *, double *, double *,
            double *, double *, const double **, int32_t *, double *, double *
        ) noexcept nogil
        void (*fit_documents)(int, void *, void *) noexcept nogil
        void (*spread)(
            int, const int32_t *, const double *, int, const double *, double *
        ) noexcept nogil
        void (*mixture)(int64_t, int, const double **, const double *, double *) noexcept nogil
        double (*log_normalizer)(
            int64_t, int, const double *, const double *, double, double, double, double *
        ) noexcept nogil
        double (*energy)(
            int64_t, int, int, const double **, const double **, const double *, const double *,
            const double *, double *
        ) noexcept nogil
        void (*raise_row)(int, const double *, double, int, double *) noexcept nogil
        void (*add_statistics)(
            int64_t, int, const int64_t *, const int64_t *, const double *, const double *, const
            int32_t *, const int32_t *, const double *, double, const double *, const double *,
            int, int, double *, double *, double *
        ) noexcept nogil
        double (*log_dot)(int, const double *, const double *, double *) noexcept nogil
        double (*topic_weights)(
            int, int, int, const double *, const double *, double, const double *, double, int,
            double *, double *, double *, double *
        ) noexcept nogil
        void (*step_row)(
            int, double, double, double, int, const double *, const double *, double *, double *
        ) noexcept nogil
        void (*bernoulli_sweep)(
            int, int64_t, const double *, const double *, const double *, double, const double *,
            int64_t, int, double *
        ) noexcept nogil
        void (*bernoulli_held_sweep)(
            int, int64_t, const double *, const double *, const double *, double, double,
            const double *, const double *, const double *, double *, double *
        ) noexcept nogil
        void (*bernoulli_energy)(
            int, int64_t, const double *, const double *, const double *, double, const double *,
            double *
        ) noexcept nogil
        void (*bernoulli_entropy)(int, int64_t, const double *, double *) noexcept nogil
        void (*product)(
            int64_t, int64_t, int64_t, const double *, int64_t, int64_t, const double *, int64_t,
            int64_t, int, double *, int64_t
        ) noexcept nogil
        void (*exp)(int64_t, const double *, double *) noexcept nogil
        void (*log)(int64_t, const double *, double *) noexcept nogil
        void (*digamma)(int64_t, const double *, double *) noexcept nogil
        void (*exp_digamma)(int64_t, double, const double *, double *) noexcept nogil
        void (*lgamma)(int64_t, const double *, double *) noexcept nogil
        void (*dirichlet_row)(
            int, const double *, const double *, const double *, double *
        ) noexcept nogil
        int (*collapse_document)(
            int64_t, int, const double **, const double *, const double *, double, int, double *,
            double *,
            double *, double *
        ) noexcept nogil

    ctypedef struct kernel_table "annealvi_kernels":
        const char *name
        table_f32 f32
        table_f64 f64
        void (*power_sums)(
            int64_t, int64_t, const double *, double, double, int64_t, const double *, int64_t,
            int, double *
        ) noexcept nogil
        void (*log_gamma_draws)(
            uint64_t *, const double *, int64_t, int64_t, double *
        ) noexcept nogil
        void (*centre_row)(int64_t, double *) noexcept nogil
        void (*centre_columns)(int64_t, int64_t, double *) noexcept nogil
        double (*exp_row)(int64_t, double *) noexcept nogil
        void (*log_words)(
            int64_t, const double *, const int32_t *, const int32_t *, const double *,
            const double *, int64_t, double *
        ) noexcept nogil
        void (*add_log_means)(
            int64_t, int64_t, int64_t, double *, int64_t, const double *, const double *, int64_t,
            double *, double *, double *
        ) noexcept nogil
        void (*add_row)(int64_t, double, const double *, double *) noexcept nogil

    const kernel_table *find_kernels "annealvi_find_kernels" (const char *name) noexcept
    int WORD_BLOCK "ANNEALVI_WORD_BLOCK"
    int STATE "ANNEALVI_STATE"
    int NARROW "ANNEALVI_NARROW"
    double NEGLIGIBLE "ANNEALVI_NEGLIGIBLE"
    int DATA_BLOCK "ANNEALVI_DATA_BLOCK"

# The table in use.  Other modules cimport the pointer, so use_instruction_set changes it for
# all of them.
cdef const kernel_table *kernels

cdef enum:
    # With less to do than this, in nanoseconds, one thread does all: waking a second one takes
    # 5 us to some ms, depending on whether a processor is free.
    LEAST_SHARED = 1 << 18
    # About the nanoseconds for each topic of an entry or word: of a local step, of a row of
    # weights, of a row that is moved or summed, of a term of a bound, and of CVB0.
    FITTED = 2
    WEIGHTED = 4
    MOVED = 1
    BOUNDED = 2
    COLLAPSED = 8


cdef inline int shared_among(
    int n_threads, Py_ssize_t n, Py_ssize_t K, Py_ssize_t each
) noexcept nogil:
    """The number of threads for n rows of K numbers."""
    return n_threads if n * K * each >= LEAST_SHARED else 1
