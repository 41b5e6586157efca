"""Metrics, with the arithmetic of the publishers' official scripts."""
