"""Language models: an adapter for each engine, and what they share.

`catalogue` opens a model by name, and says what it lacks. `packing` fits a prompt into the context window,
`chat_template` lays conversations out as segments, `model_files` finds templates and metadata in the files of models,
`stop_conditions` ends a generation, `grammars` holds it to a form, `result` makes a result of what was written,
`token_counts` caches counts, and `sentence_splitters` runs spaCy.
"""
