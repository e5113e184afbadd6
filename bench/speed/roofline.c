/* Peak rate of fused multiply-adds of one core, and bandwidth of reads from its caches.

   Prints, a line each: bytes of a vector; GFLOP/s of double; GFLOP/s of float; GB/s of reads
   from L1; GB/s of reads from L2.  Best of several trials.
   argv[1], argv[2]: bytes of the buffers that fit into L1 and into L2 only. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif

typedef double doubles __attribute__((vector_size(BYTES)));
typedef float floats __attribute__((vector_size(BYTES)));

enum { CHAINS = 12, FMAS = 1 << 21, TRIALS = 15, SUMS = 8 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static volatile double sink;

/* As many independent chains as hide the latency of an fma. */
#define DEFINE_PEAK(name, vector, scalar)                                              \
    static double name(scalar a, scalar b) {                                           \
        double best = 0;                                                               \
        for (int trial = 0; trial < TRIALS; trial++) {                                 \
            vector x[CHAINS], m = a - (vector){}, c = b - (vector){};                  \
            for (int i = 0; i < CHAINS; i++) x[i] = c + (scalar)i;                     \
            double start = now();                                                      \
            for (int n = 0; n < FMAS; n++) {                                           \
                _Pragma("GCC unroll 12")                                               \
                for (int i = 0; i < CHAINS; i++) x[i] = x[i] * m + c;                  \
            }                                                                          \
            double seconds = now() - start;                                            \
            double flops = 2.0 * FMAS * CHAINS * (BYTES / sizeof(scalar));             \
            for (int i = 0; i < CHAINS; i++) sink += x[i][0];                          \
            if (flops / seconds > best) best = flops / seconds;                        \
        }                                                                              \
        return best / 1e9;                                                             \
    }

DEFINE_PEAK(peak_double, doubles, double)
DEFINE_PEAK(peak_float, floats, float)

static double bandwidth(size_t bytes) {
    size_t n = bytes / BYTES / SUMS * SUMS;
    doubles *data = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    for (size_t i = 0; i < n; i++) data[i] = (doubles){} + 1e-3 * (double)i;
    int repeats = (int)((1u << 28) / bytes) + 1;
    double best = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        doubles sums[SUMS] = {{0}};
        double start = now();
        for (int r = 0; r < repeats; r++) {
            for (size_t i = 0; i < n; i += SUMS) {
                _Pragma("GCC unroll 8")
                for (int j = 0; j < SUMS; j++) sums[j] += data[i + j];
            }
            __asm__ volatile("" ::: "memory");
        }
        double seconds = now() - start;
        for (int j = 0; j < SUMS; j++) sink += sums[j][0];
        double rate = (double)repeats * n * BYTES / seconds;
        if (rate > best) best = rate;
    }
    free(data);
    return best / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    volatile double a = 0.999999, b = 1e-7;
    printf("%d\n", BYTES);
    printf("%.6g\n", peak_double(a, b));
    printf("%.6g\n", peak_float((float)a, (float)b));
    printf("%.6g\n", bandwidth(strtoul(argv[1], NULL, 10)));
    printf("%.6g\n", bandwidth(strtoul(argv[2], NULL, 10)));
    return 0;
}
