"""Experiments of Rethinking with Retrieval: its protocol and tables, beside the published values."""
