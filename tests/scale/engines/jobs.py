"""Functions that workers call."""

import os
import time


def add(*numbers):
    return sum(numbers)


def total(numbers):
    return sum(numbers)


def process(*_):
    return os.getpid()


def count(log):
    """Write the process to a file."""
    with open(log, "a") as file:
        print(os.getpid(), file=file)
    return 1


def fail(message):
    raise FileNotFoundError(message)


def sleep(seconds, value=None):
    time.sleep(seconds)
    return value


class Broken:
    """A value that cannot be read."""

    def __reduce__(self):
        return (fail, ("cannot be read",))
