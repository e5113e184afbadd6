"""annealvi."""
