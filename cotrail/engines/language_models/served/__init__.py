"""Language models behind a server that speaks OpenAI's protocol: vLLM, SGLang, llama.cpp, hosted ones.

`model` is the port's adapter, `request` builds what is sent, `prompt_fields` its prompt, `client` sends it, `refusals`
turns error responses into errors of steps, `stream` takes what the server writes, `calls` its calls of tools, `scores`
and `probabilities` read its log probabilities, `tokenizer` counts tokens, `control_tokens` finds those that a prompt
only quotes, `capabilities` says what an endpoint lacks, and `event_loop` is the thread in which all requests run.
"""
