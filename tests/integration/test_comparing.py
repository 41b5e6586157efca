"""`cotrail compare` on real runs: its tables by hand, what it refuses, unfinished runs, where traces part, its page."""

import json
import random
import re
from itertools import combinations, takewhile
from pathlib import Path
from statistics import fmean
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from sqlalchemy import Engine, select, update

from cotrail.evaluation.comparison.differences import difference_interval, fixed_differences
from cotrail.evaluation.metrics.confidence_intervals import confidence_interval
from cotrail.evaluation.plans import PlannedComparison
from cotrail.models.commands.control import cancel_questions
from cotrail.models.queries.runs import read_run
from cotrail.models.schema.seals import amending
from cotrail.models.schema.tables import questions, runs
from cotrail.services.results import comparing, comparison_tables
from cotrail.services.results.comparing import MOST_TRACED, compare, metric_columns, summarized_columns
from cotrail.services.results.comparison_words import design, headline
from cotrail.services.results.paired_questions import PairedQuestions, list_paired_questions
from cotrail.services.results.reports.comparison_page import FORMATS, write_front
from cotrail.services.results.scoring import read_scores
from cotrail.services.results.summarizing import scores_of, summarize
from cotrail.services.runs.conducting import recorded_run
from cotrail.services.runs.scores import question_costs
from tests.integration.compared import HALF, PRICED, RIGHT, WRONG, answered, asked
from tests.integration.conftest import Cotrail
from tests.integration.stepping import close_runs
from tests.unit.test_plans import PLAN as SEALED
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
    corrected = [min(1.0, p_value * len(PAIRS)) for p_value in p_values]
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
    other = [replace(each, text=f" {each.text}") for each in asked(2)]
    answered(engine, "other", [RIGHT] * 2, questions=other)
    answered(engine, "unscored", [RIGHT] * 2, questions=[replace(each, answers=()) for each in asked(2)])
    assert "no question is in all of the runs alpha, later" in refused(cotrail, "alpha", "later")
    assert (
        "question 'q0' has other words in the runs alpha and other, 'Who built number 0?' and ' Who built number 0?' "
        "from character 1 on"
    ) in refused(cotrail, "alpha", "other")
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


