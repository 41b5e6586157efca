"""Entailment models (natural language inference): whether a sentence follows from a text."""
