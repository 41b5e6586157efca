"""A model that writes what a script says: for tests, and to show the machinery without a language model."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from cotrail.core.auxiliary_questions import OPENING, YES_OR_NO
from cotrail.core.generation import Sampling, Until
from cotrail.core.page_titles import title_question
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.cancellation import Cancellation
from cotrail.core.ports.language_model import Interrupted
from cotrail.core.prompts import Prompt
from cotrail.core.results import Generated
from cotrail.engines.identity import model_identity
from cotrail.engines.language_models.choices import check_fits, shares
from cotrail.engines.language_models.packing import pack
from cotrail.engines.scripts import read_script, script_digest
from cotrail.errors import StepError, TransientStepError

FailureKind = Literal["transient", "permanent", "empty"]
"""TransientStepError, StepError, or that nothing is written; each at every try."""

Weight = Annotated[float, Meta(gt=0)]

_QUESTION, _NUMBER = "<question>", 0
_TITLE_QUESTION = re.compile(
    re.escape(title_question(_QUESTION, _NUMBER)).replace(_QUESTION, "(.*)").replace(str(_NUMBER), r"\d+") + r"\Z",
    re.DOTALL,
)
"""A prompt that asks for titles; what the quotation marks hold may have some of its own."""


class ScriptedQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is written for one question: its chain, sentence by sentence, and its answer.

    titles: what is written where pages are asked for (see `title_question`); none unless given.
    samples: the chains that are written where several are drawn, from the first on again where there are too few; the
        sentences and the answer unless given.
    answers: what is written in the answer's place under a paragraph, by its text.
    Left unset, the last three are no part of the digest, which they came later than.
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
        """The answer under these paragraphs, of which the last one counts that has an answer of its own."""
        answers = self.answers or {}
        return next((answers[each.text] for each in reversed(paragraphs) if each.text in answers), self.answer)


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    default: for questions that the script doesn't know; without it they fail.
    context: how many words a prompt and its continuation may take together.
    failures: by question and step, the step being a sentence's number, from "0", "sample 0", "answer" or "titles".
    probabilities: what choices are weighed by where their text holds a piece, the longest one that it holds; "" is in
        every text. All choices are alike where there is none. Left unset, they are no part of the digest.
    """

    name: str
    questions: dict[str, ScriptedQuestion]
    default: ScriptedQuestion | None = None
    context: int = 100_000
    failures: dict[str, dict[str, FailureKind]] = {}
    probabilities: dict[str, tuple[Weight, ...]] | UnsetType = UNSET

    @property
    def digest(self) -> str:
        """The SHA-256 of everything that the script says, however its file is laid out."""
        return script_digest(self)


class ScriptedGenerator:
    """Writes, for each prompt, what the script has for its question; a token is a word.

    source: a script, its file, or the same content as a mapping.
    name: what the identity calls it, else the script does.
    """

    def __init__(self, source: Script | Path | Mapping[str, object], name: str | None = None) -> None:
        self._script = read_script(source, Script)
        self._identity = model_identity(name or self._script.name, self._script.digest)
        self._interrupted = Event()

    @property
    def identity(self) -> str:
        """See `Generator`."""
        return self._identity

    def generate(
        self,
        prompt: Prompt,
        until: Until,
        max_tokens: int,
        sampling: Sampling,
        cancellation: Cancellation | None = None,
    ) -> Generated:
        """See `Generator`."""
        if self._interrupted.is_set() or (cancellation and cancellation.cancelled):
            raise Interrupted
        packed = pack(prompt, _words, self._script.context, max_tokens)
        text = self._line(prompt, until, sampling.sample)
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
            seed=None if sampling.sample is None else sampling.seed,
        )

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        """See `Generator`."""
        if self._interrupted.is_set():
            raise Interrupted
        check_fits(_words(text) + 1, self._script.context)
        weights = self._weights(text, len(choices))
        if len(weights) != len(choices):
            raise StepError(f"{self._script.name} has {len(weights)} probabilities for {len(choices)} choices")
        return shares(weights)

    def interrupt(self) -> None:
        """See `Generator`."""
        self._interrupted.set()

    def _line(self, prompt: Prompt, until: Until, sample: int | None) -> str:
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
        """The question itself: instructions, as for Flan, stand on lines before it, and a prefix in its line."""
        parts = asked.split("\n")
        endings = ["\n".join(parts[start:]) for start in range(len(parts))]
        endings += [ending.removeprefix(YES_OR_NO) for ending in endings]
        return next((ending for ending in endings if ending in self._script.questions), parts[-1])

    def _fails(self, question: str, step: str) -> bool:
        """Whether nothing is written there; raises the errors that the script has for the step."""
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
