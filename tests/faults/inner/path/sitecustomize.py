"""Loaded by every Python process whose PYTHONPATH names this folder."""

from tests.faults import inner

inner.install()
