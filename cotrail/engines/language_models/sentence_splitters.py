"""Sentence splitters from spaCy, which find the end of a sentence in a whole line.

The authors of IRCoT take the first sentence by spaCy's `en_core_web_sm` (`commaqa/inference/ircot.py`). A pipeline's
decision depends on the words that follow, so the model finishes its line first.
"""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import Any

from cotrail.core.generation import RULES
from cotrail.errors import InputError, ModelChangedError, NotInstalledError


class Pipeline:
    """A loaded spaCy pipeline; safe to call from many threads at once.

    Raises NotInstalledError, and InputError where the package of that name is no pipeline.
    """

    def __init__(self, name: str) -> None:
        try:
            import spacy
        except ModuleNotFoundError as error:
            raise NotInstalledError(f"spaCy isn't installed: {_how(name)}") from error
        try:
            # Broken packages raise errors of all these kinds.
            self._nlp: Any = spacy.load(name)
        except (AttributeError, ImportError, OSError, TypeError, ValueError) as error:
            raise InputError(f"{name} can't be loaded as a spaCy pipeline: {error}") from error
        self._name = name
        self._calling = Lock()

    def first_sentence(self, text: str) -> str:
        """The first sentence of a text, stripped; empty where there is none.

        Raises InputError where the pipeline sets no sentence boundaries.
        """
        # spaCy doesn't promise that a pipeline may be called by several threads at once.
        with self._calling:
            try:
                sentences = list(self._nlp(text.strip()).sents)
            except ValueError as error:
                raise InputError(
                    f"the spaCy pipeline {self._name} sets no ends of sentences; take one with a parser, a senter or a "
                    f"sentencizer ({error})"
                ) from error
        return sentences[0].text.strip() if sentences else ""


def pinned(splitter: str) -> str:
    """The splitter with its installed version, e.g. `en_core_web_sm@3.8.0`; one that names a version stays as it is.

    Raises NotInstalledError.
    """
    if splitter == RULES or "@" in splitter:
        return splitter
    return f"{splitter}@{_version(splitter)}"


@cache
def open_pipeline(splitter: str) -> Pipeline:
    """The pipeline of that name and version, loaded once; raises NotInstalledError, ModelChangedError."""
    name, _, wanted = splitter.partition("@")
    found = _version(name)
    if found != wanted:
        raise ModelChangedError(
            f"the run's sentences are those of the spaCy pipeline {name} {wanted}, and this worker has {found}; "
            "install the former version, then `cotrail resume RUN`"
        )
    return Pipeline(name)


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError as error:
        raise NotInstalledError(f"the spaCy pipeline {name} isn't installed: {_how(name)}") from error


def _how(name: str) -> str:
    return f"`pip install 'cotrail[spacy]'`, then `python -m spacy download {name}`"
