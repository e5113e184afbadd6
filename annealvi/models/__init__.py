"""The models that the estimators fit: their mathematics, without scikit-learn's interface."""
