"""Language models in this process, through transformers and PyTorch.

`model` is the port's adapter, and `loading` reads model files. `scheduler` is the thread in which the model runs; it
hands each `request` to a model runner: `causal` for decoder-only models (continuous batching over `kv_cache`, prefix
caching in `slots`, speculative decoding from `drafting` and `continuations`), `seq2seq` for encoder-decoder models.
`sampling` chooses the tokens, of those that a `constraint` allows.
"""
