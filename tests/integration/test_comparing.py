"""`cotrail compare` on real runs: its tables by hand, what it refuses, unfinished runs, where traces part, its page."""

import json
import re
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, update

from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import runs
from cotrail.services.views import comparing_metrics
from cotrail.services.views.comparing import MOST_TRACED, ComparisonRequest, compare
from cotrail.services.views.paired_questions import PairedQuestions, PairRequest, paired_questions
from cotrail.services.views.reports.comparison_figures import FORMATS, write_front
from cotrail.services.views.summarizing import summarize
from tests.integration.compared import HALF, RIGHT, WRONG, answered, asked
from tests.integration.conftest import Cotrail
from tests.unit.test_printable import is_safe

ASKED = 30

FIVE = {
    "alpha": [RIGHT] * 24 + [HALF] * 3 + [WRONG] * 3,
    "bravo": [WRONG] * 6 + [RIGHT] * 16 + [HALF] * 4 + [WRONG] * 4,
    "carol": [WRONG] * 12 + [RIGHT] * 12 + [WRONG] * 6,
    "delta": [RIGHT] * 23 + [WRONG, *[HALF] * 3] + [WRONG] * 3,
    "echo": [WRONG] * 28 + [RIGHT, HALF],
}
"""The answers of five runs."""

SYSTEMS = {
    "alpha": "one-step",
    "bravo": "one-step",
    "carol": "no-retrieval",
    "delta": "one-step",
    "echo": "no-retrieval",
}
TOKENS = {"alpha": 40, "bravo": 10, "carol": 10, "delta": 30, "echo": 20}
EM = {RIGHT: 1.0, HALF: 0.0, WRONG: 0.0}
F1 = {RIGHT: 1.0, HALF: 2 / 3, WRONG: 0.0}

PAIRS = list(combinations(FIVE, 2))


@pytest.fixture
def five(engine: Engine) -> list[str]:
    return [answered(engine, run, answers, system=SYSTEMS[run], tokens=TOKENS[run]) for run, answers in FIVE.items()]


def compared(cotrail: Cotrail, *arguments: str) -> dict[str, Any]:
    said = cotrail("compare", *arguments, "--json")
    assert said.exit_code == 0, said.output
    found: dict[str, Any] = json.loads(said.stdout)
    return found


def refused(cotrail: Cotrail, *arguments: str) -> str:
    said = cotrail("compare", *arguments)
    assert said.exit_code != 0
    return str(said.exception)


def by_hand(run: str, other: str, scores: dict[str, float]) -> list[float]:
    return [scores[one] - scores[two] for one, two in zip(FIVE[run], FIVE[other], strict=True)]


def test_five_runs_in_one_command_have_the_tables_that_are_computed_by_hand(five: list[str], cotrail: Cotrail) -> None:
    from scipy import stats
    from statsmodels.stats.multitest import multipletests

    found = compared(cotrail, *five)
    assert (found["is_fixed"], found["questions"], found["left_out"]) == (True, ASKED, 0)
    assert [metric["name"] for metric in found["metrics"]][:2] == ["answer_em", "answer_f1"]
    for run in found["runs"]:
        for metric, scores in {"answer_em": EM, "answer_f1": F1}.items():
            by_question = [scores[answer] for answer in FIVE[run["id"]]]
            assert run["scores"][metric]["mean"] == pytest.approx(fmean(by_question))
    assert [(pair["first"], pair["second"]) for pair in found["pairs"]] == PAIRS
    p_values = []
    for pair in found["pairs"]:
        differences = by_hand(pair["first"], pair["second"], EM)
        wins, losses = ([f"q{n}" for n, each in enumerate(differences) if each == sign] for sign in (1, -1))
        ties = [f"q{n}" for n, each in enumerate(differences) if each == 0]
        assert pair["outcomes"] == {"wins": wins, "losses": losses, "ties": ties}
        assert pair["differences"]["answer_em"]["mean"] == pytest.approx(fmean(differences))

        assert pair["differences"]["answer_f1"]["mean"] == pytest.approx(
            fmean(by_hand(pair["first"], pair["second"], F1))
        )
        p_values.append(stats.binomtest(len(wins), len(wins) + len(losses)).pvalue)
    of_em = [pair["differences"]["answer_em"] for pair in found["pairs"]]
    assert [each["test"]["p_value"] for each in of_em] == pytest.approx(p_values)
    corrected = multipletests(p_values, method="holm")[1]
    assert [each["corrected"] for each in of_em] == pytest.approx(corrected)
    signs = [0 if p > 0.05 else each["mean"] for p, each in zip(corrected, of_em, strict=True)]
    verdicts = ["better" if each > 0 else "worse" if each < 0 else "undecided" for each in signs]
    assert [each["verdict"] for each in of_em] == verdicts
    assert {"better", "undecided"} <= set(verdicts)


