"""Language models in this process, through llama.cpp (xllamacpp).

`model` is the port's adapter, `server` speaks with llama.cpp, `stream` takes what it writes and `choices` what it
finds likely, and `exact` is how the profile `deterministic` reads prompts.
"""
