"""Batch APIs of providers, a file each."""
