"""Entailment models (natural language inference): whether a sentence follows from a text.

`entailers` is their catalogue, with a language model's own probabilities and the scripted one; `transformers` is the
adapter of the port for classifiers, and interprets their outputs.
"""
