"""What a GPU gains over this machine's processor: python -m bench.gpu, on a machine that has one.

In an earlier measurement of the kernels alone, on an H200 with 16 cores beside it, the first and
the second whole pass over 100,000 documents with 6.2 million entries took these milliseconds.  In
brackets is how many times as long the processor took on all cores and on one:

    K = 100     36 (10, 83)     28 (11, 84)
    K = 500    109 (5, 43)      66 (6, 44)
    K = 2,000  222 (6, 53)     153 (8, 65)
"""
