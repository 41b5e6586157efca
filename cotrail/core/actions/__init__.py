"""Actions, which a system may ask for: a file for each kind, and `registry` with a line for each."""
