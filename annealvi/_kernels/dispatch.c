/* This finds out which builds of the kernels the processor can run. */
#include "kernels.h"

#include <string.h>

const annealvi_kernels *annealvi_find_kernels(const char *name)
{
#ifdef ANNEALVI_X86
    __builtin_cpu_init();
    if (strcmp(name, "avx512") == 0)
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")
                   ? &annealvi_kernels_avx512
                   : NULL;
    if (strcmp(name, "avx2") == 0)
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")
                   ? &annealvi_kernels_avx2
                   : NULL;
#endif
    return strcmp(name, "baseline") == 0 ? &annealvi_kernels_baseline : NULL;
}
