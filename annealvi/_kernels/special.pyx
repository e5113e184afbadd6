"""The vectorised functions over arrays.

NumPy's exp, log, log1p and powers, and what SciPy makes of them, choose their code and so their
last bits by processor.  These have the same bits on each.
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
    """exp(b psi(x)) for x >= 0, NaN below; for b = 1 it is computed without a logarithm."""
    return _apply("exp_digamma", x, b)


def log1p(x):
    """log(1 + x) for x > -1, with small relative error near 0."""
    x = np.asarray(x, dtype=np.float64)
    total = 1.0 + x
    # what rounding has taken from 1 + x, at the slope there
    return log(total) + (x - (total - 1.0)) / np.maximum(total, TINY)


def power(x, exponent):
    """x^exponent for x > 0."""
    return exp(exponent * log(x))


def entr(x):
    """-x log x, 0 at 0."""
    x = np.asarray(x, dtype=np.float64)
    return -x * log(np.maximum(x, TINY))


def log_sum_exp(x, axis=-1, keepdims=False):
    """log sum exp(x) along an axis."""
    x = np.asarray(x, dtype=np.float64)
    top = np.max(x, axis=axis, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    out = log(np.sum(exp(x - top), axis=axis, keepdims=True)) + top
    return out if keepdims else np.squeeze(out, axis=axis)[()]


def softmax(x):
    """exp(x) along the last axis, divided by its sum."""
    out = exp(x - np.max(x, axis=-1, keepdims=True))
    out /= np.sum(out, axis=-1, keepdims=True)
    return out