@pytest.mark.usefixtures("cotrail")
def test_the_matrix_from_summaries_is_the_one_from_the_records(
    engine: Engine, five: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def matrix() -> list[PairedQuestions]:
        return [list_paired_questions("alpha", "bravo", metric=metric, limit=7) for metric in ("", "answer_f1")]

    scored = matrix()
    for run in five:
        assert summarize(engine, run, lambda: True)
    monkeypatch.setattr(comparing, "scores_by_question", pytest.fail)
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
        comparison = compare(connection, ("alpha", "bravo"))
    for ending in FORMATS:
        one, other = (tmp_path / f"{name}{ending}" for name in ("one", "other"))
        write_front(comparison, one)
        write_front(comparison, other)
        assert one.read_bytes() == other.read_bytes()
    assert "no figure's file" in refused(cotrail, "alpha", "bravo", "--figure", str(tmp_path / "one.txt"))


def test_what_a_budget_left_over_is_in_no_score_and_in_no_comparison(engine: Engine, cotrail: Cotrail) -> None:
    """Two runs with the same answers, one of them cut by its budget: neither is worse, and 24 questions are told of."""
    answers = [RIGHT, WRONG] * 15
    answered(engine, "whole", answers)
    cut = answered(engine, "cut", answers, ending=6)
    with engine.begin() as connection:
        open_ones = select(questions.c.id).where(questions.c.run_id == cut, questions.c.status == "open")
        assert cancel_questions(connection, connection.execute(open_ones).scalars().all(), "limit: run steps") == 24
    assert close_runs(engine) == [cut]
    for run, number in (("whole", 30), ("cut", 6)):
        found = json.loads(cotrail("score", run, "--json").stdout)
        assert (found["metrics"]["answer_em"], found["intervals"]["answer_em"]["questions"]) == (0.5, number)
        assert (found["questions"], found["unasked"]) == (30, 30 - number)
        method = found["intervals"]["answer_em"]["method"]
        assert method == ("clopper-pearson" if run == "whole" else "empirical-bernstein")
        assert ("confidence sequences" in cotrail("score", run, "--all").stdout) is (run == "cut")
    first = cotrail("score", "cut").stdout.splitlines()[0]
    assert first.endswith("over 6 questions; 24 more were never asked, and count nowhere.")
    assert summarize(engine, cut, lambda: True)
    with engine.connect() as connection:
        assert summarized_columns(connection, read_run(connection, cut)) == metric_columns(
            connection, read_run(connection, cut)
        )
        em = next(iter(scores_of(connection, read_run(connection, cut)).values()))
        assert em["mean"] == 0.5
        interval = read_scores(connection, cut).intervals["answer_em"]
        assert interval is not None
        assert (em["low"], em["high"]) == (interval.low, interval.high)
        recorded = recorded_run(connection, cut)
        assert (recorded.size, recorded.unasked, sum(each.asked for each in recorded.questions)) == (30, 24, 6)
    compared_ = compared(cotrail, "whole", "cut")
    assert (compared_["questions"], compared_["left_out"]) == (6, 24)
    standing = compared_["runs"][1]["standing"]
    assert (standing["ended"], standing["unasked"], standing["limit"]) == (6, 24, "run steps")
    told = cotrail("compare", "whole", "cut").stdout
    assert "cut used up its budget (run steps): 24 of 30 questions were never asked, and count nowhere." in told
    assert "isn't finished" not in told
    for run in compared_["runs"]:
        interval = run["scores"]["answer_em"]["interval"]
        assert (interval["method"], interval["questions"]) == ("empirical-bernstein", 6)
    assert "95 % interval at every stop" in told
    whole = compared(cotrail, "whole", answered(engine, "other", answers))
    assert whole["runs"][0]["scores"]["answer_em"]["interval"]["method"] == "clopper-pearson"
    unasked = told.split("Scores\n")[1].splitlines()[:3]
    assert ["Not asked" in unasked[0], *(line.split()[3] for line in unasked[1:])] == [True, "-", "24"]
    assert [run["scores"]["answer_em"]["mean"] for run in compared_["runs"]] == [0.5, 0.5]


@pytest.mark.parametrize(
    ("provenance", "left_over", "said"),
    [
        ({}, 24, "cut was cancelled: 24 of 30 questions were never asked, and count nowhere."),
        ({}, 4, "cut isn't finished: 6 of 30 questions have ended, 4 were never asked."),
        (
            {"until": "width(answer_f1) < 0.5"},
            24,
            "cut was asked until width(answer_f1) < 0.5: 24 of 30 questions were never asked.",
        ),
    ],
)
def test_a_run_that_was_not_asked_to_its_end_says_how_many_were_never_asked(
    engine: Engine, cotrail: Cotrail, provenance: dict[str, str], left_over: int, said: str
) -> None:
    answered(engine, "whole", [RIGHT, WRONG] * 15)
    answered(engine, "cut", [RIGHT, WRONG] * 15, ending=6, provenance=PRICED | provenance)
    with engine.begin() as connection:
        open_ones = select(questions.c.id).where(questions.c.run_id == "cut", questions.c.status == "open")
        ids = connection.execute(open_ones.order_by(questions.c.position.desc())).scalars().all()
        ended_by = f"until: {provenance['until']}" if provenance else None
        assert cancel_questions(connection, ids[:left_over], ended_by) == left_over
    assert said in cotrail("compare", "whole", "cut").stdout
    assert compared(cotrail, "whole", "cut")["runs"][1]["standing"]["unasked"] == left_over


def test_a_number_of_paragraphs_has_no_better(engine: Engine, cotrail: Cotrail) -> None:
    answered(engine, "few", [RIGHT] * 12)
    answered(engine, "many", [RIGHT] * 12)
    with engine.connect() as connection:
        found = compare(connection, ("few", "many"), metrics=("paragraphs_collected",))
    assert found.front is None
    [pair] = found.pairs
    [more] = fixed_differences([[1.0, 2.0] * 6], float("inf"))
    told = replace(found, pairs=(replace(pair, differences={"paragraphs_collected": more}),))
    said = [headline(told), *design(told)]
    assert said[0].startswith("few has 1.50 Paragraphs collected more than many (95 % interval 1.17 to 1.83, p < 0.001")
    assert "which have no best value, neither run is better" in said[-1]
    assert "better" not in said[0]


@pytest.mark.parametrize(
    ("alpha", "least", "verdict", "said"),
    [
        (0.01, 0.2, "better", ", p < 0.001)."),
        (0.0001, None, "undecided", " The plan of alpha asks for more: p = 0.000488 is above its alpha of 0.0001."),
        (
            0.05,
            0.6,
            "undecided",
            " The plan of alpha asks for more: differences below 60.0 points Answer F1 don't matter.",
        ),
    ],
)
def test_a_comparison_is_made_by_its_plan(
    engine: Engine, cotrail: Cotrail, alpha: float, least: float | None, verdict: str, said: str
) -> None:
    """Twelve wins of thirty: 40 points with a p-value of 2 in 4,096."""
    comparison = PlannedComparison(others=("bravo",), metric="answer_f1", alpha=alpha, smallest_difference=least)
    plan = replace(SEALED, metrics=("answer_em", "answer_f1"), comparison=comparison)
    provenance = {**PRICED, "plan": msgspec.to_builtins(plan)}
    answered(engine, "alpha", [RIGHT] * 12 + [WRONG] * 18, provenance=provenance)
    answered(engine, "bravo", [WRONG] * 30)
    found = compared(cotrail, "alpha", "bravo")
    assert found["metrics"][0]["name"] == "answer_f1"
    [pair] = found["pairs"]
    difference = pair["differences"]["answer_f1"]
    assert (difference["verdict"], pair["plans"]) == (verdict, ["alpha"])
    assert difference["interval"]["level"] == 1 - alpha
    assert difference["demands"] == {"alpha": alpha, "least": least or 0.0}
    assert pair["differences"]["answer_em"]["demands"] == {"alpha": 0.05, "least": 0.0}
    first = cotrail("compare", "bravo", "alpha").stdout.splitlines()[0]
    assert first.endswith(said)
    by_em = cotrail("compare", "alpha", "bravo", "--metric", "answer_em", "--all").stdout
    assert "The plan of alpha departs: the plan compares by answer_f1, and answer_em decides here." in by_em
    assert by_em.startswith("alpha is better than bravo by 40.0 points Answer EM (95 % interval ")


def test_the_headline_of_several_runs_says_of_each_what_its_pair_says(engine: Engine, cotrail: Cotrail) -> None:
    """Of four runs one is beaten, one is behind by less than what matters, and one isn't shown to be behind."""
    comparison = PlannedComparison(others=("small",), metric="answer_em", smallest_difference=0.5)
    plan = replace(SEALED, metrics=("answer_em",), comparison=comparison)
    answered(engine, "best", [RIGHT] * 40, provenance={**PRICED, "plan": msgspec.to_builtins(plan)})
    for run, right in {"small": 28, "beaten": 2, "level": 39}.items():
        answered(engine, run, [RIGHT] * right + [WRONG] * (40 - right))
    said = cotrail("compare", "best", "small", "beaten", "level", "--all").stdout
    assert said.splitlines()[0] == (
        "best has the highest Answer EM (100.0) and is better than beaten; no difference from level is shown; no "
        "difference that matters from small is shown."
    )
    assert "No difference that matters is shown between best and small: " in said
    assert "No difference is shown between best and level: " in said
    with engine.connect() as connection:
        found = compare(connection, ("best", "beaten", "level"), metrics=("answer_em",))
    beaten, level, other = found.pairs
    [nothing, behind] = fixed_differences([[], [-1.0] * 40], 1.0)
    told = (replace(beaten, differences={"answer_em": nothing}), replace(level, differences={"answer_em": behind}))
    assert headline(replace(found, pairs=(*told, other))) == (
        "best has the highest Answer EM (100.0); on the questions that both have, level has more; with beaten it "
        "can't be compared yet."
    )
    table = comparison_tables.differences(replace(found, pairs=(*told, other)), found.primary)
    assert table is not None
    assert [row.values["verdict"] for row in table.rows] == [None, "worse", "worse"]


def test_runs_that_stop_by_a_rule_in_other_orders_are_compared_as_far_as_both_got(
    engine: Engine, cotrail: Cotrail
) -> None:
    """Two seeds, two random orders of 40 questions, of which one run asked 25 and the other 30."""
    given, until = asked(40), {**PRICED, "until": "width(answer_em) < 0.1"}
    orders = {"alpha": random.Random(1).sample(given, 40), "bravo": random.Random(2).sample(given, 40)}
    for (run, order), (answer, ending) in zip(orders.items(), ((RIGHT, 25), (WRONG, 30)), strict=True):
        answered(engine, run, [answer] * 40, questions=order, provenance=until, ending=ending)
    ranks = [{each.id: rank for rank, each in enumerate(order)} for order in orders.values()]
    last = {key: max(of[key] for of in ranks) for key in ranks[0]}
    ended = {key for key in last if ranks[0][key] < 25 and ranks[1][key] < 30}
    both, back = (list(takewhile(ended.__contains__, sorted(of, key=last.__getitem__))) for of in ranks)
    found = compared(cotrail, "alpha", "bravo")
    assert len(both) > 10
    assert (found["is_fixed"], found["questions"], found["left_out"]) == (False, len(both), 40 - len(both))
    assert set(found["pairs"][0]["outcomes"]["wins"]) == set(both)
    assert compared(cotrail, "bravo", "alpha")["questions"] == len(back)


def test_repeats_of_a_run_are_one_system(engine: Engine, cotrail: Cotrail) -> None:
    """Three seeds of one run, of which each is right on other questions, and one run that has no repeats."""
    for number in range(3):
        repeat = {"repeat": {"of": "alpha-1", "number": number + 1, "times": 3}}
        right = [RIGHT if place % 3 == number else WRONG for place in range(24)]
        answered(engine, f"alpha-{number + 1}", right, provenance=PRICED | repeat)
    answered(engine, "bravo", [RIGHT] * 8 + [WRONG] * 16)
    found = compared(cotrail, "alpha-1", "bravo", "--repeats", "--metric", "answer_em")
    first, second = found["runs"]
    assert (first["id"], first["repeats"], second["repeats"]) == ("alpha-1", ["alpha-1", "alpha-2", "alpha-3"], [])
    assert first["scores"]["answer_em"]["mean"] == pytest.approx(1 / 3)
    [pair] = found["pairs"]
    difference = pair["differences"]["answer_em"]
    assert difference["mean"] == pytest.approx(0)
    expected = difference_interval([-2 / 3] * 8 + [1 / 3] * 16, 1.0)
    assert expected is not None
    assert (difference["interval"]["low"], difference["interval"]["high"]) == pytest.approx(
        (expected.low, expected.high)
    )
    named = compared(cotrail, "alpha-2", "bravo", "alpha-1", "alpha-3", "--metric", "answer_em")
    assert [run["repeats"] for run in named["runs"]] == [["alpha-2", "alpha-1", "alpha-3"], []]
    assert named["pairs"][0]["differences"]["answer_em"]["mean"] == pytest.approx(0)
    assert "alpha-1 stands for 3 repeats" in cotrail("compare", "alpha-1", "bravo", "--repeats", "--all").stdout
    alone = compared(cotrail, "alpha-1", "alpha-2", "--metric", "answer_em")
    assert [run["repeats"] for run in alone["runs"]] == [[], []]
    assert "repeat the same one" in refused(cotrail, "alpha-1", "alpha-2", "--repeats")


def test_costs_are_those_of_the_compared_questions(engine: Engine, cotrail: Cotrail) -> None:
    """A run of 12 questions, of which the last 8 are dear, is no dearer on the 4 that the other one has too."""
    given = asked(12)
    tokens = {question.text: 10 if place < 4 else 1000 for place, question in enumerate(given)}
    answered(engine, "alpha", [RIGHT] * 12, questions=given, tokens=tokens)
    answered(engine, "bravo", [RIGHT, WRONG, WRONG, WRONG], tokens=20)
    found = compared(cotrail, "alpha", "bravo")
    alpha, bravo = found["runs"]
    assert alpha["costs"]["generated_tokens"] == 4 * 10 + 8 * 1000
    assert alpha["costs_per_question"]["generated_tokens"] == 10
    assert alpha["costs_per_question"]["dollars"] == pytest.approx((100 + 10 * 10) / 1_000_000)
    assert bravo["costs_per_question"]["generated_tokens"] == 20
    assert found["front"]["front"] == ["alpha"]
    with engine.connect() as connection:
        costs = question_costs(connection, "alpha")
    dear = [100 + (10 if number < 4 else 1000) for number in range(12)]
    assert [costs[f"q{number}"].tokens for number in range(12)] == dear
    expected = confidence_interval([float(each) for each in dear], float("inf"))
    longer = compared(cotrail, "alpha", answered(engine, "carol", [WRONG] * 12))["runs"][0]
    assert expected is not None
    assert longer["cost_intervals"]["tokens"]["low"] == pytest.approx(expected.low)
    assert longer["costs_per_question"]["prompt_tokens"] == 100
    assert "95 % interval, dollars" in cotrail("compare", "alpha", "carol", "--all").stdout


def test_a_plan_that_names_a_repeat_has_the_comparison_with_all_of_them(engine: Engine, cotrail: Cotrail) -> None:
    comparison = PlannedComparison(others=("bravo-2",), metric="answer_em", alpha=0.01)
    plan = replace(SEALED, metrics=("answer_em", "answer_f1", "cover_em"), comparison=comparison)
    answered(engine, "alpha", [RIGHT] * 12, provenance=PRICED | {"plan": msgspec.to_builtins(plan)})
    for number in (1, 2):
        repeat = {"repeat": {"of": "bravo-1", "number": number, "times": 2}}
        answered(engine, f"bravo-{number}", [WRONG] * 12, provenance=PRICED | repeat)
    found = compared(cotrail, "alpha", "bravo-1", "--repeats")
    [pair] = found["pairs"]
    assert (pair["plans"], pair["differences"]["answer_em"]["demands"]["alpha"]) == (["alpha"], 0.01)
    assert not [words for words in found["runs"][0]["unplanned"] if "makes no comparison" in words]
