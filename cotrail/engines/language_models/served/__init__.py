"""Language models behind a server: vLLM, SGLang, llama.cpp, hosted ones.

`model` is the port's adapter; `protocols` has a file for each provider's API, which builds what is sent and reads what
comes back; `request` and `prompt_fields` are the fields that several of them share. `client` sends it, `refusals` turns
error responses into errors of steps, `stream` puts the answer and its thoughts together, with its calls of tools,
`probabilities` reads its log probabilities, `tokenizer` counts tokens, `capabilities` says what an endpoint lacks, and
`event_loop` is the thread in which all requests run. `probing` asks a model what its table has to say.
"""
