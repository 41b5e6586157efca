"""A store of runs in every state but the happy one: each is a line in `STATES`, and all of them are in `fill`.

A run of every system is there too, with a question whose gold is never found, one where nothing is found at all, and
one that fails. What is registered later joins by itself.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from msgspec.structs import replace
from sqlalchemy import Engine

from cotrail.core.edits import StepEdit
from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.core.results import Failure
from cotrail.errors import CorpusChangedError
from cotrail.evaluation.metrics.stop_rules import UNTIL
from cotrail.models.commands.control import cancel, pause
from cotrail.models.commands.forking import fork
from cotrail.models.commands.pruning import prune
from cotrail.models.commands.retrying import end_unbegun, retry
from cotrail.models.execution.ledger import Ledger
from cotrail.models.records.runs import BUDGETS
from cotrail.systems.registry import SYSTEMS, find_system
from cotrail.systems.spec import SystemSpec, find_spec
from tests.integration import judged, recorded
from tests.integration.odd.driving import (
    FOUND,
    PRICED,
    VELL,
    State,
    asked,
    begin,
    carry_out,
    due,
    ended,
    failing,
    failing_after,
    finding,
    gold,
    saying,
    wordless,
    writes,
)
from tests.integration.odd.further import MORE, judged_gone
from tests.integration.stepping import LEASE, close_runs
from tests.integration.test_forking import forked
from tests.integration.viewer import turned

HOSTILE = '<img src=x onerror="window.hacked=1"></bdi></script><script>window.hacked=2</script>\x1b[2J\u202e"\'`{{7*7}}'
RIGHT_TO_LEFT = "أين ولدت آدا لورن؟ היא נולדה כאן."
LINES = 10_000
LONG = "\n".join(f"Line {number} says that it isn't {number + 1}." for number in range(LINES))
TURNS = 500
MANY = tuple(GoldParagraph(title=f"Page {n}", text=f"Text {n}.") for n in range(300))


def _of_system(spec: SystemSpec, engine: Engine, run: str) -> None:
    """A question whose gold is never found, one about which nothing is found or said, one that fails."""
    questions = [*asked("missed"), *asked("nothing", gold=()), *asked("failed", answers=())]
    worlds = {"missed": finding(FOUND, writes()), "nothing": wordless, "failed": failing}
    ended(engine, run, questions, worlds, spec)


def _no_questions(engine: Engine, run: str) -> None:
    begin(engine, run, [])
    close_runs(engine)


def _found_at_once(engine: Engine, run: str) -> None:
    ended(engine, run, asked("q", gold=gold(*FOUND)), finding(FOUND, writes()))


def _nothing_found(engine: Engine, run: str) -> None:
    ended(engine, run, asked("q", "r", gold=gold(*FOUND)), finding((), writes()))


def _nothing_published(engine: Engine, run: str) -> None:
    ended(engine, run, asked("q", "r", gold=(), answers=()), finding(FOUND, writes()))


def _empty_answers(engine: Engine, run: str) -> None:
    ended(engine, run, asked("q", "r"), finding(FOUND, writes(answer="", sentences=("",))))


def _broken_off(engine: Engine, run: str) -> None:
    ended(engine, run, asked("q", "r"), failing_after(3, finding(FOUND, writes())))


def _blocked(engine: Engine, run: str) -> None:
    """One question is blocked by its first step, one by a later one."""
    begin(engine, run, asked("q", "r"))
    carry_out(engine, run, {"r": finding(FOUND, writes())}, most=2)
    ledger = Ledger(engine, "w", LEASE, find_system)
    for claim in filter(None, ledger.claim(due(engine, run))):
        ledger.block(claim, CorpusChangedError("the corpus was indexed again"))


def _cancelled(engine: Engine, run: str) -> None:
    begin(engine, run, asked("done", "under way", "waits"))
    carry_out(engine, run, {"done": finding(FOUND, writes())})
    carry_out(engine, run, {"under way": finding(FOUND, writes())}, most=2)
    cancel(engine, run)
    close_runs(engine)


def _under_way(engine: Engine, run: str) -> None:
    begin(engine, run, asked("done", "under way", "waits", gold=gold(*FOUND)))
    carry_out(engine, run, {"done": finding(FOUND, writes())})
    carry_out(engine, run, {"under way": finding((), writes())}, most=2)


def _paused(engine: Engine, run: str) -> None:
    begin(engine, run, asked("q"))
    pause(engine, run)


def _limited(budgets: dict[str, Any], engine: Engine, run: str) -> None:
    """Ended by a limit: what was begun by what it found, the rest without ever being asked."""
    begin(engine, run, asked(*"abcdef", gold=gold(VELL)), provenance={"python": "3", **PRICED, BUDGETS: budgets})
    carry_out(engine, run, {"a": finding(FOUND, writes()), "b": finding((), writes())})
    carry_out(engine, run, finding(FOUND, writes()))
    close_runs(engine)


def _many_turns(engine: Engine, run: str) -> None:
    turned.answer(engine, TURNS, run=run, asked=1)
    assert close_runs(engine) == [run]


def _long(engine: Engine, run: str) -> None:
    long = Paragraph(id="long", title="Long", text=LONG)
    questions = asked("q", text=f"Which town? {LONG}", gold=gold(long), answers=(LONG,))
    ended(engine, run, questions, finding((long,), saying(f"{LONG} So the answer is: {LONG}", writes())))


def _hostile(said: str, engine: Engine, run: str) -> None:
    page = Paragraph(id=said, title=said, text=said)
    questions = asked("q/?#%& " + said, text=said, answers=(said,), gold=gold(page), kinds={said: said})
    world = finding((page,), saying(f"{said}. So the answer is: {said}.", writes(answer=said)))
    begin(
        engine,
        run,
        [*questions, *asked("fails " + said)],
        provenance={"cotrail": said, "python": said},
        model_name=said,
    )
    failure = Failure(type="StepError", message=said)
    carry_out(engine, run, {questions[0].id: world, "fails " + said: lambda _: failure})
    close_runs(engine)


def _judged(engine: Engine, run: str) -> None:
    """A judge that is unsure, that fails, and that hasn't said anything yet."""
    judged.answer(engine, f"{run}-answers")
    said = {"q0": judged.verdict("correct", 90), "q1": judged.verdict("incorrect"), "q2": judged.UNREADABLE}
    judged.judge(engine, judged.verdicts(said), name=run, of=(f"{run}-answers",))


