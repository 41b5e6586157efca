"""Views of steps: a kind that nothing else knows is shown everywhere, and each kind that there is has a view."""

import io
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cotrail.cli.commands.results import _show
from cotrail.cli.terminal.following import _lines
from cotrail.cli.terminal.output import PLAIN_WIDTH, Screen
from cotrail.core.actions.embed import Embed, Rate
from cotrail.core.actions.entail import Entail, Extract
from cotrail.core.actions.generate import Judge, Read, Reason
from cotrail.core.actions.kind import ActionKind, Engines, UnreadAction, UnreadResult
from cotrail.core.actions.registry import KINDS, kind_of, view_of
from cotrail.core.actions.retrieve import Lookup, Open, Retrieve
from cotrail.core.calls import Call
from cotrail.core.prompts import Prompt, Shown, plain
from cotrail.core.questions import Hit
from cotrail.core.results import Embedded, Entailed, Extracted, Failure, Generated, Rated, Result, Retrieved
from cotrail.core.system import Action
from cotrail.core.views import (
    Facts,
    FoundParagraph,
    FoundParagraphs,
    Note,
    ScoredText,
    ScoredTexts,
    ToolCalls,
    View,
    WrittenText,
)
from cotrail.evaluation.metrics.answer_metrics import METRICS
from cotrail.models.queries.traces import TracedQuestion, TracedStep
from cotrail.services.results import exporting
from cotrail.services.results.questions import shown_question
from cotrail.services.results.reports.run_report import run_page
from cotrail.services.results.steps import ShownStep, shown_steps
from tests.cases import each_case
from tests.unit.made_results import COST
from tests.unit.made_runs import NAMELESS, OWLS, progress, question, record, search, step

# The kind: what its file and its line in the registry would hold.


class Appraise(Action, frozen=True, kw_only=True):
    """Appraise a claim, with what else is to be read about it."""

    claim: str


class Appraised(Result, frozen=True, kw_only=True):
    """What an appraiser says."""

    why: str
    share: float


def _view(action: Appraise, result: Appraised | None) -> View:
    if result is None:
        return View(asked=action.claim, labels=("strict",))
    hit = FoundParagraph(paragraph=OWLS, rank=1, score=2.5, digest=OWLS.digest)
    return View(
        asked=action.claim,
        labels=("strict",),
        parts=(
            WrittenText(text=result.why, role="thought"),
            ScoredTexts(rows=(ScoredText(score=result.share, text="true"), ScoredText(score=0.25, text="false"))),
            FoundParagraphs(hits=(hit,)),
            Note(text="by the book"),
            Facts(facts=("2 pages read",)),
        ),
    )


def _carry_out(action: Appraise, _: Engines) -> Appraised:
    return Appraised(why=f"Of {action.claim}", share=0.75)


APPRAISE = ActionKind(
    name="appraise",
    action=Appraise,
    result=Appraised,
    role="evidence",
    carry_out=_carry_out,
    decides=lambda action, _: {"claim": action.claim},
    view=_view,
)

DONE = Appraised(why="They do.", share=0.75)


@pytest.fixture
def appraise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, APPRAISE.name, APPRAISE)


def terminal(traced: TracedQuestion) -> str:
    screen = Screen(file=io.StringIO(), markup=False, emoji=False, highlight=False, width=PLAIN_WIDTH)
    _show(screen, shown_question(record(), traced), full=False, thoughts=False)
    return "\n".join(line.rstrip() for line in screen.file.getvalue().splitlines())  # type: ignore[attr-defined]


def page(traced: TracedQuestion) -> str:
    return run_page(record(), progress([traced]), COST, [traced]).html


