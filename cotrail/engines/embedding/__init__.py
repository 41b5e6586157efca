"""Sentence embedding models, and the cosine similarities of their vectors.

`embedders` is their catalogue; `sentence_transformers` and `scripted` are the adapters of the port, and
`cosine_similarity` compares vectors.
"""
