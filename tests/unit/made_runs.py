"""Runs, questions and steps as a store would give them, for the tests of pages."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.registry import kind_of
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.prompts import Prompt, plain
from cotrail.core.questions import GoldParagraph, Hit, Paragraph
from cotrail.core.results import Generated, Result, Retrieved
from cotrail.core.system import Action
from cotrail.faithfulness.weighing import ChosenFact, WeighedChain, WeighedPrediction, WeighedSentence, Weighing
from cotrail.models.queries.progress import Progress
from cotrail.models.queries.runs import RunRecord, no_questions
from cotrail.models.queries.traces import Collected, TracedQuestion, TracedStep

OWLS = Paragraph(id="o", title="Owls", text="Owls hunt at night.")
NAMELESS = Paragraph(id="n", title="", text="A hen lays eggs.")


def record(system: str = "ircot", **fields: Any) -> RunRecord:
    """A run on questions of one's own; its digests have 64 different digits."""
    told = {
        "id": "run-1",
        "created_at": datetime(2026, 1, 2, tzinfo=UTC),
        "experiment_id": None,
        "cell": None,
        "reuse": False,
        "desired_state": "active",
        "priority": 0,
        "batched": False,
        "size": 1,
        "origin": None,
        "forked_at": None,
        "system": system,
        "system_version": 1,
        "settings": {"retrieval": {"count": 4}},
        "dataset": "jsonl",
        "corpus": "birds",
        "corpus_revision": "a1" * 32,
        "knowledge": {},
        "model_name": "tiny",
        "model": f"tiny@{'b2' * 32}",
        "embedder_name": "",
        "embedder": "",
        "entailer_name": "",
        "entailer": "",
        "profile": "deterministic",
        "temperature": 0.0,
        "seed": 17,
        "demonstrations": {},
        "provenance": {"cotrail": "0", "python": "3", "files": {"questions": {"path": "q.jsonl", "sha256": "c3" * 32}}},
        "opened": "d4" * 32,
        "digest": "e5" * 32,
    }
    return msgspec.convert(told | fields, RunRecord)


def progress(questions: Sequence[TracedQuestion]) -> Progress:
    """The progress of a run of these questions."""
    counts = no_questions()
    for each in questions:
        counts[each.status] += 1
    return Progress(run="run-1", desired_state="active", questions=counts, kinds=(), seconds=1.0)


def step(sequence: int, action: Action, result: Result | None = None, **fields: Any) -> TracedStep:
    """A step, which is finished unless the fields say otherwise."""
    told: dict[str, Any] = {"state": "finished", "worker": None, "attempts": 1, "milliseconds": 1.0, **fields}
    return TracedStep(sequence=sequence, kind=kind_of(action).name, action=action, result=result, **told)


def search(sequence: int, *found: Paragraph, query: str = "birds", action: Action | None = None) -> TracedStep:
    """A search that found these paragraphs."""
    hits = tuple(Hit(paragraph=each, rank=rank, score=2.5) for rank, each in enumerate(found, start=1))
    return step(sequence, action or Retrieve(query=query, count=4), Retrieved(hits=hits))


def written(sequence: int, text: str, **fields: Any) -> TracedStep:
    """A sentence or an answer that a model wrote."""
    generated = Generated(
        text=text,
        raw=text,
        prompt_tokens=20,
        generated_tokens=5,
        cached_prompt_tokens=0,
        prompt_digest="",
        demonstrations=0,
        paragraphs=0,
    )
    action = Reason(prompt=Prompt(turns=(plain("Do owls hunt?"),)), max_tokens=9)
    return step(sequence, action, generated, **fields)


def question(key: str = "q1", **fields: Any) -> TracedQuestion:
    """A question that found its gold paragraph about owls and was answered `yes`, rightly."""
    collected = (Collected(paragraph=OWLS, step=0, query="birds", rank=1, score=2.5),)
    told: dict[str, Any] = {
        "key": key,
        "text": "Do owls hunt at night?",
        "answers": ("yes",),
        "gold": (GoldParagraph(title=OWLS.title, text=OWLS.text),),
        "pinned": None,
        "kinds": {},
        "status": "finished",
        "answer": "yes",
        "reason": None,
        "sentences": (),
        "collected": collected,
        "steps": (search(0, OWLS), written(1, "Owls hunt at night.")),
    }
    return TracedQuestion(**told | fields)


def weighing(*, function: int = 1, facts: bool = False) -> Weighing:
    """Two chains: the first says no and nothing supports it, the second says yes, which the one on owls entails."""
    return Weighing(
        function=function,
        chains=(
            _chain(0, "no", "Owls sleep at night.", None, (-1.0, 0.0, 0.0, -1.0)),
            _chain(1, "yes", "Owls are awake at night.", OWLS.digest, (0.81, 0.92, 0.03, 0.78)),
        ),
        predictions=(
            WeighedPrediction(prediction="yes", weight=0.78, chains=(1,)),
            WeighedPrediction(prediction="no", weight=-1.0, chains=(0,)),
        ),
        chosen=1,
        facts=(
            ChosenFact(
                text="Hens lay eggs.",
                replaces="Hens fly.",
                origin="generated",
                evidence=NAMELESS.digest,
                entailment=0.66,
                contradiction=0.11,
            ),
        )
        if facts
        else (),
    )


def _chain(
    number: int, prediction: str, text: str, evidence: str | None, scores: tuple[float, float, float, float]
) -> WeighedChain:
    names = ("similarity", "entailment", "contradiction", "score")
    sentence = WeighedSentence(text=text, evidence=evidence, **dict(zip(names, scores, strict=True)))
    return WeighedChain(
        number=number,
        text=f"{text} So the answer is {prediction}.",
        prediction=prediction,
        faithfulness=scores[-1],
        sentences=(sentence,),
    )
