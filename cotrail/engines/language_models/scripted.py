"""Scripted model: writes what a script says, for tests and for demonstrations without a language model."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from threading import Event
from typing import Annotated, ClassVar, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from cotrail.common.optional_packages import Library
from cotrail.core.answer_extraction import OPENING, YES_OR_NO
from cotrail.core.calls import Call, split_calls
from cotrail.core.generation import Capability, Ended, before_stop
from cotrail.core.ports.cancellation import Cancellation, Interrupted
from cotrail.core.ports.language_model import GenerationRequest, LanguageModel, Profile
from cotrail.core.prompts import Prompt, Text, Written
from cotrail.core.questions import Paragraph, title_question
from cotrail.core.results import Generated
from cotrail.engines.language_models.packing import pack
from cotrail.engines.language_models.result import check_fits, generated, shares
from cotrail.engines.language_models.stop_conditions import kept, stop_condition, why_ended
from cotrail.engines.language_models.token_counts import TokenCounts, count_words
from cotrail.engines.model_folders import model_identity
from cotrail.engines.script_files import read_script, script_digest
from cotrail.errors import InputError, StepError, TransientStepError

FailureKind = Literal["transient", "permanent", "empty"]
"""Failure of a step at every attempt: TransientStepError, StepError, or an empty text."""

Weight = Annotated[float, Meta(gt=0)]
Confidence = Annotated[float, Meta(gt=0, le=1)]

Messages = Annotated[tuple[str, ...], Meta(min_length=1)]

CONFIDENCE = 0.99
"""Probability of each token where a script gives none."""

_TOKEN = re.compile(r"\s*\S+|\s+")
"""A token: a word with the white space before it. All tokens of a text, joined, are the text."""

_QUESTION, _NUMBER = "<question>", 0
_BEFORE, _AFTER = re.escape(title_question(_QUESTION, _NUMBER)).replace(str(_NUMBER), r"\d+").split(_QUESTION)
_TITLE_QUESTION = re.compile(rf"\A(?>.*?{_BEFORE})(.*){_AFTER}\Z", re.DOTALL)
"""A prompt that asks for titles. The question between its quotation marks may contain quotation marks itself."""


class ScriptedQuestion(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The output for one question: its chain, sentence by sentence, and its answer.

    A conversation gets the messages instead. One about a question without messages gets the whole chain, or the answer
    where there are no sentences. A question that a system asks on the way is a question of its own.

    titles: the output where pages are asked for (see `title_question`); none unless given.
    samples: the chains of several samples, repeated where there are too few; the sentences and the answer unless given.
        A sample of a conversation may have several messages, of which the last is repeated as below.
    answers: the output in the answer's place under a paragraph, by its text.
    messages: the output in a conversation, in the order of the model's messages; the last one again where there are too
        few. Calls of tools are written as `split_calls` reads them.
    confidence: the probability of each token, where it is asked for; `CONFIDENCE` unless given.
    All but the first two were added later: unset, they aren't part of the digest, so that older scripts keep theirs.
    """

    sentences: tuple[str, ...] = ()
    answer: str
    titles: tuple[str, ...] | UnsetType = UNSET
    samples: tuple[str | Messages, ...] | UnsetType = UNSET
    answers: dict[str, str] | UnsetType = UNSET
    messages: tuple[str, ...] | UnsetType = UNSET
    confidence: Confidence | UnsetType = UNSET

    @property
    def conclusion(self) -> str:
        """The sentence that states the answer."""
        return f"{OPENING}: {self.answer}."

    @property
    def chain(self) -> str:
        """The whole chain of thought."""
        return " ".join((*self.sentences, self.conclusion))

    def sample(self, number: int, message: int) -> str:
        """The sampled chain of that number, from 0, or its message of that number."""
        chains = self.samples or (self.chain,)
        chain = chains[number % len(chains)]
        return chain if isinstance(chain, str) else _at(message, chain)

    def message(self, number: int, paragraphs: tuple[Paragraph, ...]) -> str:
        """The model's message of that number, from 0, in a conversation that shows these paragraphs."""
        if self.messages:
            return _at(number, self.messages)
        return self.chain if self.sentences else self.answer_from(paragraphs)

    def scored(self, text: str) -> tuple[tuple[str, float], ...]:
        """The tokens of a text with their log probabilities."""
        probability = math.log(self.confidence or CONFIDENCE)
        return tuple((token, probability) for token in _TOKEN.findall(text))

    def answer_from(self, paragraphs: tuple[Paragraph, ...]) -> str:
        """The answer under these paragraphs: that of the last one that has its own, otherwise the question's."""
        answers = self.answers or {}
        return next((answers[each.text] for each in reversed(paragraphs) if each.text in answers), self.answer)


