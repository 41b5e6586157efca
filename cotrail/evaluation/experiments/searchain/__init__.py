"""Experiments of Search-in-the-Chain: its protocol and tables, next to the published values."""