def _nothing_judged(engine: Engine, run: str) -> None:
    judged.answer(engine, f"{run}-answers")
    failed = dict.fromkeys(judged.ANSWERED, judged.FAILURE)
    judged.judge(engine, judged.verdicts(failed), name=run, of=(f"{run}-answers",))


def _forked(edit: StepEdit | None, engine: Engine, run: str) -> None:
    origin = f"{run}-origin"
    ended(engine, origin, asked("q0", "q1"), finding(FOUND, writes()))
    fork(engine, forked(run, origin), 2, find_system, ["q0"], edit)
    carry_out(engine, run, finding((), writes(answer="Vell")))
    close_runs(engine)


def _preferred(engine: Engine, run: str) -> None:
    """Two answers that were compared, and of one of the two runs nothing is left."""
    sides = (f"{run}-one", f"{run}-two")
    for each in sides:
        judged.answer(engine, each)
    judged.judge(engine, judged.verdicts({"q0": judged.verdict("A")}), name=run, rubric="preference", of=sides)
    list(prune(engine, sides[:1]))


def _half_pruned(engine: Engine, run: str) -> None:
    ended(engine, run, asked("q", "r"), finding(FOUND, writes()))
    next(prune(engine, [run]))


def _retried(engine: Engine, run: str) -> None:
    """What failed is open again, behind its earlier executions."""
    ended(engine, run, asked("q", "r"), failing_after(3, finding(FOUND, writes())))
    retry(engine, run, find_system, failed=True, blocked=False)
    carry_out(engine, run, {"q": finding(FOUND, writes())}, most=1)


