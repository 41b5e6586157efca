"""The published systems: a file or a folder each, what they share in `parts`, and the `registry` that lists them."""
