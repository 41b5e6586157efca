"""Extractive readers: models that find the piece of a paragraph that answers a question.

`extractors` is their catalogue, with the scripted one; `transformers` is the adapter of the port, which also chooses
the answer among spans.
"""
