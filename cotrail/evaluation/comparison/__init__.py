"""Comparison of systems that answered the same questions: how much they differ, and how sure that is."""
