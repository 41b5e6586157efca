"""Limits of providers, shared out as evenly spaced requests (the generic cell rate algorithm)."""
