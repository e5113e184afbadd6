"""One adapter for each library: the same work said in its own words.

An adapter is a function ``start(problem, X, **options)`` that returns a function
of no arguments which makes one pass over X.  Whatever is not part of a pass (first
draws, allocation of the model) is done before it returns.
"""
