"""Studies of quality: the gains of tempering, of the defaults and of learned temperatures."""
