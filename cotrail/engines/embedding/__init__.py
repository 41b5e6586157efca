"""Sentence embedding models, and the cosine similarities of their vectors.

`embedders` is their catalogue, with the scripted one; `sentence_transformers` and `served` are the adapters of the
port, and `cosine_similarity` compares vectors.
"""
