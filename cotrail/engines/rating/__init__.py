"""Raters: models that score pairs of texts, by whether they ask the same or how far one answers the other.

`raters` is their catalogue; `cross_encoder`, `served` and `scripted` are the adapters of the port, and `rerank_server`
has the settings of a server.
"""
