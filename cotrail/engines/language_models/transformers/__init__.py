"""Language models in this process, through transformers and PyTorch.

`model` is the port's adapter and `loading` reads model files. `scheduler` is the thread that a model works in; it
hands each `request` to an engine: `causal` for decoder-only models, `seq2seq` for encoder-decoder models.
"""

from cotrail.errors import NotInstalledError

try:
    from cotrail.engines.language_models.transformers.model import TransformersModel
except ModuleNotFoundError as error:
    raise NotInstalledError("PyTorch or transformers isn't installed: `pip install 'cotrail[gpu]'`") from error

__all__ = ["TransformersModel"]