def as_json(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def printed(traced: TracedQuestion) -> dict[str, Any]:
    document: dict[str, Any] = as_json(exporting.trace(record(), traced).document())
    return document


@pytest.mark.usefixtures("appraise")
def test_a_kind_that_nothing_else_knows_is_shown_everywhere() -> None:
    traced = question(steps=(step(0, Appraise(claim="Owls hunt."), DONE, attempts=2, worker="w"),))
    shown = terminal(traced)
    assert " 0 appraise  strict  “Owls hunt.”\n   They do.\n" in shown
    assert "   0.75  true\n   0.25  false\n" in shown
    assert "   +  ★  1  2.50  Owls  Owls hunt at night.\n" in shown
    assert "   by the book\n   2 pages read · computed in 1 ms · 2 attempts · w\n" in shown
    html = page(traced)
    assert "0 · appraise “<bdi>Owls hunt.</bdi>”</p>" in html
    assert '<p class="sentence" dir="auto">They do.</p>' in html
    assert f'<a href="#p-{OWLS.digest}"><bdi>Owls</bdi></a>' in html
    assert "strict, 2 pages read, computed in 1 ms, 2 attempts\n0.75  true\n0.25  false\nby the book" in html
    [told] = printed(traced)["steps"]
    assert (told["kind"], told["request"], told["result"]) == (
        "appraise",
        {"claim": "Owls hunt."},
        {"why": "They do.", "share": 0.75},
    )
    assert [line.plain for line in _lines(traced)][:2] == ["+ ★ Owls", "They do."]


@pytest.mark.usefixtures("appraise")
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"state": "running"}, "running"),
        ({"state": "blocked"}, "blocked"),
        ({"state": "failed", "failure": Failure(type="StepError", message="no luck")}, "StepError: no luck"),
    ],
)
def test_a_step_without_a_result_says_what_it_was_about_and_why_there_is_none(fields: Any, said: str) -> None:
    traced = question(steps=(step(0, Appraise(claim="Owls hunt."), **fields),), answer=None, status="open")
    shown, html = terminal(traced), page(traced)
    assert " 0 appraise  strict  “Owls hunt.”\n" in shown
    assert said in shown
    assert "“<bdi>Owls hunt.</bdi>”" in html
    assert said in html
    assert printed(traced)["steps"][0]["result"] is None


def test_what_this_version_cannot_read_is_shown_as_it_is_recorded() -> None:
    action, result = UnreadAction(request={"a": "who"}), UnreadResult(result={"b": 2})
    steps = (
        TracedStep(
            sequence=3,
            kind="later",
            state="finished",
            worker=None,
            attempts=1,
            milliseconds=1.0,
            action=action,
            result=result,
        ),
    )
    traced = question(steps=steps)
    assert ' 3 later\n   {"a":"who"}\n   {"b":2}\n' in terminal(traced)
    assert "3 · later: {&#34;a&#34;:&#34;who&#34;}\n{&#34;b&#34;:2}" in page(traced)
    [told] = printed(traced)["steps"]
    assert (told["request"], told["result"]) == ({"a": "who"}, {"b": 2})


PROMPT = Prompt(turns=(plain(Shown(paragraph=OWLS), Shown(paragraph=NAMELESS), "Do owls hunt?"),))
GENERATED = Generated(
    text="Yes.",
    raw="Yes. No.",
    demonstrations=0,
    paragraphs=1,
    prompt_digest="d",
    prompt_tokens=1200,
    cached_prompt_tokens=100,
    generated_tokens=5,
    drafted_tokens=4,
    accepted_tokens=3,
    seed=7,
)
FOUND = Retrieved(hits=(Hit(paragraph=NAMELESS, rank=1, score=0.5),))
STEPS: list[tuple[Action, Result, dict[str, Any]]] = [
    (Retrieve(query="birds", count=4), FOUND, {"query": "birds", "source": None}),
    (Open(title="Hens"), FOUND, {"query": "Hens", "source": None}),
    (Lookup(source="wordnet", text="hen"), FOUND, {"query": "hen", "source": "wordnet"}),
    (Reason(prompt=PROMPT, max_tokens=9, sample=1), GENERATED, {"sample": 1, "paragraphs": 2}),
    (Read(prompt=PROMPT, max_tokens=9), GENERATED, {"sample": None, "paragraphs": 2}),
    (Judge(prompt=PROMPT, max_tokens=9), GENERATED, {"sample": None, "paragraphs": 2}),
    (
        Embed(sentences=("Owls wake.",), paragraphs=(OWLS, NAMELESS)),
        Embedded(similarities=((0.1, 0.8),)),
        {"sentences": ["Owls wake."], "paragraphs": [OWLS.digest, NAMELESS.digest]},
    ),
    (
        Entail(premise=OWLS, hypothesis="Owls wake."),
        Entailed(entailment=0.9, neutral=0.08, contradiction=0.02),
        {"sentences": ["Owls wake."], "paragraphs": [OWLS.digest]},
    ),
    (
        Extract(question="What do hens lay?", paragraph=NAMELESS),
        Extracted(text="eggs", confidence=2.5, start=11, end=15),
        {"request": {"question": "What do hens lay?", "paragraphs": [NAMELESS.digest]}},
    ),
    (
        Rate(by="relevance", text="What do hens lay?", others=("Eggs.",), paragraphs=(NAMELESS,)),
        Rated(scores=(0.75, 0.5)),
        {
            "request": {
                "by": "relevance",
                "text": "What do hens lay?",
                "others": ["Eggs."],
                "paragraphs": [NAMELESS.digest],
            }
        },
    ),
]
RESULTS = {"retrieve": "hits", "open": "hits", "lookup": "hits"}
RESULTS |= dict.fromkeys(("reason", "read", "judge"), "generated")


