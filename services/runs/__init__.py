"""Runs: submitted, forked, steered, watched and removed."""
