"""Further states of the odd store: odd texts, numbers and times, what was pruned, forked or repeated, and what people
said of it.
"""

import itertools
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Engine, func, update

from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import Shots
from cotrail.core.history import Outcome
from cotrail.core.ports.batches import BatchAnswer
from cotrail.core.questions import GoldParagraph, Hit, Paragraph, Question
from cotrail.core.repeats import REPEATED_STEPS, RepeatedSteps
from cotrail.core.results import Failure, Generated, Retrieved
from cotrail.core.system import Action, System
from cotrail.evaluation.causes.cause import Cause, CauseLabel
from cotrail.evaluation.metrics.factual_errors import SentenceMark
from cotrail.evaluation.metrics.stop_rules import UNTIL
from cotrail.models.commands.annotating import record
from cotrail.models.commands.control import cancel
from cotrail.models.commands.forking import fork
from cotrail.models.commands.pruning import prune
from cotrail.models.commands.retrying import end_unbegun
from cotrail.models.commands.submission import open_experiment
from cotrail.models.execution import batches
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.runs import BUDGETS, PRICES
from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import runs
from cotrail.services.runs.labels import labels_of
from cotrail.systems.registry import find_system
from cotrail.systems.spec import find_spec
from tests.integration import judged
from tests.integration.odd.driving import (
    FOUND,
    MARLOW,
    PRICED,
    VELL,
    State,
    asked,
    begin,
    carry_out,
    due,
    ended,
    finding,
    gold,
    saying,
    writes,
)
from tests.integration.stepping import LEASE, close_runs
from tests.integration.test_forking import forked
from tests.replay.driving import World

MARKS = ("…", "?!", "👩‍👩‍👧‍👦", "\u0301\u0308", "\u200b\u200d\ufeff", "\u00ad", "ﷺ", "a an the")
IDS = (
    "a/b\\c'\"`$(x)" * 150,
    "--help",
    "-1",
    "0",
    "../q?x=1#y",
    "%2F%00",
    "questions",
    " q ",
    "q\nr",
    "\u200b",
    "e\u0301",
)
RIGHT_TO_LEFT = "\u202eשלום"  # noqa: RUF001
NAMES = {"שלום": ("أهلا",), "x" * 100: ("y" * 100, "all")}


def _cancelled_unbegun(engine: Engine, run: str) -> None:
    begin(engine, run, asked("q"))
    cancel(engine, run)
    close_runs(engine)


def _same_titles(engine: Engine, run: str) -> None:
    pages = [Paragraph(id=f"p{n}", title="Vell", text=f"Text {n} of Marlow.") for n in range(4)]
    twice = [*pages, *pages, VELL]
    questions = asked("q", gold=(*gold(*pages), GoldParagraph(title="Vell", text="", by="title"), *gold(VELL)))
    ended(engine, run, questions, finding(twice, writes()))


def _marks(engine: Engine, run: str) -> None:
    questions = [each for n, mark in enumerate(MARKS) for each in asked(f"q{n}", text=mark, answers=(mark,))]
    worlds = {
        f"q{n}": finding((Paragraph(id=mark, title=mark, text=mark),), saying(mark, writes(answer=mark)))
        for n, mark in enumerate(MARKS)
    }
    ended(engine, run, questions, worlds)


def _long_answers(engine: Engine, run: str) -> None:
    long = "Marlow\n" * 1500
    pages = [Paragraph(id="l", title=long, text=long)]
    ended(engine, run, asked("q", answers=(long, "\n", long[::-1]), gold=gold(*pages)), finding(pages, writes()))


def _kinds(kinds: Sequence[dict[str, str]], engine: Engine, run: str) -> None:
    questions = [each for n, of_one in enumerate(kinds) for each in asked(f"q{n}", kinds=of_one)]
    ended(engine, run, questions, finding(FOUND, writes()))


def _until_at_once(engine: Engine, run: str) -> None:
    rule = "width(answer_f1) < 0.5"
    begin(engine, run, asked("q", "r"), provenance={"python": "3", UNTIL: rule})
    end_unbegun(engine, {run: rule})
    close_runs(engine)


def judged_gone(engine: Engine, run: str) -> None:
    """The run that it judged is pruned."""
    judged.answer(engine, f"{run}-answers")
    said = {"q0": judged.verdict("correct"), "q1": judged.verdict("incorrect")}
    judged.judge(engine, judged.verdicts(said), name=run, of=(f"{run}-answers",), keys=("q0", "q1"))
    list(prune(engine, [f"{run}-answers"]))


def _forked_thrice(engine: Engine, run: str) -> None:
    """A fork of a fork of a fork, of which the first is gone."""
    line = [f"{run}-{n}" for n in range(3)]
    ended(engine, line[0], asked("q"), finding(FOUND, writes()))
    for origin, name in itertools.pairwise([*line, run]):
        fork(engine, forked(name, origin), -1, find_system)
        carry_out(engine, name, finding((), writes(answer=name)))
        close_runs(engine)
    list(prune(engine, line[:1]))


