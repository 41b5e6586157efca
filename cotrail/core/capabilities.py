"""Capabilities of language models."""

from typing import Literal

Capability = Literal["turns", "continue", "scores", "tools", "sampling"]
"""What an action may ask beyond the continuation of plain text. `turns`: conversations, laid out by the model's own
chat template. `continue`: a last turn of the assistant's is continued in place. `scores`: the log
probability of each token written. `tools`: tools are shown to the model, and its calls of them are read. `sampling`:
`top_k` and a repetition penalty."""