class Script(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a script file.

    default: for questions that the script doesn't contain; without it they fail.
    context: words that a prompt and its continuation may take together.
    failures: by question and step; a step is a sentence's number from "0", "sample 0", "message 0", "answer" or
        "titles".
    probabilities: weights of the choices by a piece of text, of which the longest in the prompt counts; "" is in every
        prompt. Without any, all choices are equally likely. Unset, they aren't part of the digest.
    """

    name: str
    questions: dict[str, ScriptedQuestion]
    default: ScriptedQuestion | None = None
    context: int = 100_000
    failures: dict[str, dict[str, FailureKind]] = {}
    probabilities: dict[str, tuple[Weight, ...]] | UnsetType = UNSET


class ScriptedModel:
    """Writes what the script has for a prompt's question; see `LanguageModel`. A token is a word.

    source: a script, its file, or a mapping of the same content.
    name: the identity's name, otherwise the script's.
    """

    def __init__(self, source: Script | Path | Mapping[str, object], name: str | None = None) -> None:
        self._script = read_script(source, Script)
        self.identity = model_identity(name or self._script.name, script_digest(self._script))
        self._interrupted = Event()

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:
        if self._interrupted.is_set() or (cancellation and cancellation.cancelled):
            raise Interrupted
        packed = pack(request.prompt, count_words, self._script.context, request.max_tokens)
        question, step = self._question(request), _step(request)
        script = self._script.questions.get(question, self._script.default)
        line = "" if self._fails(question, step) else self._line(request, question, script)
        text, raw, ended, stop = _ending(line, request)
        if cancellation and cancellation.listener:
            for written in accumulate(_TOKEN.findall(text)):
                cancellation.listener(written, "")
        outside, calls = split_calls(text) if packed.tools else (text, ())
        return Generated(
            text=outside,
            raw=raw,
            ended="calls" if calls else ended,
            stop="" if calls else stop,
            calls=calls,
            tokens=script.scored(raw) if request.scored and script else (),
            demonstrations=len(packed.demonstrations.items),
            paragraphs=len(packed.yielding),
            first_demonstration=packed.first_demonstration,
            cuts=packed.cuts,
            prompt_digest=packed.digest,
            prompt_tokens=count_words(packed.render()),
            cached_prompt_tokens=0,
            generated_tokens=count_words(text),
            seed=None if request.sampling.sample is None else request.sampling.seed,
        )

    def probabilities(self, text: str, choices: Sequence[str]) -> tuple[float, ...]:
        if self._interrupted.is_set():
            raise Interrupted
        check_fits(count_words(text) + 1, self._script.context)
        weights = self._weights(text, len(choices))
        if len(weights) != len(choices):
            raise StepError(f"{self._script.name} has {len(weights)} probabilities for {len(choices)} choices")
        return shares(weights)

    def interrupt(self) -> None:
        self._interrupted.set()

    def _line(self, request: GenerationRequest, question: str, script: ScriptedQuestion | None) -> str:
        prompt, until, sample = request.prompt, request.until, request.sampling.sample
        if script is None:
            raise StepError(f"the script {self._script.name} has no question {question!r} and no default")
        if _asked_for_titles(request):
            return json.dumps(script.titles or (), ensure_ascii=False)
        if sample is not None:
            return script.sample(sample, _messages(prompt))
        if _is_message(request):
            return script.message(_messages(prompt), prompt.paragraphs)
        if until != "sentence":
            return script.answer_from(prompt.paragraphs)
        position = len(prompt.written)
        return script.sentences[position] if position < len(script.sentences) else script.conclusion

    def _weights(self, text: str, count: int) -> Sequence[float]:
        table = self._script.probabilities or {}
        held = [piece for piece in table if piece in text]
        return table[max(held, key=lambda piece: (len(piece), piece))] if held else [1.0] * count

    def _question(self, request: GenerationRequest) -> str:
        prompt, titles = request.prompt, _asked_for_titles(request)
        if question_text := titles[1] if titles else prompt.question:
            return self._without_instruction(question_text)
        own_words = "\n".join(piece.text for piece in prompt.pieces if isinstance(piece, Text))
        # The longest, since a short question may be a part of another one.
        candidates = [question for question in self._script.questions if question in own_words]
        return max(candidates, key=lambda question: (len(question), question), default="")

    def _without_instruction(self, question: str) -> str:
        """The question itself: instructions, as for Flan-T5, stand on the lines before it, and a prefix on its line."""
        parts = question.split("\n")
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


def _step(request: GenerationRequest) -> str:
    if request.sampling.sample is not None:
        return f"sample {request.sampling.sample}"
    if _asked_for_titles(request):
        return "titles"
    if _is_message(request):
        return f"message {_messages(request.prompt)}"
    return str(len(request.prompt.written)) if request.until == "sentence" else "answer"


def _asked_for_titles(request: GenerationRequest) -> re.Match[str] | None:
    return _TITLE_QUESTION.search(request.prompt.question) if request.until == "line" else None


def _is_message(request: GenerationRequest) -> bool:
    """Return whether it is part of a conversation, which may be laid out as plain text with stop strings."""
    return request.prompt.has_roles or request.until == "stop"


def _messages(prompt: Prompt) -> int:
    return sum(isinstance(piece, Written) for piece in prompt.pieces)


def _ending(line: str, request: GenerationRequest) -> tuple[str, str, Ended, str]:
    """What is kept of a text, all that was written of it, why it ended, and before which stop string."""
    # Sentences and answers come whole, as the script has them.
    tokens = _TOKEN.findall(line)
    most = request.max_tokens if _is_message(request) else len(tokens)
    raw = "".join(tokens[:most])
    text, stop = before_stop(raw, request.stop)
    if _is_message(request):
        text = kept(text, request.until)
    if stop:
        return text, raw[: raw.index(stop) + len(stop)], "stop", stop
    if _is_message(request) and stop_condition(request.until)(raw):
        return text, raw, "until", ""
    return text, raw, "length" if most < len(tokens) else "end", ""


def _at(number: int, messages: Sequence[str]) -> str:
    return messages[min(number, len(messages) - 1)]


# The model that is being trained (`cotrail.Environment`): a trainer writes its texts, step by step.

POLICY = "policy"

CONTEXT = 10_000_000
"""Words that a prompt may have: the trainer knows its model's context."""


class PolicyModel:
    """Writes what it was given; see `LanguageModel`. Tokens are words, so that their counts are estimates."""

    identity = f"{POLICY}@{'0' * 64}"

    def __init__(self, text: str, calls: tuple[Call, ...] = ()) -> None:
        self._text = text
        self._calls = calls

    def generate(self, request: GenerationRequest, cancellation: Cancellation | None = None) -> Generated:  # noqa: ARG002
        packed = pack(request.prompt, count_words, CONTEXT, request.max_tokens)
        text = kept(self._text, request.until, request.stop)
        ended, stop = why_ended(self._text, request.until, request.stop, "end")
        outside, calls = split_calls(text) if packed.tools and not self._calls else (text, self._calls)
        counts = TokenCounts(count_words(packed.render()), 0, count_words(self._text), estimated=True)
        return generated(packed, outside, self._text, counts, ended, stop, calls)

    def probabilities(self, text: str, choices: object) -> tuple[float, ...]:  # noqa: ARG002
        raise StepError("a model that is being trained writes texts, and says no probabilities; take another system")

    def interrupt(self) -> None:
        """See `LanguageModel`: nothing takes time."""


class Policy(Struct, frozen=True):
    """The engine of that model; see `ModelEngine`."""

    served: ClassVar[bool] = True
    library: ClassVar[Library] = None
    engine_name: ClassVar[str] = POLICY
    location: ClassVar[str] = "the trainer"

    def identity(self, name: str) -> str:  # noqa: ARG002 - the weights change with each step of the training
        return PolicyModel.identity

    def check(self) -> None:
        """See `ModelEngine`."""

    def lacks(self, capability: Capability) -> str | None:
        return "writes texts alone, and no probabilities: take another system" if capability == "scores" else None

    def open(self, name: str, profile: Profile, slots: int) -> LanguageModel:  # noqa: ARG002
        raise InputError(
            "the model policy is the one that a trainer trains, in cotrail.Environment; name another model"
        )
