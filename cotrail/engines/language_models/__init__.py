"""Language models: an adapter for each engine, and what they share.

`catalogue` opens a model by name. `packing` fits a prompt into the context window, `stop_conditions` ends a generation,
`probabilities` compares continuations, `token_counts` caches counts, and `sentence_splitters` runs spaCy.
"""
