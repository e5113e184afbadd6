"""How good: what tempering, defaults and learned temperatures gain, on real corpora."""
