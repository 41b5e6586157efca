"""Experiments of Rethinking with Retrieval: its protocol and tables, next to the published values."""
