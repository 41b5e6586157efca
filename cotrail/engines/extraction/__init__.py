"""Extractive readers: models that find the piece of a paragraph that answers a question."""
