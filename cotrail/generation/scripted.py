"""A model that writes what a script says: for tests, and to show the machinery without a language model."""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from cotrail.actions import Generated, Until, canonical
from cotrail.errors import EmptyGenerationError, InputError, StepError, TransientStepError
from cotrail.generation.generator import Interrupted, Sampling
from cotrail.generation.identity import model_identity
from cotrail.prompting.packing import pack
from cotrail.prompting.prompt import Prompt
from cotrail.prompting.titles import title_question

FailureKind = Literal["transient", "permanent", "empty"]
"""TransientStepError, StepError, EmptyGenerationError; each at every try."""

_QUESTION, _NUMBER = "<question>", 0
_TITLE_QUESTION = re.compile(
    re.escape(title_question(_QUESTION, _NUMBER)).replace(_QUESTION, "(.*)").replace(str(_NUMBER), r"\d+") + r"\Z",
    re.DOTALL,
)
"""A prompt that asks for titles; what the quotation marks hold may have some of its own."""


class ScriptedQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is written for one question: its chain, sentence by sentence, and its answer.

    titles: what is written where pages are asked for (see `title_question`); none unless given. Left unset, they are no
        part of the digest, which they came later than.
    """

    sentences: tuple[str, ...] = ()
    answer: str
    titles: tuple[str, ...] | UnsetType = UNSET


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    default: for questions that the script doesn't know; without it they fail.
    context: how many words a prompt and its continuation may take together.
    failures: by question and step, the step being a sentence's number, from "0", "answer" or "titles".
    """

    name: str
    questions: dict[str, ScriptedQuestion]
    default: ScriptedQuestion | None = None
    context: int = 100_000
    failures: dict[str, dict[str, FailureKind]] = {}

    @property
    def digest(self) -> str:
        """The SHA-256 of everything that the script says, however its file is laid out."""
        return hashlib.sha256(canonical(self)).hexdigest()


def read_script(path: Path) -> Script:
    """The script in a JSON file; InputError says what is wrong with it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Script)
    except OSError as error:
        raise InputError(f"the script {path} can't be read: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"the script {path} is malformed: {error}") from error


class ScriptedGenerator:
    """Writes, for each prompt, what the script has for its question; a token is a word.

    source: a script, its file, or the same content as a mapping.
    name: what the identity calls it, else the script does.
    """

    def __init__(self, source: Script | Path | Mapping[str, object], name: str | None = None) -> None:
        self._script = _script(source)
        self._identity = model_identity(name or self._script.name, self._script.digest)
        self._interrupted = Event()

    @property
    def identity(self) -> str:
        """See `Generator`."""
        return self._identity

    def generate(self, prompt: Prompt, until: Until, max_tokens: int, sampling: Sampling) -> Generated:  # noqa: ARG002
        """See `Generator`."""
        if self._interrupted.is_set():
            raise Interrupted
        packed = pack(prompt, _words, self._script.context, max_tokens)
        text = self._line(prompt.question, len(prompt.sentences), until)
        return Generated(
            text=text,
            raw=text,
            demonstrations=len(packed.demonstrations.items),
            paragraphs=len(packed.paragraphs),
            first_demonstration=packed.first_demonstration,
            prompt_digest=packed.digest,
            prompt_tokens=_words(packed.render()),
            cached_prompt_tokens=0,
            generated_tokens=_words(text),
        )

    def interrupt(self) -> None:
        """See `Generator`."""
        self._interrupted.set()

    def _line(self, asked: str, written: int, until: Until) -> str:
        titles = _TITLE_QUESTION.search(asked) if until == "line" else None
        question = self._question(titles[1] if titles else asked)
        self._fail(question, "titles" if titles else "answer" if until == "line" else str(written))
        script = self._script.questions.get(question, self._script.default)
        if script is None:
            raise StepError(f"the script {self._script.name} has no question {question!r} and no default")
        if titles:
            return json.dumps(script.titles or (), ensure_ascii=False)
        if until == "line":
            return script.answer
        return script.sentences[written] if written < len(script.sentences) else f"So the answer is: {script.answer}."

    def _question(self, asked: str) -> str:
        """The question itself: instructions, as for Flan, stand on lines before it."""
        parts = asked.split("\n")
        endings = ["\n".join(parts[start:]) for start in range(len(parts))]
        return next((ending for ending in endings if ending in self._script.questions), parts[-1])

    def _fail(self, question: str, step: str) -> None:
        message = f"the script {self._script.name} says so for {question!r}, step {step}"
        match self._script.failures.get(question, {}).get(step):
            case "transient":
                raise TransientStepError(message)
            case "permanent":
                raise StepError(message)
            case "empty":
                raise EmptyGenerationError(message)


def _script(source: Script | Path | Mapping[str, object]) -> Script:
    match source:
        case Script():
            return source
        case Path():
            return read_script(source)
    return msgspec.convert(source, Script)


def _words(text: str) -> int:
    return len(text.split())
