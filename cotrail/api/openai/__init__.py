"""OpenAI's API as a facade: a system with its corpora and its model is a model, and a question an answer of it."""