def test_the_table_has_every_kind() -> None:
    assert {kind_of(action).name for action, _, _ in STEPS} == set(KINDS)


@each_case(("action", "result", "fields"), STEPS, ids=lambda each: type(each).__name__)
def test_the_json_of_a_trace_has_the_fields_of_each_kind_and_no_others(
    action: Action, result: Result, fields: dict[str, Any]
) -> None:
    steps = printed(question(steps=(step(0, action), step(1, action, result))))["steps"]
    own = [{name: each[name] for name in list(each)[9:]} for each in steps]
    assert list(steps[0])[:9] == [
        "sequence",
        "kind",
        "state",
        "worker",
        "attempts",
        "milliseconds",
        "adopted",
        "failure",
        "edit",
    ]
    name = RESULTS.get(steps[0]["kind"], "found" if "sentences" in fields else "result")
    assert own[0] == fields | {name: [] if name == "hits" else None}
    hit = {"rank": 1, "score": 0.5, "id": "n", "title": "", "text": NAMELESS.text, "new": False, "gold": False}
    assert own[1] == fields | {name: [hit] if name == "hits" else as_json(result)}


@each_case(("action", "result", "fields"), STEPS, ids=lambda each: type(each).__name__)
def test_a_view_has_no_parts_before_there_is_a_result_and_is_json(action: Action, result: Result, fields: Any) -> None:
    assert view_of(action, None).parts == ()
    [shown] = shown_steps(question(steps=(step(0, action, result),)))
    assert shown.view.parts
    assert msgspec.json.decode(msgspec.json.encode(shown), type=ShownStep) == shown


def test_facts_of_a_generation_say_what_it_cost_and_what_did_not_fit() -> None:
    view = view_of(*STEPS[3][:2])
    assert view.labels == ("chain 2",)
    assert view.parts == (
        WrittenText(text="Yes.", role="thought"),
        Facts(
            facts=(
                "1,200 tokens read (100 from the cache)",
                "5 written",
                "3 of 4 guessed",
                "1 paragraph didn't fit the context",
                "seed 7",
            )
        ),
    )


def test_the_tools_that_a_model_called_are_shown_with_what_it_wrote() -> None:
    call = Call(name="search", arguments='{"query": "<b>owls</b>"}')
    called = question(steps=(step(0, STEPS[3][0], replace(GENERATED, calls=(call,))),))
    [shown] = shown_steps(called)
    assert shown.view.parts[1] == ToolCalls(calls=(call,))
    assert 'called search {"query": "<b>owls</b>"}' in terminal(called)
    assert "called search {&#34;query&#34;: &#34;&lt;b&gt;owls&lt;/b&gt;&#34;}" in page(called)


def test_paragraphs_are_new_where_the_question_collected_them_first() -> None:
    first, second = shown_steps(question(steps=(search(0, OWLS, NAMELESS), search(1, OWLS))))
    assert [(hit.new, hit.gold) for hit in first.view.found] == [(True, True), (False, False)]
    assert [(hit.new, hit.gold) for hit in second.view.found] == [(False, True)]


def test_each_document_is_one_record_with_a_schema() -> None:
    for document in (exporting.QuestionTrace, exporting.ExportedQuestion, ShownStep):
        schema = msgspec.json.schema(document)
        assert schema["$ref"] == f"#/$defs/{document.__name__}"
    traced = question(steps=tuple(step(place, action, result) for place, (action, result, _) in enumerate(STEPS)))
    told = printed(traced)
    scores = {name: told[name] for name in METRICS}
    fields = {name: value for name, value in told.items() if name not in scores} | {"scores": scores}
    assert as_json(msgspec.convert(fields, exporting.QuestionTrace).document()) == told
