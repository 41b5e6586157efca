"""Answers as outputs of a notebook: by the viewer's templates, in a frame that runs nothing."""

import re
import sys
from html import unescape
from types import ModuleType, SimpleNamespace
from typing import Any

import msgspec
import pytest

from cotrail.answers import Answered, Answers, shown_progress
from cotrail.core.questions import Paragraph
from cotrail.core.results import Failure
from cotrail.errors import NotInstalledError
from cotrail.models.queries.traces import TracedQuestion
from cotrail.services.results.questions import shown_question
from tests.cases import each_case
from tests.unit.made_runs import OWLS, question, record, search, weighing, written

HOSTILE = '</iframe><script>alert(1)</script>" onload="alert(2)'
FAILED = Failure(type="SystemBrokenError", message=f"no such luck {HOSTILE}")


def answered(**fields: Any) -> Answered:
    traced = question(**fields)
    return Answered(question=shown_question(record(), traced), traced=traced)


def document(shown: Answered | Answers) -> str:
    """What the frame holds."""
    html = shown._repr_html_()
    assert html.count("<iframe") == html.count("</iframe>") == 1
    framed = re.search(r'srcdoc="([^"]*)" onload="[^"]*"></iframe>\s*$', html)
    assert framed
    held = unescape(framed[1])
    assert "<script" not in held
    assert "alert(2)" not in re.sub(r">[^<]*<", "><", held)  # as text alone
    assert not re.findall(r'(?:href|src)="(?!#|about:srcdoc)', held)
    return held


def test_a_question_is_shown_as_the_viewer_shows_it() -> None:
    held = document(answered())
    assert "Do owls hunt at night?" in held
    assert "✓ right" in held
    assert '<p class="query">searched for <q dir="auto">birds</q>' in held
    assert re.search(r'<li id="p-\w+" class="gold" value="1" data-gold>\s*<b><bdi>Owls</bdi>', held)
    assert "★ gold</span> · 2.50" in held
    assert "Owls hunt at night." in held
    assert '<a href="#turn-1">found in turn 1</a>, rank 1' in held
    assert "answer_em" not in held


NOTHING: dict[str, Any] = {"steps": (), "collected": (), "answers": (), "gold": (), "answer": None}


@each_case(
    ("fields", "said"),
    [
        ({"status": "failed", "answer": None, "reason": FAILED}, "no such luck"),
        ({**NOTHING, "status": "open"}, "none published"),
        ({**NOTHING, "status": "blocked", "reason": FAILED}, "no such luck"),
        ({"answer": "", "text": ""}, "(empty)"),
        ({"text": HOSTILE, "answer": HOSTILE, "answers": (HOSTILE,)}, "&lt;script&gt;"),
        ({"steps": (search(0, Paragraph(id="", title=HOSTILE, text=HOSTILE)), written(1, HOSTILE))}, "&lt;script&gt;"),
        ({"steps": (search(0), written(1, "", failure=FAILED, state="failed"))}, "nothing was found"),
    ],
)
def test_what_failed_is_empty_or_hostile_is_shown_too(fields: dict[str, Any], said: str) -> None:
    assert said in document(answered(**fields))
    assert "1 question" in document(Answers(answered=(answered(**fields),)))
    assert repr(answered(**fields)).startswith("<q1: '")


def test_an_answer_that_was_weighed_shows_how() -> None:
    traced = question(details=msgspec.to_builtins(weighing()))
    held = document(Answered(question=shown_question(record("rethinking"), traced)))
    assert "Answers and their weights" in held
    assert 'href="#p-' in held


def test_an_answer_of_hundreds_of_long_steps_is_bounded_and_says_so() -> None:
    steps = []
    for number in range(400):
        pages = [Paragraph(id=f"{number}-{n}", title="Page", text="It is. " * 3_000) for n in range(9)]
        steps += [search(2 * number, *pages), written(2 * number + 1, "So it is. " * 3_000)]
    shown = answered(steps=tuple(steps))
    assert len(shown._repr_html_()) < 1_000_000
    assert re.search(r"Turns 1.\d+ of 400; <code>.steps</code>", document(shown))
    assert len(repr(shown)) < 100


def test_words_are_marked_where_what_searches_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (search(0, OWLS, query="owls"),)
    assert "<mark>Owls</mark>" in document(answered(steps=steps))
    monkeypatch.setitem(sys.modules, "tantivy", None)
    monkeypatch.delitem(sys.modules, "cotrail.engines.retrieval.tantivy", raising=False)
    assert '<p dir="auto">Owls hunt at night.</p>' in document(answered(steps=steps))


def run(*traced: TracedQuestion) -> Answers:
    return Answers(answered=tuple(Answered(question=shown_question(record(), each), traced=each) for each in traced))


def test_a_run_shows_its_scores_and_questions_and_is_a_data_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = run(question(), question("q2", answer="no"), question("q3", status="failed", reason=FAILED, answer=None))
    held = document(answers)
    assert "<dt>answer_em</dt><dd>0.333</dd>" in held
    assert ("✓ right" in held, "✗ wrong" in held, "no such luck" in held) == (True, True, True)
    assert document(run()).count("<tr>") == 1
    many = run(*(question(f"q{n}") for n in range(120)))
    assert "The first 100 of 120" in document(many)
    pytest.importorskip("pandas")
    assert list(answers.frame()["answer_em"]) == [1.0, 0.0, 0.0]
    monkeypatch.setattr("cotrail.answers.find_spec", lambda _: None)
    with pytest.raises(NotInstalledError, match="pip install pandas"):
        answers.frame()


def test_progress_is_shown_in_a_notebook_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    shown_progress()(1, 2)  # says nothing, and needs no notebook
    said = list[str]()
    shell, display, handle = ModuleType("IPython"), ModuleType("IPython.display"), SimpleNamespace(update=said.append)
    shell.__dict__["get_ipython"] = lambda: SimpleNamespace(kernel=1)
    display.__dict__.update(HTML=str, display=lambda *_, display_id: handle)
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    shown_progress()(1, 1200)
    assert said == ["<progress max='1200' value='1'></progress> 1 of 1,200 questions"]
    shell.__dict__["get_ipython"] = lambda: None  # a script that has IPython
    shown_progress()(1, 2)
    assert len(said) == 1
