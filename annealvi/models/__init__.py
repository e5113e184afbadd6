"""The models: the mathematics under the estimators, without scikit-learn's interface."""
