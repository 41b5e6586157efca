"""Language models in this process, through llama.cpp (xllamacpp).

`model` is the port's adapter, `server` wraps llama.cpp's server, `tokenizer` makes tokens of prompts, `stream` takes
what the model writes, `probabilities` reads the probabilities of tokens, and `deterministic` implements the profile of
that name.
"""
