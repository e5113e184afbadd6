"""A pytest plugin: scikit-learn's own tests of LatentDirichletAllocation run on TemperedLDA."""

import os

import sklearn.decomposition

from annealvi import TemperedLDA

# as a subclass would have it whose __init__ has another default
TemperedLDA.__init__.__kwdefaults__["preset"] = os.environ["ANNEALVI_TEST_PRESET"]


class LatentDirichletAllocation(TemperedLDA):
    pass


sklearn.decomposition.LatentDirichletAllocation = LatentDirichletAllocation
