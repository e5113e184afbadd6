"""Speed: timings against other libraries, other commits and the limits of the machine."""
