"""Sentence embedding models, and the cosine similarities of their vectors.

`embedders` is their catalogue; `sentence_transformers`, `served` and `scripted` are the adapters of the port,
`server_apis` has what servers are sent and what they answer, and `cosine_similarity` compares vectors.
"""