def _fork_of_gone(engine: Engine, run: str) -> None:
    origin = f"{run}-origin"
    ended(engine, origin, asked("q0", "q1"), finding(FOUND, writes()))
    fork(engine, forked(run, origin), 2, find_system)
    list(prune(engine, [origin]))
    carry_out(engine, run, finding((), writes(answer="Vell")))
    close_runs(engine)


def _fork_unbegun(engine: Engine, run: str) -> None:
    origin = f"{run}-origin"
    ended(engine, origin, asked("q0"), finding(FOUND, writes()))
    fork(engine, forked(run, origin), 0, find_system)


def _repeated(engine: Engine, run: str) -> None:
    """A step of the only question is repeated."""
    origin = f"{run}-origin"
    ended(engine, origin, asked("q"), finding(FOUND, writes()))
    drawn = RepeatedSteps(run=origin, kinds=("reason",), share=1.0, seed=0, steps={"q": 1})
    again = replace(forked(run, origin), provenance={REPEATED_STEPS: msgspec.to_builtins(drawn)})
    fork(engine, again, drawn.steps, find_system, drawn.steps)
    carry_out(engine, run, finding(FOUND, writes(answer="Vell")))
    close_runs(engine)


def _experiment(engine: Engine, run: str) -> None:
    open_experiment(engine, f"{run}-experiment", {"cells": ["a", "b"]})
    for name in (run, f"{run}-other"):
        ended(engine, name, asked("q"), finding(FOUND, writes()), cell=name, experiment=f"{run}-experiment", reuse=True)
    list(prune(engine, [f"{run}-other"]))


def _spending(tokens: int, provenance: dict[str, Any], engine: Engine, run: str) -> None:
    def spent(action: Action) -> Outcome:
        usual = finding(FOUND, writes())(action)
        if not isinstance(usual, Generated):
            return usual
        return replace(usual, prompt_tokens=tokens, cached_prompt_tokens=0, generated_tokens=tokens)

    ended(engine, run, asked("q", "r"), spent, provenance={"python": "3", **provenance})


def _taking(milliseconds: float, engine: Engine, run: str) -> None:
    begin(engine, run, asked("q", "r"))
    carry_out(engine, run, finding(FOUND, writes()), taking=milliseconds)
    close_runs(engine)


def _begun(days: int, questions: Sequence[str], engine: Engine, run: str) -> None:
    """Begun so many days from now, by a clock that was wrong; questions: those that are answered."""
    begin(engine, run, asked("q", "r"))
    carry_out(engine, run, dict.fromkeys(questions, finding(FOUND, writes())))
    with engine.begin() as connection:
        amending(connection)
        connection.execute(update(runs).where(runs.c.id == run).values(created_at=func.now() + timedelta(days=days)))
    close_runs(engine)


def _odd_hits(engine: Engine, run: str) -> None:
    scores = (1e308, 1.0, 0.0, 0.0, -0.0, -1e308, 5e-324)

    def world(action: Action) -> Outcome:
        if not isinstance(action, Retrieve):
            return writes()(action)
        hits = [Hit(paragraph=VELL if n % 2 else MARLOW, rank=n + 1, score=score) for n, score in enumerate(scores)]
        return Retrieved(hits=tuple(hits))

    ended(engine, run, asked("q", gold=gold(VELL)), world)


def _labelled(engine: Engine, run: str) -> None:
    ended(engine, run, asked("q", "r"), finding(FOUND, writes(answer="Vell")))
    causes = dict(zip(("kim", "--help", RIGHT_TO_LEFT, " "), Cause, strict=False))
    with engine.begin() as connection:
        record(
            connection,
            run,
            [
                CauseLabel(question_id=key, annotator=name, cause=cause, note="\n" * 20 + name)
                for key in ("q", "r")
                for name, cause in causes.items()
            ],
        )
        record(
            connection,
            run,
            [
                SentenceMark(question_id="q", position=place, annotator=name, is_true=bool(n % 2), note=name)
                for n, name in enumerate(causes)
                for place in (0,)
            ],
        )


def _odd_ids(engine: Engine, run: str) -> None:
    ended(engine, run, asked(*IDS), finding(FOUND, writes()))


def _named(name: str, tags: tuple[str, ...], engine: Engine, run: str) -> None:
    ended(engine, run, asked("q"), finding(FOUND, writes()), labels=labels_of(name, tags))


def _always(failure: Failure, _: Action) -> Outcome:
    return failure


