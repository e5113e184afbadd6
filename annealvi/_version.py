"""The version, in a separate file, which the build can read without the compiled kernels."""

__version__ = "0.1.0.dev1"
