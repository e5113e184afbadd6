"""How fast: timings against rivals, against another commit and against the machine."""
