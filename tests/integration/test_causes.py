"""Causes of the wrong answers of a recorded run: in the terminal, in the report, and labelled by hand."""

import json
from collections.abc import Callable
from html import unescape
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Engine, select, update
from typer.testing import CliRunner, Result

from benchmarks.contenders.cotrail import submission
from cotrail.cli.main import app
from cotrail.core.actions.generate import Prompted, Read, Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.history import Outcome
from cotrail.core.questions import GoldParagraph, Hit, Paragraph, Question
from cotrail.core.results import Failure, Generated, Retrieved
from cotrail.errors import InputError
from cotrail.models.commands.pruning import prune
from cotrail.models.commands.submission import submit
from cotrail.models.execution.leases import Claim, Completion
from cotrail.models.execution.ledger import Ledger
from cotrail.models.queries.annotations import read_cause_labels
from cotrail.models.queries.runs import read_run
from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import cause_labels, questions
from cotrail.services.results.causes import Cause, RunErrors, check_questions, run_errors
from cotrail.services.results.reports.run_report import run_report
from cotrail.systems.registry import find_system
from tests.integration.asked_service import service
from tests.integration.conftest import Cotrail
from tests.integration.stepping import LEASE, close_runs, unsent

Annotate = Callable[..., Result]

RUN = "towns"
BRIDGE = Paragraph(
    id="p1", title="Brenn Bridge", text="The Brenn Bridge was designed by Ada Lund. It crosses the Sill."
)
LUND = Paragraph(id="p2", title="Ada Lund", text="Ada Lund was an engineer. She was born in Marl in 1901.")
GRETT = Paragraph(id="p3", title="Grett", text="Grett is the capital. The poet Ivo Stern was born in Grett.")
HOP = "The Brenn Bridge was designed by Ada Lund."


class Script(Struct, frozen=True, kw_only=True):
    """What happens to a question.

    second: what its second search finds; fit: how many of a prompt's paragraphs the context has room for.
    """

    sentences: tuple[str, ...]
    answer: str
    cause: Cause | None
    second: tuple[Paragraph, ...] = (LUND,)
    fit: int = 9
    fails: bool = False


SCRIPTS = {
    "right": Script(
        sentences=(HOP, "Ada Lund was born in Marl.", "So the answer is: Marl."), answer="Marl", cause=None
    ),
    "form": Script(sentences=(HOP, "So the answer is: Marl."), answer="It is Marl.", cause=Cause.FORM),
    "reader": Script(sentences=(HOP, "So the answer is: Marl."), answer="Grett", cause=Cause.READER),
    "limit": Script(sentences=(HOP, "It is long.", "It is old."), answer="Grett", cause=Cause.LIMIT),
    "missing": Script(
        sentences=(HOP, "So the answer is: Grett."), answer="Grett", second=(GRETT,), cause=Cause.NEVER_FOUND
    ),
    "hidden": Script(sentences=(HOP, "So the answer is: Grett."), answer="Grett", fit=1, cause=Cause.NOT_SHOWN),
    "contradicted": Script(
        sentences=(HOP, "Ada Lund was born in Oslo.", "So the answer is: Oslo."),
        answer="Oslo",
        cause=Cause.CONTRADICTED,
    ),
    "unused": Script(sentences=(HOP, "So the answer is: Ada Lund."), answer="Ada Lund", cause=Cause.NOT_USED),
    "failed": Script(sentences=(), answer="", fails=True, cause=Cause.NO_ANSWER),
}
CAUSES = {key: script.cause for key, script in SCRIPTS.items() if script.cause}


def asked(key: str) -> Question:
    return Question(
        id=key,
        text=f"Where was the engineer of the Brenn Bridge born? ({key})",
        answers=("Marl",),
        gold=tuple(GoldParagraph(title=each.title, text=each.text) for each in (BRIDGE, LUND)),
        kinds={"type": "bridge" if key < "n" else "other"},
    )


