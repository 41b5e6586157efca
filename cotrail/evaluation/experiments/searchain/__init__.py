"""Experiments of Search-in-the-Chain: its protocol and tables, beside the published values."""
