"""Language models in this process, through llama.cpp (xllamacpp).

`model` is the port's adapter, which makes tokens of prompts; `server` wraps llama.cpp's server and takes what the model
writes; `deterministic` implements the profile of that name.
"""
