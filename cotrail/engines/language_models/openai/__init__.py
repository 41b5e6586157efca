"""Language models behind a server that speaks OpenAI's protocol: vLLM, SGLang, llama.cpp, hosted ones.

`model` is the port's adapter, `request` builds what is sent, `client` sends it, `refusals` turns error responses into
errors of steps, `stream` takes what the server writes, `probabilities` reads its log probabilities, `tokenizer` counts
tokens, and `event_loop` is the thread in which all requests run.
"""
