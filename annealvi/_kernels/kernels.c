/* All kernels for both floating types.  setup.py compiles this file once for
 * each instruction set, with KERNELS_NAME set to baseline, avx2 or avx512. */
#include "kernels.h"

#include <math.h>
#include <string.h>

/* Share a loop out among threads, if there are any. */
#define PRAGMA(text) _Pragma(#text)
#ifdef _OPENMP
#include <omp.h>
#define SHARE_OUT(threads, how, chunk)                                                           \
    PRAGMA(omp parallel for num_threads(threads) schedule(how, chunk))
#else
static inline int omp_get_thread_num(void) { return 0; }
#define SHARE_OUT(threads, how, chunk)
#endif
#define TOGETHER ANNEALVI_TOGETHER

static inline int64_t index_at(const annealvi_rows *rows, const void *array, int64_t i)
{
    return rows->wide ? ((const int64_t *)array)[i] : ((const int32_t *)array)[i];
}

/* The first entry of document d, and the word of an entry. */
static inline int64_t first_entry(const annealvi_rows *rows, int64_t d)
{
    return index_at(rows, rows->indptr, rows->start + d);
}

static inline int64_t word_of(const annealvi_rows *rows, int64_t entry)
{
    return index_at(rows, rows->indices, entry);
}

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

/* out += factor * row. */
static void add_row(int64_t n, double factor, const double *row, double *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] += factor * row[i];
}

#define QUOTE_(a) #a
#define QUOTE(a) QUOTE_(a)
#define SINGLE(result, name, arguments) PASTE(name, f32),
#define DOUBLE(result, name, arguments) PASTE(name, f64),
#define ALONE(result, name, arguments) name,

const annealvi_kernels PASTE(annealvi_kernels, KERNELS_NAME) = {
    QUOTE(KERNELS_NAME),
    {{ANNEALVI_KERNELS(SINGLE)}, {ANNEALVI_KERNELS(DOUBLE)}},
    ANNEALVI_DOUBLE_KERNELS(ALONE)
};
