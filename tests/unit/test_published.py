import re
from pathlib import Path

import pytest

from cotrail.evaluation.experiments.ircot.published import published
from tests.cases import each_case

PAPERS = Path(__file__).parents[3] / "shared" / "papers"
TEXTS = ("ircot-acl2023.txt", "ircot-acl2023-pdf-text.txt")
DATASETS = ("hotpotqa", "2wikimultihopqa", "musique", "iirc")
NUMBER = re.compile(r"(\d+\.\d)± (\d\.\d)")


def paper(name: str) -> str:
    path = PAPERS / name
    if not path.exists():
        pytest.skip(f"{path} isn't here")
    return path.read_text("utf-8")


def answer_f1(where: str, model: str, system: str, reader: str) -> dict[str, tuple[float, float]]:
    (row,) = (
        each
        for each in published().answer_f1
        if (each.where, each.model, each.system, each.reader) == (where, model, system, reader)
    )
    return dict(row.scores)


def means(model: str, system: str, reader: str) -> dict[str, float]:
    return {name: mean for name, (mean, _) in answer_f1("table 4", model, system, reader).items()}


def printed(line: str) -> list[tuple[float, float]]:
    """The numbers `mean± deviation` of a line, as shares of 1."""
    return [(round(float(mean) / 100, 3), round(float(spread) / 100, 3)) for mean, spread in NUMBER.findall(line)]


@each_case("name", TEXTS)
def test_table_4_is_the_papers(name: str) -> None:
    text = paper(name)
    rows = [line for line in text.splitlines() if len(NUMBER.findall(line)) == 8]
    kinds = [(system, reader) for system in ("no-retrieval", "one-step", "ircot") for reader in ("direct", "cot")]
    assert len(rows) == len(kinds)
    for (system, reader), row in zip(kinds, rows, strict=True):
        ours = [answer_f1("table 4", model, system, reader)[d] for model in ("Flan-T5-XXL", "GPT3") for d in DATASETS]
        assert printed(row) == ours


@each_case("name", TEXTS)
def test_table_6_is_the_papers(name: str) -> None:
    text = paper(name)
    rows = [line for line in text.splitlines() if len(NUMBER.findall(line)) == 4]
    kinds = [
        (model, reader) for model, best in (("Flan-T5-XXL", "direct"), ("GPT3", "cot")) for reader in (best, "none")
    ]
    assert len(rows) == len(kinds)
    for (model, reader), row in zip(kinds, rows, strict=True):
        assert printed(row) == [answer_f1("table 6", model, "ircot", reader)[dataset] for dataset in DATASETS]


def test_tables_1_and_3_are_the_papers() -> None:
    text = paper("ircot-acl2023-pdf-text.txt")
    cells = r"\s+".join([r"([\d.]+|\u2212) \| ([\d.]+|\u2212)"] * 5)
    rows = re.findall(rf"^(\w+)(?: QA)? \((.+?)\)(?: \*)? {cells}$", text, re.MULTILINE)
    assert len(rows) == len(published().leaderboard) == 8
    for (system, reference, *numbers), ours in zip(rows, published().leaderboard, strict=True):
        assert system.lower() == ours.system.lower()
        assert reference == (ours.reference or "ours")
        places = ("hotpotqa_bridge", "hotpotqa", "2wikimultihopqa", "musique_2hop", "musique")
        known = [(score.em, score.f1) if (score := ours.scores.get(place)) else (None, None) for place in places]
        shares = [None if number == "\u2212" else round(float(number) / 100, 3) for number in numbers]
        assert shares == [share for pair in known for share in pair]


def test_table_1_has_the_systems_of_the_paper_and_table_3_adds_two() -> None:
    added = [each.system for each in published().leaderboard if each.where == "table 3"]
    assert added == ["DecomP", "DSP"]


@each_case(("model", "reader"), [("Flan-T5-XXL", "direct"), ("GPT3", "cot")])
def test_what_section_5_says_of_f1_follows_from_table_4(model: str, reader: str) -> None:
    (stated,) = (each for each in published().differences if (each.metric, each.model) == ("answer_f1", model))
    ours, theirs = means(model, "ircot", reader), means(model, "one-step", reader)
    assert stated.reader == reader
    assert stated.scores == {name: round(ours[name] - theirs[name], 3) for name in stated.scores}


def test_what_section_5_says_of_recall_is_its_text() -> None:
    text = " ".join(paper("ircot-acl2023.txt").split())
    flan = re.search(
        r"on HotpotQA by ([\d.]+), on 2WikiMultihopQA by ([\d.]+), on MuSiQue by ([\d.]+), and on IIRC by ([\d.]+) "
        r"points\. For GPT3, this improvement is by ([\d.]+), ([\d.]+), ([\d.]+), and ([\d.]+) points",
        text,
    )
    assert flan
    stated = [each.scores for each in published().differences if each.metric == "paragraph_recall"]
    ours = [round(100 * row[dataset], 1) for row in stated for dataset in DATASETS]
    assert ours == [float(number) for number in flan.groups()]


@each_case(("model", "reader"), [("Flan-T5-XXL", "direct"), ("GPT3", "cot")])
def test_table_6_repeats_table_4(model: str, reader: str) -> None:
    assert answer_f1("table 6", model, "ircot", reader) == answer_f1("table 4", model, "ircot", reader)


def test_table_3_repeats_the_f1_of_table_4() -> None:
    own = published().leaderboard[-1]
    f1 = means("GPT3", "ircot", "cot")
    assert {name: own.scores[name].f1 for name in f1 if name in own.scores} == {
        name: score for name, score in f1.items() if name != "iirc"
    }


def test_every_score_is_a_share_of_one() -> None:
    rows = [score for row in published().answer_f1 for pair in row.scores.values() for score in pair]
    rows += [score for each in published().differences for score in each.scores.values()]
    rows += [score for each in published().error_reductions for score in each.scores.values()]
    assert len(rows) == 16 * 4 * 2 + 15 + 2
    assert all(0 < score < 1 for score in rows)