@pytest.fixture
def towns(engine: Engine) -> Engine:
    """The store with a closed run of IRCoT over these questions."""
    begin(engine)
    carry_out(engine)
    assert close_runs(engine) == [RUN]
    return engine


def begin(engine: Engine) -> None:
    spec = find_system("ircot")
    chosen = msgspec.to_builtins(spec.settings()) | {"max_sentences": 3}
    submit(
        engine,
        replace(submission(), id=RUN, settings=chosen, provenance={"cotrail": "0"}),
        [asked(key) for key in SCRIPTS],
        find_system,
    )


def carry_out(engine: Engine) -> None:
    ledger = Ledger(engine, "w", LEASE, find_system)
    with engine.connect() as connection:
        keys = {row.id: row.key for row in connection.execute(select(questions.c.id, questions.c.key))}
    messages = unsent(engine)
    while messages:
        claims = [claim for claim in ledger.claim(messages) if claim is not None]
        done = [
            Completion(claim=claim, outcome=outcome(claim, keys[claim.question_id]), milliseconds=1.0)
            for claim in claims
        ]
        messages = [message for following in ledger.commit(done) for message in following]


def outcome(claim: Claim, key: str) -> Outcome:
    action, script = claim.action, SCRIPTS[key]
    if script.fails:
        return Failure(type="StepError", message="the index is gone")
    if isinstance(action, Retrieve):
        found = (BRIDGE,) if "born? (" in action.query else script.second
        hits = (Hit(paragraph=each, rank=rank, score=1.0 / rank) for rank, each in enumerate(found, start=1))
        return Retrieved(hits=tuple(hits))
    assert isinstance(action, Reason | Read)
    return written(
        action, script, script.answer if isinstance(action, Read) else script.sentences[len(action.prompt.written)]
    )


def written(action: Prompted, script: Script, says: str) -> Generated:
    prompt = action.prompt
    kept, demonstrations = min(script.fit, len(prompt.yielding)), len(prompt.demonstrations.items)
    return Generated(
        text=says,
        raw=says,
        demonstrations=demonstrations,
        paragraphs=kept,
        prompt_digest=prompt.keep(demonstrations, kept).digest,
        prompt_tokens=0,
        cached_prompt_tokens=0,
        generated_tokens=0,
    )


def errors_of(engine: Engine) -> RunErrors:
    with engine.connect() as connection:
        record = read_run(connection, RUN)
        return run_errors(record, check_questions(connection, record))


def labels(engine: Engine) -> list[tuple[str, str, str, str]]:
    with engine.connect() as connection:
        stored = read_cause_labels(connection, RUN)
    return [(each.question_id, each.annotator, each.cause.value, each.note) for each in stored]


@pytest.fixture
def annotate(cotrail: Cotrail, monkeypatch: pytest.MonkeyPatch) -> Annotate:
    """`cotrail annotate RUN --causes`, with what is typed line by line."""
    monkeypatch.setenv("LOGNAME", "ann")

    def annotate(*arguments: object, typed: str = "") -> Result:
        lines = "".join(f"{line}\n" for line in typed.split("|"))
        return CliRunner().invoke(app, ["annotate", RUN, "--causes", *map(str, arguments)], input=lines)

    return annotate


# The causes


def test_each_wrong_answer_of_a_run_has_the_cause_that_its_steps_show(towns: Engine) -> None:
    errors = errors_of(towns)
    assert {each.question_id: each.cause for each in errors.wrong} == CAUSES
    assert errors.outcomes == {"right": 1, "wrong": 8, "open": 0, "cancelled": 0, "unscored": 0}
    assert sum(each.questions for each in errors.causes) == 8
    facts = {each.question_id: each.facts for each in errors.wrong}
    assert facts["missing"] == "1 of 2 gold paragraphs was not in any result of 2 searches: 'Ada Lund'"
    assert facts["hidden"] == "gold paragraph 'Ada Lund' was found at step 2, rank 1, and never shown"
    assert facts["limit"] == "the limit of sentences ended it before its chain stated an answer"
    assert facts["failed"] == "the question is failed: StepError: the index is gone"
    assert facts["reader"] == "sentence 2 states 'Marl', and the answer given is 'Grett'"


