"""Actions: what a system may ask for. One file a kind, and `registry` with a line a kind."""
