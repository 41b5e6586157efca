"""Language models: an adapter for each engine, and what they share.

`catalogue` opens a model by name, and says what it lacks. `packing` fits a prompt into the context window,
`chat_template` lays conversations out as `segments`, `template_files` finds the templates in the files of models and
`gguf_metadata` reads GGUF files, `control_tokens` looks for control tokens in texts, `stop_conditions` ends a
generation, `grammars` holds it to a form, `tool_calls` reads calls of tools, `probabilities` compares continuations,
`token_counts` caches counts, and `sentence_splitters` runs spaCy.
"""