def test_the_costs_are_those_of_the_steps_and_the_front_has_what_no_run_beats(
    five: list[str], cotrail: Cotrail
) -> None:
    found = compared(cotrail, *five)
    dollars = {}
    for run in found["runs"]:
        searches = 1 if SYSTEMS[run["id"]] == "one-step" else 0
        dollars[run["id"]] = (100 * 1 + TOKENS[run["id"]] * 10) / 1_000_000
        each = run["costs_per_question"]
        assert (each["calls"], each["searches"]) == (1, searches)
        assert (each["prompt_tokens"], each["generated_tokens"]) == (100, TOKENS[run["id"]])
        assert each["seconds"] == pytest.approx(0.002 * (1 + searches))
        assert each["dollars"] == pytest.approx(dollars[run["id"]])
        assert run["costs"]["dollars"] == pytest.approx(ASKED * dollars[run["id"]])
    quality = {run: sum(map(EM.get, answers)) for run, answers in FIVE.items()}  # type: ignore[arg-type]
    unbeaten = [
        run
        for run in FIVE
        if not any(
            (dollars[other] <= dollars[run] and quality[other] > quality[run])
            or (dollars[other] < dollars[run] and quality[other] >= quality[run])
            for other in FIVE
        )
    ]
    assert found["front"]["measure"] == "dollars"
    assert found["front"]["front"] == sorted(unbeaten, key=lambda run: dollars[run])
    assert {"alpha", "bravo"} <= set(unbeaten) < set(FIVE)


def test_kinds_of_questions_are_compared_each_by_itself(five: list[str], cotrail: Cotrail) -> None:
    found = compared(cotrail, *five[:2])
    differences = by_hand(five[0], five[1], EM)
    of_kinds = {"hard": differences[::3], "easy": [each for n, each in enumerate(differences) if n % 3]}
    assert {each["kind"]: each["difference"]["questions"] for each in found["kinds"]} == {"easy": 20, "hard": 10}
    for each in found["kinds"]:
        assert each["difference"]["mean"] == pytest.approx(fmean(of_kinds[each["kind"]]))


def test_the_text_begins_with_the_answer_and_names_questions(five: list[str], cotrail: Cotrail) -> None:
    from scipy import stats

    said = cotrail("compare", "alpha", "delta").stdout
    assert said.startswith("No difference is shown between alpha and delta: alpha has 3.3 points Answer EM more (")
    [needed] = re.findall(r"p = 1\.000\); about (\d+) questions would be needed", said.splitlines()[0])
    effect = stats.norm.isf(0.025) + stats.norm.isf(0.2)
    assert int(needed) == pytest.approx(30 * effect**2, abs=3)  # one win of 30: mean 1/30, deviation 1/root 30
    clear = cotrail("compare", "alpha", "echo", "--metric", "answer_f1").stdout
    points = 100 * fmean(by_hand("alpha", "echo", F1))
    assert clear.startswith(f"alpha is better than echo by {points:.1f} points Answer F1 (95 % interval ")
    assert "p < 0.001)." in clear.splitlines()[0]
    best = cotrail("compare", *five).stdout.splitlines()
    assert best[0].startswith("alpha has the highest Answer EM (80.0) and is better than ")
    assert sum(" after correction)" in line for line in best) == len(PAIRS)


def test_with_one_run_alone_each_other_one_is_compared(five: list[str], cotrail: Cotrail) -> None:
    found = compared(cotrail, *five, "--against", "carol")
    assert [(pair["first"], pair["second"]) for pair in found["pairs"]] == [
        (run, "carol") for run in five if run != "carol"
    ]
    assert "none of the runs" in refused(cotrail, "alpha", "bravo", "--against", "carol")


