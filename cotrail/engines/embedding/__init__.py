"""Sentence embedding models, and the cosine similarities of their vectors.

`embedders` is their catalogue; `sentence_transformers`, `served` and `scripted` are the adapters of the port,
`embedding_server` has the settings of a server, `server_apis` what it is sent and what it answers, and
`cosine_similarity` compares vectors.
"""
