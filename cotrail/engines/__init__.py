"""Engines behind the ports: language models, retrieval, knowledge sources, embedders, entailers, extractors, raters."""
