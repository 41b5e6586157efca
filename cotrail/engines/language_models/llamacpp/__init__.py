"""Language models in this process, through llama.cpp (xllamacpp).

`model` is the port's adapter, `server` wraps llama.cpp's server, `stream` takes what it writes, `probabilities` reads
the probabilities of tokens, and `deterministic` implements the profile of that name.
"""
