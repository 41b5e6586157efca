"""Language models in this process, through transformers and PyTorch.

`model` is the port's adapter, and bounds what may come next where a text is held to a form. `scheduler` is the thread
in which the model runs; it hands each `request`, which samples its tokens, to a model runner: `causal` for decoder-only
models (continuous batching over `kv_cache`, prefix caching in slots), `seq2seq` for encoder-decoder models.
`vocabulary` makes tokens of texts.
"""
