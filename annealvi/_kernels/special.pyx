"""Vectorised functions of arrays, which return identical results on all processors.

The code, and so the last digits, of NumPy's exp, log, log1p and powers depend on the processor.
The same is true of SciPy's functions that use them.
"""

import numpy as np

from cython cimport floating

from annealvi._kernels._dispatch cimport kernels

TINY = np.finfo(np.float64).tiny


cdef _apply(str name, x, double b=1.0, out=None):
    x = np.asarray(x)
    if x.dtype != np.float32:
        x = np.asarray(x, dtype=np.float64)
    if out is None:
        out = np.empty(x.shape, x.dtype)
    if x.size:
        if x.dtype == np.float32:
            _apply_typed[float](name, b, x.ravel(), out.reshape(-1))
        else:
            _apply_typed[double](name, b, x.ravel(), out.reshape(-1))
    return out[()]


cdef _apply_typed(str name, double b, const floating[::1] x, floating[::1] out):
    cdef:
        int real = sizeof(floating) == 8
        Py_ssize_t n = x.shape[0]
    if name == "exp":
        kernels.real[real].exp_array(n, &x[0], &out[0])
    elif name == "log":
        kernels.real[real].log_array(n, &x[0], &out[0])
    elif name == "digamma":
        kernels.real[real].digamma_array(n, &x[0], &out[0])
    else:
        kernels.real[real].exp_digamma_array(n, b, &x[0], &out[0])


def exp(x):
    """Compute exp(x); results below the normal range are 0."""
    return _apply("exp", x)


def log(x, out=None):
    """Compute log(x) for x >= 0; for negative x it is NaN."""
    return _apply("log", x, 1.0, out)


def digamma(x, out=None):
    """Compute the digamma function for x >= 0, else NaN; `out` may be x if it is contiguous."""
    return _apply("digamma", x, 1.0, out)


def lgamma(x):
    """log Gamma(x) for x >= 0, NaN below; near its zeros, 1 and 2, the error is absolute."""
    x = np.asarray(x)
    cdef:
        const double[::1] wide = np.asarray(x, dtype=np.float64).ravel()
        double[::1] out = np.empty(x.size)
    if x.size:
        kernels.log_gamma_array(x.size, &wide[0], &out[0])
    dtype = x.dtype if x.dtype == np.float32 else np.float64
    with np.errstate(over="ignore"):
        return np.asarray(out, dtype=dtype).reshape(x.shape)[()]


def exp_digamma(x, b=1.0):
    """Compute exp(b psi(x)) for x >= 0, else NaN; for b = 1 it needs no logarithm."""
    return _apply("exp_digamma", x, b)


def log1p(x):
    """Compute log(1 + x) for x > -1, with a small relative error near 0."""
    x = np.asarray(x, dtype=np.float64)
    total = 1.0 + x
    # add the rounding error of 1 + x, multiplied by the slope
    return log(total) + (x - (total - 1.0)) / np.maximum(total, TINY)


def power(x, exponent):
    """Compute x^exponent for x > 0."""
    return exp(exponent * log(x))


def entr(x):
    """Compute -x log x, which is 0 at x = 0."""
    x = np.asarray(x, dtype=np.float64)
    return -x * log(np.maximum(x, TINY))


def log_sum_exp(x, axis=-1, keepdims=False):
    """Compute log sum exp(x) along an axis."""
    x = np.asarray(x, dtype=np.float64)
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    out = log(np.sum(exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else np.squeeze(out, axis=axis)[()]


def softmax(x):
    """Compute exp(x) divided by its sum along the last axis."""
    out = exp(x - np.max(x, axis=-1, keepdims=True))
    out /= np.sum(out, axis=-1, keepdims=True)
    return out
