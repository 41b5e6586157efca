"""The command line without a server: a home with a scripted model, the keys of a run, and the command as a process."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


DEMONSTRATION = '# METADATA: {"qid": "d"}\nWikipedia Title: T\nText.\n\nQ: Who?\nA: X did. So the answer is: X.\n'


Run = Callable[..., subprocess.CompletedProcess[str]]


Given = Callable[..., dict[str, Any]]
