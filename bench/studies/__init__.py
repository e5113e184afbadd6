"""Quality: what tempering, the defaults and learned temperatures gain."""
