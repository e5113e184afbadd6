/* This finds out which builds of the kernels the processor can run. */
#include "kernels.h"

#include <string.h>

#ifdef ANNEALVI_X86
#include <cpuid.h>

/* The bits of cpuid's leaves 1 and 7, and the registers that the operating system must save. */
#define OSXSAVE (1u << 27)
#define FMA (1u << 12)
#define AVX2 (1u << 5)
#define AVX512 (1u << 16 | 1u << 17 | 1u << 30 | 1u << 31) /* F, DQ, BW and VL */
#define YMM 0x06u
#ifdef __APPLE__ /* macOS saves these from their first use on, and does not report them before */
#define ZMM YMM
#else
#define ZMM 0xe6u
#endif

static int has(uint32_t bits, uint32_t wanted) { return (bits & wanted) == wanted; }

/* Whether processor and system can run a build.  We ask the processor, because
 * __builtin_cpu_supports needs a library that is not linked on Windows. */
static int runs(uint32_t instructions, uint32_t registers)
{
    uint32_t a, b, in_1, in_7, d, saved;
    if (!__get_cpuid(1, &a, &b, &in_1, &d) || !has(in_1, FMA | OSXSAVE) ||
        !__get_cpuid_count(7, 0, &a, &in_7, &b, &d))
        return 0;
    __asm__("xgetbv" : "=a"(saved), "=d"(d) : "c"(0)); /* _xgetbv would need a flag of its own */
    return has(in_7, instructions) && has(saved, registers);
}
#endif

const annealvi_kernels *annealvi_find_kernels(const char *name)
{
#ifdef ANNEALVI_X86
    if (strcmp(name, "avx512") == 0)
        return runs(AVX2 | AVX512, ZMM) ? &annealvi_kernels_avx512 : NULL;
    if (strcmp(name, "avx2") == 0)
        return runs(AVX2, YMM) ? &annealvi_kernels_avx2 : NULL;
#endif
    return strcmp(name, "baseline") == 0 ? &annealvi_kernels_baseline : NULL;
}
