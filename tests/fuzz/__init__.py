"""Fuzzing: random calls of every public function, in processes of their own.

    python -m tests.fuzz --seconds 600               search, with a new seed
    python -m tests.fuzz --case 7:TemperedLDA:812    one case again, shrunk

A *target* is a public function or class.  A *case* is a run of Hypothesis that draws a few
examples for a target; its seed, target and number determine all that is drawn.  A call may answer
with finite numbers, or raise an error of a few classes with a text that names what is wrong.
Everything else is a failure: a crash, a hang, NaN or infinity, another class of error, an error
from inside NumPy or SciPy, an answer to unsound input.
"""
