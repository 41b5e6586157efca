"""Verification of a run's audit trail, as an outsider can do it: recompute all digests and compare."""
