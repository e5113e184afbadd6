"""The vectorised special functions over arrays."""

import numpy as np

from cython cimport floating

from annealvi._kernels._dispatch cimport kernels


cdef _apply(str name, x, double b=1.0, out=None):
    x = np.ascontiguousarray(x)
    if out is None:
        out = np.empty_like(x)
    if x.size:
        if x.dtype == np.float32:
            _apply_typed[float](name, b, x.ravel(), out.reshape(-1))
        else:
            _apply_typed[double](name, b, x.ravel(), out.reshape(-1))
    return out


cdef _apply_typed(str name, double b, const floating[::1] x, floating[::1] out):
    if floating is float:
        if name == "exp":
            kernels.f32.exp(x.shape[0], &x[0], &out[0])
        elif name == "log":
            kernels.f32.log(x.shape[0], &x[0], &out[0])
        elif name == "digamma":
            kernels.f32.digamma(x.shape[0], &x[0], &out[0])
        elif name == "lgamma":
            kernels.f32.lgamma(x.shape[0], &x[0], &out[0])
        else:
            kernels.f32.exp_digamma(x.shape[0], <float>b, &x[0], &out[0])
    else:
        if name == "exp":
            kernels.f64.exp(x.shape[0], &x[0], &out[0])
        elif name == "log":
            kernels.f64.log(x.shape[0], &x[0], &out[0])
        elif name == "digamma":
            kernels.f64.digamma(x.shape[0], &x[0], &out[0])
        elif name == "lgamma":
            kernels.f64.lgamma(x.shape[0], &x[0], &out[0])
        else:
            kernels.f64.exp_digamma(x.shape[0], b, &x[0], &out[0])


def exp(x):
    """exp(x); results below the normal range are 0."""
    return _apply("exp", x)


def log(x, out=None):
    """log(x) for x >= 0, NaN below."""
    return _apply("log", x, 1.0, out)


def digamma(x, out=None):
    """The digamma function for x >= 0, NaN below; `out` may be x, contiguous."""
    return _apply("digamma", x, 1.0, out)


def lgamma(x):
    """log Gamma(x) for x >= 0, NaN below; near its zeros, 1 and 2, the error is absolute."""
    return _apply("lgamma", x)


def exp_digamma(x, b=1.0):
    """exp(b psi(x)) for x >= 0, NaN below; for b = 1 it is computed without a logarithm."""
    return _apply("exp_digamma", x, b)