def test_questions_under_way_are_not_wrong_yet(engine: Engine) -> None:
    begin(engine)
    errors = errors_of(engine)
    assert errors.outcomes == {"right": 0, "wrong": 0, "open": len(SCRIPTS), "cancelled": 0, "unscored": 0}
    assert errors.causes == ()


def test_looking_changes_nothing_that_is_sealed(towns: Engine, annotate: Annotate) -> None:
    with towns.connect() as connection:
        before = read_run(connection, RUN)
    annotate(typed="y|q")
    with towns.connect() as connection:
        assert read_run(connection, RUN) == before
    assert before.digest


# The terminal


def test_the_table_counts_them_and_the_list_has_the_facts(towns: Engine, cotrail: Cotrail) -> None:
    said = cotrail("errors", RUN, "--questions", "--kinds").stdout
    assert "towns: 9 questions: 1 right, 8 wrong" in said
    line = next(line for line in said.splitlines() if line.startswith("gold never found"))
    assert line.split() == ["gold", "never", "found", "1", "12.5", "%", "0.3", "to", "52.7", "2"]
    assert "5  missing  gold never found" in said
    assert "gold paragraph 'Ada Lund' was found at step 2, rank 1, and never shown" in said
    assert "also shown but not used" in said
    assert "type" in said
    assert "bridge" in said


def test_json_has_all_of_it(towns: Engine, cotrail: Cotrail) -> None:
    said = json.loads(cotrail("errors", RUN, "--json").stdout)
    assert {each["question_id"]: each["cause"] for each in said["wrong"]} == CAUSES
    assert said["kinds"]["type"]["other"] == {"reader wrong": 1, "shown but not used": 1}


@pytest.mark.parametrize("ending", [".svg", ".png"])
def test_the_figure_is_written_the_same_each_time(towns: Engine, cotrail: Cotrail, tmp_path: Path, ending: str) -> None:
    one, two = tmp_path / f"one{ending}", tmp_path / f"two{ending}"
    assert f"Wrote {one}" in cotrail("errors", RUN, "--figure", one).stdout
    cotrail("errors", RUN, "--figure", two)
    assert one.read_bytes() == two.read_bytes()
    assert one.stat().st_size > 1000


def test_a_figure_of_another_form_is_refused(towns: Engine, cotrail: Cotrail, tmp_path: Path) -> None:
    refused = cotrail("errors", RUN, "--figure", tmp_path / "causes.pdf")
    assert isinstance(refused.exception, InputError)
    assert "neither SVG nor PNG" in str(refused.exception)


def test_the_report_has_the_causes(towns: Engine, annotate: Annotate) -> None:
    annotate(typed="9 odd|q")
    with towns.connect() as connection:
        html = run_report(connection, RUN).html
    assert "Share of the 8 wrong answers by cause" in html
    assert all(f'id="f-cause-{cause.slug}"' in html for cause in CAUSES.values())
    assert "ann says <b>unexplained</b>: odd" in html


# Labels by hand


