"""Kernels of LDA for a GPU: CUDA sources, their call by CuPy, and an emulation on the processor.

They are not yet a part of the package: no estimator calls them.

    python -m bench.gpu.check     compares them with the package's kernels, emulated (needs g++)
    python -m bench.gpu           the same on a device, and times; needs CuPy
"""
