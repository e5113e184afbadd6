"""Functions that workers call."""

import os
import time


def add(*numbers):
    return sum(numbers)


def process(*_):
    return os.getpid()


def fail(message):
    raise FileNotFoundError(message)


def sleep(seconds, value=None):
    time.sleep(seconds)
    return value


class Broken:
    def __reduce__(self):
        return (fail, ("cannot be read",))
