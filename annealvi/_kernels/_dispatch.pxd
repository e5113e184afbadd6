from libc.stdint cimport int64_t

cdef extern from "kernels.h" nogil:
    ctypedef struct table_f32 "annealvi_table_f32":
        int fit_document(int64_t, int, int, const float **, const float *, const float *,
                         float, float, double, int, int, float *, float *, float *, float *,
                         float *, float *) noexcept
        double log_normalizer(int64_t, int, const float *, const float *, float, float,
                              float *) noexcept
        double energy(int64_t, int, int, const float **, const float *, const float *,
                      const float *, float, float *) noexcept
        void raise_row(int, const float *, float, float *) noexcept
        void add_statistics(int64_t, int, const int64_t *, const int64_t *, const float *,
                            const float *, const float *, float, const float *, int, double *,
                            float *, float *) noexcept
        float exp_digamma_weights(int, int, const float *, const float *, float, int,
                                  float *) noexcept
        void step_row(int, float, float, float, float, const float *, const float *, float *,
                      double *) noexcept
        void exp(int64_t, const float *, float *) noexcept
        void log(int64_t, const float *, float *) noexcept
        void digamma(int64_t, const float *, float *) noexcept
        void exp_digamma(int64_t, float, const float *, float *) noexcept

    ctypedef struct table_f64 "annealvi_table_f64":
        int fit_document(int64_t, int, int, const double **, const double *, const double *,
                         double, double, double, int, int, double *, double *, double *,
                         double *, double *, double *) noexcept
        double log_normalizer(int64_t, int, const double *, const double *, double, double,
                              double *) noexcept
        double energy(int64_t, int, int, const double **, const double *, const double *,
                      const double *, double, double *) noexcept
        void raise_row(int, const double *, double, double *) noexcept
        void add_statistics(int64_t, int, const int64_t *, const int64_t *, const double *,
                            const double *, const double *, double, const double *, int,
                            double *, double *, double *) noexcept
        double exp_digamma_weights(int, int, const double *, const double *, double, int,
                                   double *) noexcept
        void step_row(int, double, double, double, double, const double *, const double *,
                      double *, double *) noexcept
        void exp(int64_t, const double *, double *) noexcept
        void log(int64_t, const double *, double *) noexcept
        void digamma(int64_t, const double *, double *) noexcept
        void exp_digamma(int64_t, double, const double *, double *) noexcept

    ctypedef struct kernel_table "annealvi_kernels":
        const char *name
        table_f32 f32
        table_f64 f64

    const kernel_table *find_kernels "annealvi_find_kernels" (const char *name) noexcept
    int WORD_BLOCK "ANNEALVI_WORD_BLOCK"

# The table in use.  Other modules cimport the pointer, so all of them follow a
# change made by use_instruction_set.
cdef const kernel_table *kernels