def test_what_is_typed_is_stored_answer_by_answer(towns: Engine, annotate: Annotate) -> None:
    said = annotate(typed="y|9 nobody knows|x|y\tx|s|2|q").stdout
    assert labels(towns) == [
        ("form", "ann", "answer form only", ""),
        ("reader", "ann", "unexplained", "nobody knows"),
        ("missing", "ann", "answer form only", ""),
    ]
    assert "found at step 2, rank 1; shown at step 3; used" in said
    assert "published: Marl" in said
    assert "ann has labelled 3 of 8 wrong answers" in said
    again = annotate(typed="q").stdout
    assert "question limit; 5 answers to go" in again


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("right", "question 'right': its answer is right; a label says why an answer is wrong"),
        ("cancelled", "question 'cancelled': it was never asked to its end; a label says why an answer is wrong"),
    ],
)
def test_nothing_is_said_of_the_cause_where_the_answer_is_not_wrong(
    towns: Engine, cotrail: Cotrail, question: str, why: str
) -> None:
    """Neither by the route nor by the page's form; and no other label of the same request is stored."""
    if question != "right":
        with towns.begin() as connection:
            amending(connection)
            of_it = update(questions).where(questions.c.run_id == RUN, questions.c.key == "right")
            connection.execute(of_it.values(key=question, status=question, answer=None))
    said = [{"question_id": key, "annotator": "ann", "cause": Cause.FORM} for key in ("form", question)]
    with service() as client:
        refused = client.put(f"/v1/runs/{RUN}/cause-labels", json={"labels": said})
        form = client.post(f"/runs/{RUN}/questions/{question}/labels", data={"annotator": "ann", "cause": Cause.FORM})
        assert (refused.status_code, form.status_code) == (422, 422)
        assert why in refused.json()["detail"]
        assert why in unescape(form.text)
        assert labels(towns) == []
        assert client.put(f"/v1/runs/{RUN}/cause-labels", json={"labels": said[:1]}).status_code == 200
    assert [key for key, *_ in labels(towns)] == ["form"]


def test_undoing_takes_the_label_away_and_a_new_one_replaces_it(towns: Engine, annotate: Annotate) -> None:
    annotate(typed="y|u|3|u|u|4 late|q")
    assert labels(towns) == [("form", "ann", "limit", "late")]


def test_a_file_goes_out_is_filled_in_comes_back_and_is_compared_with_the_rules(
    towns: Engine, annotate: Annotate, cotrail: Cotrail, tmp_path: Path
) -> None:
    path = tmp_path / "causes.jsonl"
    assert "8 wrong answers in" in annotate("--export", path).stdout
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["by_rule"] for row in rows] == list(CAUSES.values())
    for row in rows:
        row["cause"] = "unexplained" if row["question_id"] == "unused" else row["by_rule"]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    assert "bob has labelled 8 of 8" in annotate("--import", path, "--annotator", "bob").stdout
    said = cotrail("errors", RUN).stdout
    # By chance 7 of 64 pairs are alike, so that kappa is (7/8 - 7/64) / (1 - 7/64) = 49/57.
    assert "bob labelled 8 answers: 7 as the rules do, 87.5 % (95 %: 47.3 to 99.7), Cohen's kappa 0.86" in said
    row = next(line for line in said.splitlines() if line.startswith("shown but not used") and "%" not in line)
    assert row.split() == ["shown", "but", "not", "used", *"00000001"]


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"run": "other"}, "a label of run 'other'"),
        ({"question_id": "right"}, "'right' has no wrong answer"),
        ({"answer": "Oslo!"}, "the answer isn't the one"),
        ({"cause": "bad luck"}, "cause"),
        ({"note": "\0"}, "NUL"),
    ],
)
def test_a_file_with_a_wrong_line_stores_nothing(
    towns: Engine, annotate: Annotate, tmp_path: Path, changed: dict[str, str], problem: str
) -> None:
    path = tmp_path / "causes.jsonl"
    annotate("--export", path)
    rows = [json.loads(line) | {"cause": "limit"} for line in path.read_text().splitlines()]
    rows[-1] |= changed
    path.write_text("\n".join(json.dumps(row) for row in rows))
    refused = annotate("--import", path)
    assert isinstance(refused.exception, InputError)
    assert problem in str(refused.exception)
    assert labels(towns) == []


def test_the_labels_of_a_run_go_with_it(towns: Engine, annotate: Annotate) -> None:
    annotate(typed="y|q")
    for _ in prune(towns, [RUN]):
        pass
    with towns.connect() as connection:
        assert connection.execute(select(cause_labels)).all() == []
