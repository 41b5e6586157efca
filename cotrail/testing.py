"""For tests of systems of one's own: a system carried out on scripted searches and texts, and whether it is pure.

A system is pure where the same results lead to the same actions; runs are continued and audited by asking it again.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.core.actions.generate import Prompted
from cotrail.core.actions.registry import kind_of
from cotrail.core.actions.retrieve import Open, Retrieve
from cotrail.core.binding import Binding
from cotrail.core.history import Failed, Finished, Next, Outcome, Recorded, Step
from cotrail.core.questions import Hit, Paragraph, Question, paragraphs_of
from cotrail.core.replay import advance
from cotrail.core.results import Failure, Generated, Result, Retrieved
from cotrail.core.system import Action, Answer
from cotrail.errors import InputError, ReplayMismatchError
from cotrail.systems.own import system as made
from cotrail.systems.spec import SystemSpec

BINDING = Binding(model="scripted@1", profile="deterministic", temperature=0.0, seed=0, corpora={"scripted": "1"})

Found = Sequence[Mapping[str, str] | Paragraph]
Search = Mapping[str, Found] | Callable[[str], Found]
"""What a query, or a title that is opened, finds; of a mapping, nothing for one that it lacks."""

Writes = Sequence[str] | Callable[[str], str]
"""What the model writes: texts one after another, or one for each prompt."""

Others = Callable[[Action], Result | Failure]
"""The results of all other actions, and failures where they are to be tried."""


class Transcript(Struct, frozen=True, kw_only=True):
    """What a system asked for, what it got, and how it ended: its answer, or the failure that it didn't catch."""

    actions: tuple[Action, ...]
    outcomes: tuple[Outcome, ...]
    answer: Answer | None
    failure: Failure | None = None

    @property
    def queries(self) -> list[str]:
        """What was searched for."""
        return [each.query for each in self.actions if isinstance(each, Retrieve)]

    @property
    def prompts(self) -> list[str]:
        """What the model was shown."""
        return [each.prompt.render() for each in self.actions if isinstance(each, Prompted)]


def carried_out(
    system: SystemSpec | Callable[..., Any],
    question: str | Question,
    *,
    search: Search = MappingProxyType({}),
    writes: Writes = (),
    others: Others | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
    most_steps: int = 1_000,
) -> Transcript:
    """Carry out a system on scripted results, and check that it is pure as it goes.

    Raises InputError where the script lacks a text or a result, or the system doesn't end, ReplayMismatchError where it
    isn't pure, and SystemBrokenError where its code raises an error.
    """
    spec = system if isinstance(system, SystemSpec) else made(system)
    asked = Question(id="q", text=question) if isinstance(question, str) else question
    script, given = _Script(search, writes, others), msgspec.convert(dict(settings), spec.settings)
    history: list[Recorded] = []
    steps: list[Step] = []
    while isinstance(following := _asked(spec, asked, given, history), Next):
        if len(history) + len(following.steps) > most_steps:
            raise InputError(f"the system asks for more than {most_steps} steps; let it end, or allow `most_steps`")
        for step in following.steps:
            outcome = script.outcome(step.action)
            history.append(Recorded(kind=kind_of(step.action).name, fingerprint=step.fingerprint, outcome=outcome))
            steps.append(step)
    if _asked(spec, asked, given, history, "again") != following:
        raise ReplayMismatchError(len(history), f"{following}", "another end")
    return Transcript(
        actions=tuple(step.action for step in steps),
        outcomes=tuple(each.outcome for each in history if each.outcome is not None),
        answer=following.answer if isinstance(following, Finished) else None,
        failure=following.failure if isinstance(following, Failed) else None,
    )


def _asked(
    spec: SystemSpec, question: Question, settings: Struct, history: Sequence[Recorded], luck: str = ""
) -> Next | Finished | Failed:
    """What follows from the record, from the beginning each time, as workers do it, and with other luck."""
    random.seed(f"{len(history)}{luck}")
    return advance(lambda: spec.open(question, {}, settings), history, BINDING)


class _Script:
    """Answers actions."""

    def __init__(self, search: Search, writes: Writes, others: Others | None) -> None:
        self._search = search
        self._writes = writes
        self._others = others
        self._written = 0

    def outcome(self, action: Action) -> Outcome:
        match action:
            case Retrieve():
                return self._found(action.query, action.count)
            case Open():
                return self._found(action.title, None)
            case Prompted():
                return self._generated(action)
        if self._others is None:
            raise InputError(f"the system asks for {type(action).__name__}: give `others`, which returns its result")
        return self._others(action)

    def _found(self, query: str, count: int | None) -> Retrieved:
        given = self._search(query) if callable(self._search) else self._search.get(query, ())
        paragraphs = paragraphs_of(given)[:count]
        hits = (Hit(paragraph=each, rank=rank, score=1 / rank) for rank, each in enumerate(paragraphs, start=1))
        return Retrieved(hits=tuple(hits))

    def _generated(self, action: Prompted) -> Generated:
        prompt = action.prompt.render()
        if callable(self._writes):
            text = self._writes(prompt)
        elif self._written < len(self._writes):
            text = self._writes[self._written]
            self._written += 1
        else:
            raise InputError(f"the script has no text for prompt {self._written + 1}, which ends in {prompt[-80:]!r}")
        tokens = len(text.split())
        return Generated(
            text=text,
            raw=text,
            demonstrations=0,
            paragraphs=0,
            prompt_digest=action.prompt.digest,
            prompt_tokens=len(prompt.split()),
            cached_prompt_tokens=0,
            generated_tokens=tokens,
            ended="until",
        )
