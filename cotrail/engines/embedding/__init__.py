"""Sentence embedding models, and the cosine similarities of their vectors."""
