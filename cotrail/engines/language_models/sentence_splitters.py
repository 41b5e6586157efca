"""Sentence splitters from spaCy, which find the end of a sentence in a whole line.

The authors of IRCoT take the first sentence by spaCy's `en_core_web_sm` (`commaqa/inference/ircot.py`). A pipeline's
decision depends on the words that follow, so the model finishes its line first.
"""

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from threading import Lock
from typing import Any

from cotrail.common.optional_packages import check_package, install_extra
from cotrail.common.sentence_boundaries import LONGEST_SENTENCE
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
        """The first sentence of a line, stripped; empty where there is none.

        It ends within the first `LONGEST_SENTENCE` characters, or else with the line: spaCy takes time quadratic
        in some texts, and none of more than a million characters.
        Raises InputError where the pipeline sets no sentence boundaries.
        """
        line = text.strip()
        # spaCy doesn't promise that a pipeline may be called by several threads at once.
        with self._calling:
            try:
                sentences = list(self._nlp(line[:LONGEST_SENTENCE]).sents)
            except ValueError as error:
                raise InputError(
                    f"the spaCy pipeline {self._name} sets no ends of sentences; take one with a parser, a senter or a "
                    f"sentencizer ({error})"
                ) from error
        return sentences[0].text.strip() if len(sentences) > 1 else line


def pinned(splitter: str) -> str:
    """The splitter with its installed version, e.g. `en_core_web_sm@3.8.0`; one that names a version stays as it is.

    Raises NotInstalledError.
    """
    if splitter == RULES or "@" in splitter:
        return splitter
    return f"{splitter}@{_version(splitter)}"


def check_installed(splitter: str) -> None:
    """Raises InputError where a pipeline isn't installed in the version that `pinned` gave, with how to install it."""
    if splitter == RULES:
        return
    name, _, wanted = splitter.partition("@")
    try:
        version = _version(name, wanted)
        check_package("spacy", "spacy")
    except NotInstalledError as error:
        raise InputError(str(error)) from error
    if version != wanted:
        raise InputError(
            f"the splitter {splitter} isn't installed here, {name} {version} is: {_download(name, wanted)}, or name "
            f"{name}@{version}"
        )


@cache
def open_pipeline(splitter: str) -> Pipeline:
    """The pipeline of that name and version, loaded once; raises NotInstalledError, ModelChangedError."""
    name, _, wanted = splitter.partition("@")
    version = _version(name, wanted)
    if version != wanted:
        raise ModelChangedError(
            f"the run's sentences are those of the spaCy pipeline {name} {wanted}, and this worker has {version}; "
            f"install the former version ({_download(name, wanted)}), then `cotrail resume RUN`"
        )
    return Pipeline(name)


def _version(name: str, wanted: str = "") -> str:
    try:
        return version(name)
    except PackageNotFoundError as error:
        described = f"{name} {wanted}".strip()
        raise NotInstalledError(f"the spaCy pipeline {described} isn't installed: {_how(name, wanted)}") from error


def _how(name: str, wanted: str = "") -> str:
    return f"`{install_extra('spacy')}`, then {_download(name, wanted)}"


def _download(name: str, wanted: str) -> str:
    return f"`python -m spacy download {name}{f'-{wanted} --direct' if wanted else ''}`"
