"""Questions that are answered in as many turns as a test wants, by a search and a sentence each."""

from functools import partial
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Engine, func, select, text

from benchmarks.contenders.cotrail import submission
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import Demonstrations
from cotrail.core.history import Outcome
from cotrail.core.questions import GoldParagraph, Hit, Paragraph, Question
from cotrail.core.results import Failure, Generated, Retrieved
from cotrail.core.system import Action, Answer, StepFailed, System
from cotrail.models.commands.submission import submit
from cotrail.models.execution.ledger import Ledger
from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import questions, steps
from cotrail.systems.parts.prompting import few_shot_prompt
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import find_spec
from tests.integration.stepping import LEASE, completed, unsent

HOSTILE = "</bdi></script><script>alert(1)</script><img src=x onerror=alert(2)> “\u200fחשב”"
"""What a person, a model or a corpus may have written."""

FOUND = 3
"""Paragraphs of a search: one that each finds, and others of its own."""

FAILS, GOLD = 2, (1, 4)
"""The turn whose search fails, and those that find a gold paragraph, as long as there are so many."""

FAILURE = Failure(type="StepError", message=f"it can't be searched for {HOSTILE}")


def answer(
    engine: Engine, turns: int, *, run: str = "turned", asked: int = 3, steps: int | None = None, said: str = HOSTILE
) -> str:
    """Records a run of so many questions, each answered in so many turns; steps: after which it is left open."""
    find = partial(find_spec, _systems(turns))
    submitted = [
        Question(
            id=f"q {number}/{said}", text=f"Which town has bridge {number}? {said}", answers=("Grayle",), gold=_gold()
        )
        for number in range(asked)
    ]
    submit(engine, replace(submission(), id=run, provenance={"cotrail": "0"}), submitted, find)
    ledger, messages, done = Ledger(engine, "w", LEASE, find), unsent(engine), 0
    while messages and done != steps:
        claims = [claim for claim in ledger.claim(messages) if claim is not None]
        outcomes = [completed(claim, _outcome(claim.action, said)) for claim in claims]
        messages = [message for following in ledger.commit(outcomes) for message in following]
        done += 1
    return run


def page_of(turn: int, rank: int) -> Paragraph:
    """What the search of a turn finds."""
    number = turn if rank > 1 else 0
    return Paragraph(
        id=f"p{number}-{rank}", title=f"Page {number}, {rank}", text=f"Text {rank} has what bridge {number} is."
    )


def _systems(turns: int) -> Any:
    spec = replace(find_system("ircot"), open=partial(_answered, turns))
    return tuple(spec if (each.name, each.version) == (spec.name, spec.version) else each for each in SYSTEMS)


def _answered(turns: int, question: Question, shots: Any, settings: Any) -> System:
    sentences: list[str] = []
    paragraphs: dict[str, Paragraph] = {}
    for turn in range(1, turns + 1):
        try:
            found = yield Retrieve(query=f"What is bridge {turn}?", count=FOUND)
            assert isinstance(found, Retrieved)
            paragraphs |= {each.digest: each for each in found.paragraphs}
        except StepFailed:
            continue
        prompt = few_shot_prompt(
            demonstrations=Demonstrations(), question=question.text, paragraphs=tuple(paragraphs.values())[-4:]
        )
        written = yield Reason(prompt=prompt, max_tokens=9)
        assert isinstance(written, Generated)
        sentences.append(written.text)
    return Answer(text="Marlow", sentences=tuple(sentences), paragraphs=tuple(paragraphs.values()))


def _gold() -> tuple[GoldParagraph, ...]:
    found = (page_of(turn, 2) for turn in GOLD)
    missed = GoldParagraph(title="Never", text="Nobody finds it.")
    return (*(GoldParagraph(title=each.title, text=each.text) for each in found), missed)


def _outcome(action: Action, said: str) -> Outcome:
    if isinstance(action, Reason):
        return _written(action, said)
    assert isinstance(action, Retrieve)
    turn = int(action.query.strip("?").rpartition(" ")[2])
    if turn == FAILS:
        return FAILURE
    ranks = range(1, action.count + 1)
    return Retrieved(hits=tuple(Hit(paragraph=page_of(turn, rank), rank=rank, score=9.5 - rank) for rank in ranks))


def _written(action: Reason, said: str) -> Generated:
    text = f"So it is. {said}"
    return Generated(
        text=text,
        raw=text,
        demonstrations=0,
        paragraphs=len(action.prompt.yielding) - 1,
        prompt_digest=action.prompt.keep(0, len(action.prompt.yielding) - 1).digest,
        prompt_tokens=120,
        cached_prompt_tokens=20,
        generated_tokens=7,
        thoughts=f"Let me see. {said}",
        thoughts_are="whole",
    )


def lengthen(engine: Engine, run: str, length: int) -> None:
    """Repeats the recorded steps of a run's first question until there are so many."""
    copied = ", ".join(each.name for each in steps.c if each.name not in {"id", "sequence", "previous", "ended_in"})
    with engine.begin() as connection:
        amending(connection)
        of_run = select(questions.c.id).where(questions.c.run_id == run, questions.c.position == 0)
        id_ = connection.execute(of_run).scalar_one()
        recorded = connection.execute(select(func.count()).where(steps.c.question_id == id_)).scalar_one()
        bound = {"question": id_, "recorded": recorded, "length": length}
        connection.execute(
            text(
                f"INSERT INTO steps (sequence, previous, {copied}) "
                f"SELECT sequence + :recorded * time, previous || time, {copied} "
                "FROM steps, generate_series(1, :length / :recorded) AS time "
                "WHERE question_id = :question AND sequence + :recorded * time < :length"
            ),
            bound,
        )
        connection.execute(
            text(
                "INSERT INTO paragraph_sets (step_id, rank, question_id, query, digest, paragraph_id, score) "
                "SELECT again.id, rank, found.question_id, query, found.digest, paragraph_id, score "
                "FROM paragraph_sets AS found JOIN steps AS first ON first.id = found.step_id "
                "JOIN steps AS again ON again.question_id = first.question_id AND again.sequence >= :recorded "
                "AND again.sequence % :recorded = first.sequence WHERE first.question_id = :question"
            ),
            bound,
        )
