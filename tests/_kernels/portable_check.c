/* The special functions of one build of the kernels against the C library's, for processors
 * and compilers that the Python tests do not run on.  Prints the worst error of each, over
 * what is allowed (see test_special.py), and fails above 1. */
#include "kernels.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { N = 4001 }; /* no whole number of vectors */

static int failures = 0;

static void report(const char *name, double worst)
{
    printf("%s %.3f\n", name, worst);
    failures += !(worst <= 1);
}

static double larger(double a, double b) { return a > b || a != a ? a : b; }

static double excess(double actual, double expected, double exponent, double floor, double u)
{
    const double allowed = fmax(floor, 4 * u * fabs(exponent));
    return fabs(actual - expected) / allowed;
}

/* psi by its recurrence and the asymptotic series.  What may be large, 1 / x, comes last and
 * so is rounded only once. */
static double psi(double x)
{
    const double first = x < 12 ? 1 / x : 0;
    double low = 0, y = x < 12 ? x + 1 : x;
    for (; y < 12; y++)
        low += 1 / y;
    const double z = 1 / (y * y);
    const double tail = 1. / 252 - z * (1. / 240 - z / 132);
    return (log(y) - 0.5 / y - z * (1. / 12 - z * (1. / 120 - z * tail)) - low) - first;
}

#define CHECK(suffix, type, floor, u, least_exponent)                                            \
    static void check_##suffix(const annealvi_kernels *kernels)                                  \
    {                                                                                            \
        static type x[N], e[N], out[N];                                                          \
        static double wide[N], log_gamma[N];                                                     \
        double worst_exp = 0, worst_log = 0, worst_psi = 0, worst_exp_psi = 0, worst_lgamma = 0; \
        for (int i = 0; i < N; i++) {                                                            \
            x[i] = (type)exp(-23 + 46. * i / N);                                                 \
            e[i] = (type)(least_exponent * (1 - 1.99 * i / N));                                  \
            wide[i] = (double)x[i];                                                              \
        }                                                                                        \
        kernels->real[sizeof(type) == 8].exp_array(N, e, out);                                                          \
        for (int i = 0; i < N; i++)                                                              \
            worst_exp = larger(excess(out[i] / exp(e[i]), 1, e[i], floor, u), worst_exp);        \
        kernels->real[sizeof(type) == 8].log_array(N, x, out);                                                          \
        for (int i = 0; i < N; i++)                                                              \
            worst_log = larger(excess(out[i], log(x[i]), log(x[i]), floor, u), worst_log);       \
        kernels->real[sizeof(type) == 8].digamma_array(N, x, out);                                                      \
        for (int i = 0; i < N; i++)                                                              \
            worst_psi = larger(excess(out[i], psi(x[i]), psi(x[i]), floor, u), worst_psi);       \
        kernels->real[sizeof(type) == 8].exp_digamma_array(N, 1, x, out);                                               \
        for (int i = 0; i < N; i++)                                                              \
            if (psi(x[i]) > least_exponent)                                                      \
                worst_exp_psi = larger(                                                          \
                    excess(out[i] / exp(psi(x[i])), 1, psi(x[i]), floor, u), worst_exp_psi);     \
        kernels->log_gamma_array(N, wide, log_gamma);                                            \
        for (int i = 0; i < N; i++)                                                              \
            worst_lgamma = larger(                                                               \
                excess((type)log_gamma[i], lgamma(x[i]), lgamma(x[i]), floor, u), worst_lgamma); \
        report("exp " #suffix, worst_exp);                                                       \
        report("log " #suffix, worst_log);                                                       \
        report("psi " #suffix, worst_psi);                                                       \
        report("exp(psi) " #suffix, worst_exp_psi);                                              \
        report("log Gamma " #suffix, worst_lgamma);                                              \
    }
CHECK(f32, float, 1e-6, 0x1p-24, -86.)
CHECK(f64, double, 1e-13, 0x1p-53, -707.)

int main(int count, char **arguments)
{
    const char *name = count > 1 ? arguments[1] : "baseline";
    const annealvi_kernels *kernels = annealvi_find_kernels(name);
    if (!kernels || strcmp(kernels->name, name) != 0 || annealvi_find_kernels("none")) {
        printf("%s: no such kernels\n", name);
        return 2;
    }
#ifndef ANNEALVI_X86
    failures += annealvi_find_kernels("avx2") != NULL || annealvi_find_kernels("avx512") != NULL;
#endif
    check_f32(kernels);
    check_f64(kernels);
    return failures != 0;
}
