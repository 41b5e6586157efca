"""Engines behind the ports: language models, retrieval, knowledge sources, embedders, entailers, extractors and raters.

Shared by several of them: `engine_kinds` lists the kinds of engines, an `engine_catalogue` is one kind, with what its
tables have in common, `models_file` reads those that a user adds in `models.toml`, `model_folders` finds and digests
pretrained models and names what a run pins, `script_files` reads the scripts of scripted models,
`device_memory` says how much a device holds and loads models of transformers that read two texts at once.
"""
