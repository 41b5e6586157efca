"""Language models in this process, through transformers and PyTorch.

`model` is the port's adapter and `loading` reads model files. `scheduler` is the thread that a model works in; it
hands each `request` to an runner: `causal` for decoder-only models, `seq2seq` for encoder-decoder models.
"""
