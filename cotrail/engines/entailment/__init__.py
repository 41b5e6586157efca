"""Entailment models (natural language inference): whether a sentence follows from a text.

`entailers` is their catalogue; `transformers`, `prompted` and `scripted` are the adapters of the port, and `labels`
interprets a classifier's outputs.
"""
