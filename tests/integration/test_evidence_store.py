"""Steps that look up, compare and judge, and those yielded together, in a real PostgreSQL."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, select

from benchmarks.contenders.cotrail import submission
from cotrail.core.actions.embed import Embed
from cotrail.core.actions.entail import Entail
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.actions.retrieve import Lookup, Retrieve
from cotrail.core.binding import Binding
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.history import Halt, Recorded
from cotrail.core.questions import GoldParagraph, Hit, Paragraph, Question
from cotrail.core.replay import Replay
from cotrail.core.results import Embedded, Entailed, Failure, Generated, Result, Retrieved
from cotrail.core.system import Action, Answer, System, Together
from cotrail.faithfulness.weighing import WeighedChain, WeighedPrediction, WeighedSentence, Weighing
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.traces import read_question
from cotrail.models.records.questions import question_of
from cotrail.models.records.runs import Runs
from cotrail.models.records.steps import Dispatch
from cotrail.models.schema.tables import paragraph_sets, paragraphs, questions, steps
from cotrail.systems.parts.prompting import few_shot_prompt
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import find_spec
from tests.integration.conftest import Query
from tests.integration.stepping import LEASE, unsent

pytestmark = pytest.mark.usefixtures("verified")

FACT = "Aristotle died in 322 BC."
LIVES = Paragraph(id="a", title="Aristotle", text="Aristotle (384-322 BC) was a Greek philosopher.")
MADE = Paragraph(id="made", title="", text="A laptop is a computer.")
KNOWN = Paragraph(id="wordnet:0", title="", text="Laptop is a hyponym of computer.")
HITS = tuple(
    Hit(paragraph=Paragraph(id=str(rank), title=f"Page {rank}", text=f"Text {rank}."), rank=rank, score=1 / rank)
    for rank in range(1, 4)
)


def weighing(evidence: Paragraph) -> Weighing:
    scores = {"similarity": 0.8, "entailment": 0.9, "contradiction": 0.02}
    sentence = WeighedSentence(text=FACT, evidence=evidence.digest, **scores, score=0.78)
    chain = WeighedChain(number=0, text=FACT, prediction="no", faithfulness=0.78, sentences=(sentence,))
    predictions = (WeighedPrediction(prediction="no", weight=0.78, chains=(0,)),)
    return Weighing(function=1, chains=(chain,), predictions=predictions, chosen=0)


def evidential(question: Question, shots: Any, settings: Any) -> System:
    """Three samples and a look-up together, then a comparison with a paragraph of its own, then a judgement."""
    reasons = (
        Reason(
            prompt=few_shot_prompt(demonstrations=Demonstrations(), question=question.text),
            max_tokens=9,
            until="line",
            sample=n,
        )
        for n in range(3)
    )
    found = yield Together((*reasons, Lookup(source="wordnet", text="laptop", other="computer")))
    assert isinstance(found, tuple)
    yield Embed(sentences=(FACT,), paragraphs=(LIVES, MADE, KNOWN))
    yield Entail(premise=LIVES, hypothesis=FACT)
    return Answer(text="no", sentences=(FACT,), paragraphs=(KNOWN,), details=weighing(KNOWN))


SPEC = replace(find_system("rethinking"), open=evidential)
SYSTEM = tuple(SPEC if spec.name == SPEC.name and spec.version == SPEC.version else spec for spec in SYSTEMS)
PLAN = {"system": SPEC.name, "system_version": SPEC.version, "settings": msgspec.to_builtins(SPEC.settings())}
find_evidential = partial(find_spec, SYSTEM)


def result(action: Action) -> Result:
    match action:
        case Lookup():
            return Retrieved(hits=(Hit(paragraph=KNOWN, rank=1, score=1.0),))
        case Embed():
            return Embedded(similarities=((0.8, 0.1, 0.2),))
        case Entail():
            return Entailed(entailment=0.9, neutral=0.08, contradiction=0.02)
        case Retrieve():
            return Retrieved(hits=HITS)
    assert isinstance(action, Reason | Read)
    return Generated(
        text=FACT,
        raw=FACT,
        demonstrations=0,
        paragraphs=0,
        prompt_digest=action.prompt.digest,
        prompt_tokens=9,
        cached_prompt_tokens=0,
        generated_tokens=3,
    )


def done(claim: Claim | None, outcome: Result | Failure | None = None) -> Completion:
    assert claim is not None
    return Completion(claim=claim, outcome=outcome or result(claim.action), milliseconds=1.0)


@pytest.fixture
def ledger(engine: Engine) -> Ledger:
    """A worker that knows the system, and one question that is submitted for it."""
    submit(
        engine, replace(submission(), **PLAN), [Question(id="q", text="Did Aristotle use a laptop?")], find_evidential
    )
    return Ledger(engine, "w", LEASE, find_evidential)


def first(engine: Engine) -> list[Dispatch]:
    return unsent(engine, "reason") + unsent(engine, "lookup")


def test_what_follows_steps_that_were_yielded_together_comes_with_the_last_of_them(
    engine: Engine, ledger: Ledger, query: Query
) -> None:
    messages = first(engine)
    claims = ledger.claim(messages)
    assert [message.kind for message in messages] == ["reason"] * 3 + ["lookup"]
    assert [ledger.commit([done(claim)]) for claim in reversed(claims[1:])] == [[[]]] * 3
    [[following]] = ledger.commit([done(claims[0])])
    assert (following.kind, following.sequence) == ("embed", 4)
    assert len(query(select(steps))) == 5


def test_a_question_is_replayed_once_however_many_steps_it_waits_for(
    engine: Engine, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    replays: list[int] = []
    advance = Replay.advance

    def counted(replay: Replay, history: Sequence[Recorded], halt: Halt | None = None) -> Any:
        replays.append(len(history))
        return advance(replay, history, halt)

    monkeypatch.setattr(Replay, "advance", counted)
    for claim in ledger.claim(first(engine)):
        ledger.commit([done(claim)])
    assert replays == [4]


def test_the_results_of_all_at_once_are_followed_once(engine: Engine, ledger: Ledger) -> None:
    following = ledger.commit([done(claim) for claim in ledger.claim(first(engine))])
    assert [message.kind for messages in following for message in messages] == ["embed"]


def test_a_failure_of_one_of_them_is_told_when_all_have_ended(engine: Engine, ledger: Ledger, query: Query) -> None:
    failed, *others = ledger.claim(first(engine))
    ledger.commit([done(failed, Failure(type="StepError", message="no luck"))])
    assert query(select(questions.c.status)) == [{"status": "open"}]
    ledger.commit([done(claim) for claim in others])
    assert query(select(questions.c.status)) == [{"status": "failed"}]


def test_every_step_and_the_weighing_can_be_read_back(engine: Engine, ledger: Ledger, query: Query) -> None:
    messages = first(engine)
    while messages:
        following = ledger.commit([done(claim) for claim in ledger.claim(messages)])
        messages = [message for each in following for message in each]
    assert query(select(questions.c.status)) == [{"status": "finished"}]
    assert {row["digest"] for row in query(select(paragraphs))} >= {LIVES.digest, MADE.digest, KNOWN.digest}
    assert query(select(paragraph_sets.c.query, paragraph_sets.c.paragraph_id)) == [
        {"query": "laptop", "paragraph_id": KNOWN.id}
    ]
    with engine.begin() as connection:
        traced = read_question(connection, "costless", "q")
    *samples, lookup, embed, entail = traced.steps
    assert [step.action.sample for step in samples if isinstance(step.action, Reason)] == [0, 1, 2]
    assert (lookup.action, lookup.query) == (Lookup(source="wordnet", text="laptop", other="computer"), "laptop")
    assert [hit.paragraph for hit in lookup.hits] == [KNOWN]
    assert isinstance(embed.action, Embed)
    assert embed.action.sentences == (FACT,)
    assert [each.digest for each in embed.action.paragraphs] == [LIVES.digest, MADE.digest, KNOWN.digest]
    assert embed.result == Embedded(similarities=((0.8, 0.1, 0.2),))
    assert isinstance(entail.action, Entail)
    assert (entail.action.hypothesis, entail.action.premise.text) == (FACT, LIVES.text)
    assert entail.result == Entailed(entailment=0.9, neutral=0.08, contradiction=0.02)
    assert msgspec.convert(traced.details, Weighing) == weighing(KNOWN)
    assert traced.paragraphs == (KNOWN,)


NAMED = ("Aristotle", GoldParagraph(title="Laptop", text="It was invented in 1980."))


def test_models_and_knowledge_are_part_of_the_run(engine: Engine, query: Query) -> None:
    pinned = {"embedder": "minilm@1", "entailer": "nli@2", "pins": {"wordnet": "wordnet@3"}}
    binding = replace(submission().binding, **pinned)
    named = {"embedder_name": "minilm", "entailer_name": "nli"}
    submit(
        engine,
        replace(submission(), binding=binding, **named),
        [Question(id="q", text="Who?", evidence=NAMED)],
        find_system,
    )
    with engine.begin() as connection:
        plan = Runs(find_system).plan(connection, "costless")
    assert (plan.binding, plan.embedder_name, plan.entailer_name) == (binding, "minilm", "nli")
    (row,) = query(select(questions))
    assert row["evidence"] == ["Aristotle", {"title": "Laptop", "text": "It was invented in 1980."}]
    assert question_of(row).evidence == NAMED  # type: ignore[arg-type]
    assert isinstance(plan.binding, Binding)
