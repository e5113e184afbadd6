"""The estimators of deep models, with the interface of scikit-learn."""
