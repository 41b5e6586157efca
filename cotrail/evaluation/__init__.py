"""Evaluation: the publishers' metrics, and experiments that follow a paper's protocol."""
