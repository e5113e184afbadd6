"""A pytest plugin: scikit-learn's own tests of LatentDirichletAllocation run on TemperedLDA."""

import sklearn.decomposition

from annealvi import TemperedLDA


class LatentDirichletAllocation(TemperedLDA):
    pass


sklearn.decomposition.LatentDirichletAllocation = LatentDirichletAllocation
