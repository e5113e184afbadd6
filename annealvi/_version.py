"""The version, in a file of its own so that the build can read it without the kernels."""

__version__ = "0.1.0.dev1"
