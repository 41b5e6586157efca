"""Raters: models that score pairs of texts, by whether they ask the same or how far one answers the other.

`raters` is their catalogue, with the scripted one; `cross_encoder` and `served` are the adapters of the port.
"""
