"""Language models behind a server that speaks OpenAI's protocol: vLLM, SGLang, llama.cpp, hosted ones.

`model` is the port's adapter, `request` says what is sent, `client` sends it, `refusals` says what an answer other
than a stream means, `stream` takes what the server writes, `choices` reads what it finds likely, `counting` counts
tokens, and `event_loop` is the thread that all requests are under way in.
"""
