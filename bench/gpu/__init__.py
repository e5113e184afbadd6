"""Kernels of LDA for a GPU: CUDA sources, their call by CuPy, and an emulation on the processor.

They are not yet a part of the package: no estimator calls them.

    python -m bench.gpu.check     compares them with the package's kernels, emulated (needs g++)
    python -m bench.gpu           the same on a device, and times; needs CuPy

On an H200 with 16 cores beside it, the first and the second whole pass over 100,000 documents with
6.2 million entries took these milliseconds; in brackets is how many times as long the package's
kernels took on all cores and on one:

    K = 100     36 (10, 83)     28 (11, 84)
    K = 500    109 (5, 43)      66 (6, 44)
    K = 2,000  222 (6, 53)     153 (8, 65)

Shares differ by at most 5e-5 after 20 iterations, topics by 1e-5 in L1, and a second run has the
same bits.
"""
