"""Corpora as the paper built them, and how much of a dataset's gold they hold."""
