"""The networks of deep models, one file each; their estimators are a floor above."""