def test_swapped_runs_have_the_mirrored_differences(five: list[str], cotrail: Cotrail) -> None:
    [one], [other] = (compared(cotrail, *names)["pairs"] for names in (five[:2], five[1::-1]))
    for name, ours in one["differences"].items():
        theirs = other["differences"][name]
        assert theirs["mean"] == -ours["mean"]
        assert (theirs["test"], theirs["needed"]) == (ours["test"], ours["needed"])
        if ours["interval"]:
            ends = theirs["interval"]["low"], theirs["interval"]["high"]
            assert ends == (-ours["interval"]["high"], -ours["interval"]["low"])
    assert one["outcomes"]["wins"] == other["outcomes"]["losses"]


def test_traces_part_where_something_else_came_out_or_was_asked(engine: Engine, cotrail: Cotrail) -> None:
    answered(engine, "alpha", [RIGHT] * 3)
    answered(engine, "bravo", [WRONG] * 3)
    answered(engine, "wider", [WRONG] * 3, found=3)
    answered(engine, "blind", [WRONG] * 3, system="no-retrieval")
    found = compared(cotrail, "alpha", "bravo", "wider", "blind", "--against", "alpha")
    words = {pair["first"]: [each["parting"] for each in pair["shown"]] for pair in found["pairs"]}
    assert words["bravo"] == [{"step": 1, "words": f"same prompt, other text: “{WRONG}” / “{RIGHT}”"}] * 3
    assert (
        words["wider"]
        == [{"step": 0, "words": "asked the same, found other paragraphs: Town number 3 / no further one"}] * 3
    )
    assert [each["step"] for each in words["blind"]] == [0] * 3
    assert words["blind"][0]["words"] == "read / searched for “built number 0?”"


def test_only_so_many_traces_are_read_and_all_ids_are_there(engine: Engine, cotrail: Cotrail) -> None:
    number = MOST_TRACED + 5
    answered(engine, "alpha", [RIGHT] * number)
    answered(engine, "bravo", [WRONG] * number)
    [pair] = compared(cotrail, "alpha", "bravo")["pairs"]
    assert len(pair["shown"]) == MOST_TRACED
    assert len(pair["outcomes"]["wins"]) == number


def test_what_no_run_has_alone_is_compared_and_the_rest_is_counted(engine: Engine, cotrail: Cotrail) -> None:
    answered(engine, "alpha", [RIGHT] * 8, questions=asked(10)[2:])
    answered(engine, "bravo", [WRONG] * 7, questions=asked(10)[:7])
    found = compared(cotrail, "alpha", "bravo")
    assert found["questions"] == 5
    assert [run["standing"]["alone"] for run in found["runs"]] == [3, 2]
    assert found["pairs"][0]["outcomes"]["wins"] == ["q2", "q3", "q4", "q5", "q6"]


def test_runs_that_cannot_be_compared_are_refused(engine: Engine, cotrail: Cotrail) -> None:
    answered(engine, "alpha", [RIGHT] * 2)
    answered(engine, "later", [RIGHT] * 2, questions=asked(4)[2:])
    other = [replace(each, text=f"{each.text} And why?") for each in asked(2)]
    answered(engine, "other", [RIGHT] * 2, questions=other)
    answered(engine, "unscored", [RIGHT] * 2, questions=[replace(each, answers=()) for each in asked(2)])
    assert "no question is in all of the runs alpha, later" in refused(cotrail, "alpha", "later")
    assert "question 'q0' is “Who built number 0?” and “Who built number 0? And why?”" in refused(
        cotrail, "alpha", "other"
    )
    assert "two or more runs" in refused(cotrail, "alpha")
    assert "each named once" in refused(cotrail, "alpha", "alph")
    assert "no score in common" in refused(cotrail, "alpha", "unscored")
    assert "no question of unscored has answer_em" in refused(cotrail, "alpha", "unscored", "--metric", "answer_em")
    assert "did you mean" in refused(cotrail, "alpha", "later", "--metric", "answer_f2")


def test_an_unfinished_run_is_compared_up_to_its_first_open_question_at_every_stop(
    engine: Engine, cotrail: Cotrail
) -> None:
    answered(engine, "alpha", [RIGHT] * 60)
    answered(engine, "bravo", [WRONG] * 60, ending=50)
    found = compared(cotrail, "alpha", "bravo")
    assert (found["is_fixed"], found["questions"], found["left_out"]) == (False, 50, 10)
    difference = found["pairs"][0]["differences"]["answer_em"]
    assert (difference["test"], difference["corrected"], difference["questions"]) == (None, None, 50)
    assert (difference["interval"]["method"], difference["interval"]["level"]) == ("empirical-bernstein", 0.95)
    said = cotrail("compare", "alpha", "bravo").stdout
    assert said.startswith("alpha is better than bravo by 100.0 points Answer EM (95 % interval ")
    assert "at every stop" in said.splitlines()[0]
    assert "bravo isn't finished: 50 of 60 questions have ended." in said