def _until(engine: Engine, run: str) -> None:
    """A rule kept most questions from being asked."""
    rule = "width(answer_f1) < 0.5"
    begin(engine, run, asked(*"abcdef"), provenance={"python": "3", UNTIL: rule})
    carry_out(engine, run, {"a": finding(FOUND, writes())})
    end_unbegun(engine, {run: rule})
    close_runs(engine)


def _of_a_gone_system(engine: Engine, run: str) -> None:
    """A system that isn't there any more, as where an extension was taken away."""
    gone = replace(find_system("one-step"), name="gone")
    begin(engine, run, asked("q", "r"), gone, find=partial(find_spec, [*SYSTEMS, gone]))
    carry_out(engine, run, {"q": finding(FOUND, writes())}, find=partial(find_spec, [*SYSTEMS, gone]))


STATES: dict[str, State] = {
    # First those whose makers take every step of the store that is due.
    "many-turns": _many_turns,
    "judge": _judged,
    "failed-judge": _nothing_judged,
    "many-turns-open": lambda engine, run: turned.answer(engine, TURNS, run=run, steps=5),
    "preference": _preferred,
    "judged-gone": judged_gone,
    recorded.OPEN: lambda engine, _: recorded.record(engine),
    "no-questions": _no_questions,
    "untouched": lambda engine, run: begin(engine, run, asked("q", "r")),
    "under-way": _under_way,
    "paused": _paused,
    "blocked": _blocked,
    "cancelled-midway": _cancelled,
    "all-failed": lambda engine, run: ended(engine, run, asked("q", "r"), failing),
    "broken-off": _broken_off,
    "nothing-found": _nothing_found,
    "nothing-written": lambda engine, run: ended(engine, run, asked("q", "r"), wordless),
    "nothing-published": _nothing_published,
    "found-at-once": _found_at_once,
    "empty-answers": _empty_answers,
    "long": _long,
    "hostile": partial(_hostile, HOSTILE),
    "right-to-left": partial(_hostile, RIGHT_TO_LEFT),
    "batch": lambda engine, run: begin(engine, run, asked("q", "r"), batched=True, served=True),
    "half-pruned": _half_pruned,
    "retried": _retried,
    "until": _until,
    "gone-system": _of_a_gone_system,
    "gone-dataset": lambda engine, run: ended(engine, run, asked("q", "r"), finding(FOUND, writes()), dataset="gone"),
    "gone-dataset-rethinking": lambda engine, run: ended(
        engine, run, asked("q", "r"), finding(FOUND, writes()), find_system("rethinking"), dataset="gone"
    ),
    "odd-ids": lambda engine, run: ended(
        engine, run, asked(".", "..", "1", "a/../b", "x" * 2000), finding(FOUND, writes())
    ),
    "blank": lambda engine, run: ended(
        engine,
        run,
        asked("q", text=" ", answers=("", " "), gold=(GoldParagraph(title="", text=""),)),
        finding((Paragraph(id="", title="", text=""),), saying(" ", writes(answer=" "))),
    ),
    "many-gold": lambda engine, run: ended(
        engine, run, asked("q", gold=MANY, answers=tuple(f"Marlow {n}" for n in range(300))), finding(FOUND, writes())
    ),
    "fork": partial(_forked, None),
    "edited-fork": partial(_forked, StepEdit(query="Which river?", by="kim")),
    **{
        f"limit-{of}-{name}": partial(_limited, {of: {name: most}})
        for of in ("question", "run")
        for name, most in {"steps": 3, "tokens": 60, "seconds": 0.001, "money": 0.0001}.items()
    },
    **MORE,
}
"""What a run may be like, by the name that its id has."""

BY_SYSTEM: dict[str, State] = {
    f"{spec.name}-v{spec.version}": partial(_of_system, spec) for spec in SYSTEMS if not spec.judges
}


def fill(engine: Engine) -> Sequence[str]:
    """Fills an empty store; returns the ids of all runs that it has then."""
    for run, state in (STATES | BY_SYSTEM).items():
        state(engine, run)
    further = ("judge-answers", "failed-judge-answers", "preference-two", "fork-origin", "edited-fork-origin")
    return [*recorded.CLOSED, *STATES, *BY_SYSTEM, *further]
