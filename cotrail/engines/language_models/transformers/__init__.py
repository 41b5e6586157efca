"""Language models in this process, through transformers and PyTorch.

`model` is the port's adapter. `scheduler` is the thread in which the model runs; it hands each `request`, which samples
its tokens, to a model runner: `causal` for decoder-only models (continuous batching over `kv_cache`, prefix caching in
slots), `seq2seq` for encoder-decoder models. `vocabulary` makes tokens of texts, and a `constraint` bounds what may
come next.
"""
