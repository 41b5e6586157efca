"""Language models behind a server: vLLM, SGLang, llama.cpp, hosted ones.

`model` is the port's adapter; `protocols` has a file for each provider's API, which builds what is sent and reads what
comes back; `request`, `structure` and `prompt_fields` are the fields that several of them share. `client` sends it,
`refusals` turns error responses into errors of steps, `stream` puts the answer together, `calls` its calls of tools,
`thoughts` what is recorded of its thoughts, `scores` and `probabilities` read its log probabilities, `tokenizer` counts
tokens, `control_tokens` finds those that a prompt only quotes, `capabilities` says what an endpoint lacks, and
`event_loop` is the thread in which all requests run. `probing` asks a model what its table has to say.
"""
