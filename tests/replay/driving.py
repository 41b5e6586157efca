"""Drivers of systems in a made-up world: straight through, and as the store does it."""

from collections.abc import Callable, Mapping
from hashlib import sha256

import msgspec

from cotrail.core.actions.embed import Embed, Rate
from cotrail.core.actions.entail import Entail, Extract
from cotrail.core.actions.generate import Prompted, check_form, generation_request
from cotrail.core.actions.registry import fingerprint, kind_of
from cotrail.core.actions.retrieve import Lookup, Open, Retrieve
from cotrail.core.binding import Binding
from cotrail.core.history import Failed, Finished, Next, Outcome, Recorded
from cotrail.core.ports.language_model import LanguageModel
from cotrail.core.questions import Hit, Paragraph
from cotrail.core.replay import advance
from cotrail.core.results import Embedded, Entailed, Extracted, Failure, Rated, Retrieved
from cotrail.core.system import Action, StepFailed, System, Together

BINDING = Binding(model="scripted@1", profile="fast", temperature=0.0, seed=0, corpora={"sample": "sample@1"})
FAILURE = Failure(type="StepError", message="it can't be done")

Trace = list[tuple[Action, Outcome]]
World = Callable[[Action], Outcome]


def search(query: str) -> Retrieve:
    return Retrieve(query=query, count=2)


def found(*titles: str) -> Retrieved:
    hits = (
        Hit(paragraph=Paragraph(id=title, title=title, text=f"On {title}."), rank=rank, score=1 / rank)
        for rank, title in enumerate(titles, start=1)
    )
    return Retrieved(hits=tuple(hits))


def found_paragraphs(*paragraphs: Paragraph) -> Retrieved:
    hits = (Hit(paragraph=each, rank=rank, score=1 / rank) for rank, each in enumerate(paragraphs, start=1))
    return Retrieved(hits=tuple(hits))


class MadeUp:
    """A world in which a script writes, searches find given paragraphs, and scores are pseudo-random.

    found: what a search or a look-up finds by its text, or a page has by its title; otherwise paragraphs of its words.
    similar, entailed: scores of a pair of texts, the paragraph's or premise's first.
    """

    def __init__(
        self,
        model: LanguageModel,
        found: Mapping[str, tuple[Paragraph, ...]] | None = None,
        similar: Mapping[tuple[str, str], float] | None = None,
        entailed: Mapping[tuple[str, str], tuple[float, float]] | None = None,
    ) -> None:
        self.model = model
        self.found: Mapping[str, tuple[Paragraph, ...]] = found or {}
        self.similar: Mapping[tuple[str, str], float] = similar or {}
        self.entailed: Mapping[tuple[str, str], tuple[float, float]] = entailed or {}

    def __call__(self, action: Action) -> Outcome:
        match action:
            case Retrieve():
                return self._find(action.query, action.count)
            case Lookup():
                return self._find(action.text, 2)
            case Embed():
                return Embedded(
                    similarities=tuple(
                        tuple(self._similarity(text, sentence) for text in _compared(action))
                        for sentence in action.sentences
                    )
                )
            case Entail():
                return self._entailment(action.premise.text, action.hypothesis)
            case Extract():
                end = action.paragraph.text.find(" ")
                text, confidence = (
                    action.paragraph.text[: max(end, 0)],
                    4 * _share(action.question, action.paragraph.text),
                )
                return Extracted(text=text, confidence=confidence, start=0, end=len(text))
            case Rate():
                others = (*action.others, *(each.text for each in action.paragraphs))
                return Rated(scores=tuple(_share(action.text, each) for each in others))
            case Open():
                return self._find(action.title, 1) if action.title in self.found else found(action.title)
        assert isinstance(action, Prompted)
        try:
            return check_form(action, self.model.generate(generation_request(action, BINDING)))
        except Exception as error:  # noqa: BLE001 - as a worker does
            return Failure(type=type(error).__name__, message=str(error))

    def _find(self, query: str, count: int) -> Retrieved:
        if query in self.found:
            return found_paragraphs(*self.found[query])
        return found(*(f"{word} {count}" for word in sorted(set(query.split()))))

    def _similarity(self, text: str, sentence: str) -> float:
        return self.similar.get((text, sentence), 1.0 if text == sentence else _share(text, sentence))

    def _entailment(self, premise: str, hypothesis: str) -> Entailed:
        drawn = _share(premise, hypothesis)
        entailment, contradiction = self.entailed.get((premise, hypothesis), (drawn, (1 - drawn) / 2))
        return Entailed(entailment=entailment, neutral=1 - entailment - contradiction, contradiction=contradiction)


def _compared(action: Embed) -> tuple[str, ...]:
    return tuple(paragraph.text for paragraph in action.paragraphs) or action.sentences


def _share(*texts: str) -> float:
    """From 0 to 1, the same for the same texts in any order."""
    return sha256("\0".join(sorted(texts)).encode()).digest()[0] / 255


def record(action: Action, outcome: Outcome | None = None, unreadable: str | None = None) -> Recorded:
    return Recorded(
        kind=kind_of(action).name, fingerprint=fingerprint(action, BINDING), outcome=outcome, unreadable=unreadable
    )


def live(system: System, world: World) -> tuple[Trace, Finished | Failed]:
    """Drives a system straight through, without the driver."""
    trace: Trace = []
    reply: Callable[[], Action | Together] = lambda: next(system)  # noqa: E731
    while True:
        try:
            yielded = reply()
        except StopIteration as stop:
            return trace, Finished(stop.value)
        except StepFailed as failed:
            return trace, Failed(failed.failure)
        actions = yielded.actions if isinstance(yielded, Together) else (yielded,)
        outcomes = tuple(world(action) for action in actions)
        trace += zip(actions, outcomes, strict=True)
        failures = [outcome for outcome in outcomes if isinstance(outcome, Failure)]
        if failures:
            thrown = StepFailed(failures[0], outcomes)
            reply = lambda f=thrown: system.throw(f)  # type: ignore[misc]  # noqa: E731
        else:
            sent = outcomes if isinstance(yielded, Together) else outcomes[0]
            reply = lambda s=sent: system.send(s)  # type: ignore[misc]  # noqa: E731


def replayed(system: Callable[[], System], world: World) -> tuple[Trace, Finished | Failed]:
    """Drives a system as the store does: a replay after each batch of results, which have passed through JSON."""
    trace: Trace = []
    while True:
        history = [record(action, outcome) for action, outcome in trace]
        following = advance(system, history, BINDING)
        if not isinstance(following, Next):
            return trace, following
        for step in following.steps:
            outcome = world(step.action)
            stored = msgspec.json.decode(msgspec.json.encode(outcome), type=type(outcome))
            trace.append((step.action, stored))
