"""Scripted model: writes what a script says, for tests and for demonstrations without a language model."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from cotrail.core.asking import OPENING, YES_OR_NO
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import GenerationRequest, Interrupted
from cotrail.core.results import Generated
from cotrail.core.titles import title_question
from cotrail.engines.language_models.packing import pack
from cotrail.engines.language_models.probabilities import check_fits, shares
from cotrail.engines.model_identity import model_identity
from cotrail.engines.script_files import read_script, script_digest
from cotrail.errors import StepError, TransientStepError

FailureKind = Literal["transient", "permanent", "empty"]
"""Failure of a step at every attempt: TransientStepError, StepError, or an empty text."""

Weight = Annotated[float, Meta(gt=0)]

_QUESTION, _NUMBER = "<question>", 0
_TITLE_QUESTION = re.compile(
    re.escape(title_question(_QUESTION, _NUMBER)).replace(_QUESTION, "(.*)").replace(str(_NUMBER), r"\d+") + r"\Z",
    re.DOTALL,
)
"""A prompt that asks for titles. The question between its quotation marks may contain quotation marks itself."""


class ScriptedQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The output for one question: its chain, sentence by sentence, and its answer.

    titles: the output where pages are asked for (see `title_question`); none unless given.
    samples: the chains of several samples, repeated where there are too few; the sentences and the answer unless given.
    answers: the output in the answer's place under a paragraph, by its text.
    The last three were added later: unset, they aren't part of the digest, so that older scripts keep theirs.
    """

    sentences: tuple[str, ...] = ()
    answer: str
    titles: tuple[str, ...] | UnsetType = UNSET
    samples: tuple[str, ...] | UnsetType = UNSET
    answers: dict[str, str] | UnsetType = UNSET

    @property
    def conclusion(self) -> str:
        """The sentence that states the answer."""
        return f"{OPENING}: {self.answer}."

    def sample(self, number: int) -> str:
        """The sampled chain of that number, from 0."""
        chains = self.samples or (" ".join((*self.sentences, self.conclusion)),)
        return chains[number % len(chains)]

    def answer_from(self, paragraphs: tuple[Paragraph, ...]) -> str:
        """The answer under these paragraphs: that of the last one that has its own, otherwise the question's."""
        answers = self.answers or {}
        return next((answers[each.text] for each in reversed(paragraphs) if each.text in answers), self.answer)


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    default: for questions that the script doesn't contain; without it they fail.
    context: words that a prompt and its continuation may take together.
    failures: by question and step; a step is a sentence's number from "0", "sample 0", "answer" or "titles".
    probabilities: weights of the choices by a piece of text, of which the longest in the prompt counts; "" is in every
        prompt. Without any, all choices are equally likely. Unset, they aren't part of the digest.
    """

    name: str
    questions: dict[str, ScriptedQuestion]
    default: ScriptedQuestion | None = None
    context: int = 100_000
    failures: dict[str, dict[str, FailureKind]] = {}
    probabilities: dict[str, tuple[Weight, ...]] | UnsetType = UNSET

    @property
    def digest(self) -> str:
        """The SHA-256 of the script's content, however its file is laid out."""
        return script_digest(self)


class ScriptedModel:
    """Writes what the script has for a prompt's question. A token is a word.

    source: a script, its file, or a mapping of the same content.
    name: the identity's name, otherwise the script's.
    """

    def __init__(self, source: Script | Path | Mapping[str, object], name: str | None = None) -> None:
        self._script = read_script(source, Script)
        self._identity = model_identity(name or self._script.name, self._script.digest)
        self._interrupted = Event()

    @property
    def identity(self) -> str:
        """See `LanguageModel`."""
        return self._identity

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        """See `LanguageModel`."""
        if self._interrupted.is_set() or (cancellation and cancellation.cancelled):
            raise Interrupted
        packed = pack(request.prompt, _words, self._script.context, request.max_tokens)
        text = self._line(request)
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
            seed=None if request.sampling.sample is None else request.sampling.seed,
        )

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """See `LanguageModel`."""
        if self._interrupted.is_set():
            raise Interrupted
        check_fits(_words(text) + 1, self._script.context)
        weights = self._weights(text, len(choices))
        if len(weights) != len(choices):
            raise StepError(f"{self._script.name} has {len(weights)} probabilities for {len(choices)} choices")
        return shares(weights)

    def interrupt(self) -> None:
        """See `LanguageModel`."""
        self._interrupted.set()

    def _line(self, request: GenerationRequest) -> str:
        prompt, until, sample = request.prompt, request.until, request.sampling.sample
        written = len(prompt.sentences)
        titles = _TITLE_QUESTION.search(prompt.question) if until == "line" else None
        question = self._question(titles[1] if titles else prompt.question)
        if sample is not None:
            step = f"sample {sample}"
        else:
            step = "titles" if titles else str(written) if until == "sentence" else "answer"
        if self._fails(question, step):
            return ""
        script = self._script.questions.get(question, self._script.default)
        if script is None:
            raise StepError(f"the script {self._script.name} has no question {question!r} and no default")
        if titles:
            return json.dumps(script.titles or (), ensure_ascii=False)
        if sample is not None:
            return script.sample(sample)
        if until != "sentence":
            return script.answer_from(prompt.paragraphs)
        return script.sentences[written] if written < len(script.sentences) else script.conclusion

    def _weights(self, text: str, count: int) -> Sequence[float]:
        table = self._script.probabilities or {}
        held = [piece for piece in table if piece in text]
        return table[max(held, key=lambda piece: (len(piece), piece))] if held else [1.0] * count

    def _question(self, asked: str) -> str:
        """The question itself: instructions, as for Flan-T5, stand on the lines before it, and a prefix on its line."""
        parts = asked.split("\n")
        endings = ["\n".join(parts[start:]) for start in range(len(parts))]
        # A question may have several lines itself, so any ending of the prompt that the script knows counts.
        endings += [ending.removeprefix(YES_OR_NO) for ending in endings]
        return next((ending for ending in endings if ending in self._script.questions), parts[-1])

    def _fails(self, question: str, step: str) -> bool:
        """Return whether an empty text is written; raises the errors that the script has for the step."""
        message = f"the script {self._script.name} says so for {question!r}, step {step}"
        match self._script.failures.get(question, {}).get(step):
            case "transient":
                raise TransientStepError(message)
            case "permanent":
                raise StepError(message)
            case "empty":
                return True
        return False


def _words(text: str) -> int:
    return len(text.split())