def test_a_run_that_a_rule_stopped_is_compared_at_every_stop(engine: Engine, cotrail: Cotrail) -> None:
    for run, answer in {"alpha": RIGHT, "bravo": WRONG, "carol": WRONG}.items():
        answered(engine, run, [answer] * 10)
    with engine.begin() as connection:
        amending(connection)
        rule = {"until": "width(answer_f1) < 0.05"}
        connection.execute(update(runs).where(runs.c.id == "alpha").values(provenance=rule))
    found = compared(cotrail, "alpha", "bravo", "carol")
    assert (found["is_fixed"], found["questions"]) == (False, 10)
    levels = {pair["differences"]["answer_em"]["interval"]["level"] for pair in found["pairs"]}
    assert levels == {1 - 0.05 / 3}
    said = cotrail("compare", "alpha", "bravo", "carol").stdout
    assert "alpha was asked until width(answer_f1) < 0.05." in said
    assert "98.33 % for 3 comparisons" in said


def test_no_common_prefix_is_said_to_be_none(engine: Engine, cotrail: Cotrail) -> None:
    answered(engine, "alpha", [RIGHT] * 3)
    answered(engine, "bravo", [WRONG] * 3, ending=0)
    assert "none has ended in every run" in refused(cotrail, "alpha", "bravo")


HOSTILE = '<script>alert(1)</script>"&\x1b[2J\u202e{{ 7*7 }}'


def test_the_matrix_from_summaries_is_the_one_from_the_records(
    engine: Engine, five: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def matrix() -> list[PairedQuestions]:
        with engine.connect() as connection:
            return [
                paired_questions(connection, PairRequest(first="alpha", second="bravo", metric=metric, limit=7))
                for metric in ("", "answer_f1")
            ]

    scored = matrix()
    for run in five:
        assert summarize(engine, run, lambda: True)
    monkeypatch.setattr(comparing_metrics, "scores_by_question", pytest.fail)
    assert matrix() == scored


def test_the_page_has_everything_escaped_and_links_that_lead_somewhere(
    engine: Engine, cotrail: Cotrail, tmp_path: Path
) -> None:
    questions = [
        replace(each, id=f"{each.id}{HOSTILE}", text=f"{each.text}{HOSTILE}", kinds={HOSTILE: HOSTILE + str(n % 2)})
        for n, each in enumerate(asked(6))
    ]
    answered(engine, "alpha", [RIGHT] * 6, questions=questions)
    answered(engine, "bravo", [HOSTILE] * 6, questions=questions)
    answered(engine, "carol", [WRONG] * 6, questions=questions, system="no-retrieval")
    page, figure = tmp_path / "page.html", tmp_path / "front.svg"
    said = cotrail("compare", "alpha", "bravo", "carol", "--html", page, "--figure", figure)
    assert said.exit_code == 0, said.output
    assert is_safe(said.output)
    html = page.read_text("utf-8")
    assert is_safe(html)
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "{{ 7*7 }}" in html
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    targets = re.findall(r'href="#([^"]+)"', html)
    assert targets
    assert set(targets) <= set(ids)
    assert figure.read_text("utf-8").lstrip().startswith("<?xml")


def test_the_same_comparison_gives_the_same_figure(engine: Engine, cotrail: Cotrail, tmp_path: Path) -> None:
    for run, tokens in {"alpha": 10, "bravo": 400}.items():
        answered(engine, run, [RIGHT, WRONG, HALF], tokens=tokens)
    with engine.connect() as connection:
        comparison = compare(connection, ComparisonRequest(runs=("alpha", "bravo")))
    for ending in FORMATS:
        one, other = (tmp_path / f"{name}{ending}" for name in ("one", "other"))
        write_front(comparison, one)
        write_front(comparison, other)
        assert one.read_bytes() == other.read_bytes()
    assert "no figure's file" in refused(cotrail, "alpha", "bravo", "--figure", str(tmp_path / "one.txt"))
