"""Folders of models, opened in transformers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cotrail.core.ports.language_model import Profile

if TYPE_CHECKING:
    from cotrail.engines.language_models.transformers.model import TransformersModel

Make = Callable[..., "TransformersModel"]


@contextmanager
def maker(folder: Path, name: str, context: int) -> Iterator[Make]:
    """Opens the folder under this name, by default with this context."""
    from cotrail.engines.language_models.transformers.model import TransformersModel

    made, usual = [], context

    def make(profile: Profile = "fast", slots: int = 1, context: int = usual) -> "TransformersModel":
        made.append(TransformersModel(folder, name, profile, slots, context))
        return made[-1]

    yield make
    for model in made:
        model.interrupt()