def _odd_failures(engine: Engine, run: str) -> None:
    failures = {
        "empty": Failure(type="StepError", message=""),
        "long": Failure(type="E" * 300, message="line\n" * 2000),
        "marks": Failure(type="E", message="\u0301\u200b"),
        "only": Failure(type="StepError", message=":"),
    }
    worlds: dict[str, World] = {key: partial(_always, failure) for key, failure in failures.items()}
    begin(engine, run, asked(*failures))
    carry_out(engine, run, worlds)
    close_runs(engine)


def _part_of_a_batch(engine: Engine, run: str) -> None:
    """A batch that the provider ended: one request is answered, one failed, one has no answer."""
    begin(engine, run, asked("q", "r", "s"), find_system("zero-shot"), batched=True, served=True)
    ledger = Ledger(engine, "w", LEASE, find_system)
    claims = [claim for claim in ledger.claim(due(engine, run)) if claim is not None]
    for claim in claims:
        ledger.hand_over(claim, f"{run}-model", "{}")
    with engine.begin() as connection:
        key = batches.form(connection, f"{run}-model", "sender", 100, 100_000)
        assert key is not None
        batches.about_to_send(connection, key, "sender", batches.read_lines(connection, key))
        batches.sent(connection, key, "sender", f"{run}-at-the-provider")
        first, second, _ = (f"{key}-{claim.step_id}" for claim in claims)
        said = [BatchAnswer(first, 200, "{}"), BatchAnswer(second, 500, '{"error": {"message": ""}}')]
        batches.deliver(connection, key, said)
        batches.end(connection, key, seen=2, problem="")


def _details(system: str, details: Any, engine: Engine, run: str) -> None:
    """Details that another release wrote."""
    usual = find_system(system)

    def opened(question: Question, shots: Shots, settings: Any) -> System:
        answer = yield from usual.open(question, shots, settings)
        return replace(answer, details=details)

    find = partial(find_spec, [replace(usual, open=opened)])
    begin(engine, run, asked("q", "r"), usual, find)
    carry_out(engine, run, finding(FOUND, writes()), find=find)
    close_runs(engine)


def _bare(engine: Engine, run: str) -> None:
    ended(engine, run, asked("q"), finding(FOUND, writes()), provenance={}, dataset="", model_name="")


def _asked_oddly(engine: Engine, run: str) -> None:
    ended(engine, run, asked("q", text="\u200b", answers=(), gold=()), finding(FOUND, writes()), asked=True)


def _none_left(engine: Engine, run: str) -> None:
    """A budget of so little that nothing was begun."""
    budgets = {"run": {"steps": 1}}
    begin(engine, run, asked("q", "r"), provenance={"python": "3", **PRICED, BUDGETS: budgets})
    carry_out(engine, run, {"q": finding(FOUND, writes())})
    end_unbegun(engine)
    close_runs(engine)


MORE: dict[str, State] = {
    "cancelled-unbegun": _cancelled_unbegun,
    "same-titles": _same_titles,
    "marks": _marks,
    "long-answers": _long_answers,
    "many-kinds": partial(_kinds, [{f"name {n}": f"kind {n}" for n in range(300)}] * 2),
    "many-values": partial(_kinds, [{"type": f"kind {n}"} for n in range(300)]),
    "odd-kinds": partial(
        _kinds,
        [
            {"": ""},
            {"all": "all", "__proto__": "constructor", "a,b": "c,d", "status": "failed", "cause": "--help"},
            {"all": "All", "type": "\n", "x=y": "=", "\u200b": "\u200b"},
        ],
    ),
    "until-at-once": _until_at_once,
    "forked-thrice": _forked_thrice,
    "fork-of-gone": _fork_of_gone,
    "fork-unbegun": _fork_unbegun,
    "repeated": _repeated,
    "experiment-pruned": _experiment,
    "unpriced": partial(_spending, 10, {PRICES: {"model": None, "embedder": PRICED[PRICES]["model"]}}),
    "no-tokens": partial(_spending, 0, PRICED),
    "many-tokens": partial(_spending, 2**40, PRICED),
    "years": partial(_taking, 3.2e11),
    "no-time": partial(_taking, 0.0),
    "begun-long-ago": partial(_begun, -400_000, "qr"),
    "begun-ahead": partial(_begun, 400, "qr"),
    "open-ahead": partial(_begun, 400, "q"),
    "untouched-ahead": partial(_begun, 400, ""),
    "odd-hits": _odd_hits,
    "labelled": _labelled,
    "odder-ids": _odd_ids,
    **{f"named-{n}": partial(_named, name, tags) for n, (name, tags) in enumerate(NAMES.items())},
    "odd-failures": _odd_failures,
    "part-of-a-batch": _part_of_a_batch,
    "bare": _bare,
    "asked-oddly": _asked_oddly,
    "none-left": _none_left,
    **{
        f"details-{system}-{n}": partial(_details, system, said)
        for system in ("rethinking", "searchain", "probtree")
        for n, said in enumerate(({}, {"unknown": [None]}, "said"))
    },
}
