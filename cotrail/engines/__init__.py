"""Engines behind the ports: language models, retrieval, knowledge sources, embedders and entailers."""
