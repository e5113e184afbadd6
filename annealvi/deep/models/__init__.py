"""The networks of deep models, one file each; annealvi.deep.estimators fits them."""
