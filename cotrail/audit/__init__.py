"""The record as an outsider checks it: what its digests cover, and whether they agree."""
