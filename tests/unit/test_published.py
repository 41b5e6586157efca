import re
from pathlib import Path

import pytest

from cotrail.evaluation.experiments.ircot.cells import LAYOUTS
from cotrail.evaluation.experiments.report_tables import EMAndF1, Mean, TableRow
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


def answer_f1(layout: str, model: str, system: str, reader: str) -> dict[str, tuple[float, float]]:
    (row,) = (
        each.values
        for each in LAYOUTS[layout].rows
        if (each.values["model"], each.values.get("system"), each.values["reader"]) == (model, system, reader)
    )
    pairs = {name: value for name, value in row.items() if isinstance(value, Mean)}
    return {name: (each.mean, each.deviation or 0.0) for name, each in pairs.items()}


def differences(metric: str, model: str = "") -> dict[str, float]:
    """What section 5 says, by dataset and model."""
    rows = [row.values for row in LAYOUTS["differences"].rows if row.values["metric"] == metric]
    of_model = [row for row in rows if row["model"] == (model or row["model"])]
    return {f"{row['place']}{'' if model else row['model']}": float(str(row["difference"])) for row in of_model}


def scores(row: TableRow) -> dict[str, EMAndF1]:
    return {place: value for place, value in row.values.items() if isinstance(value, EMAndF1)}


def means(model: str, system: str, reader: str) -> dict[str, float]:
    return {name: mean for name, (mean, _) in answer_f1("readers", model, system, reader).items()}


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
        ours = [answer_f1("readers", model, system, reader)[d] for model in ("Flan-T5-XXL", "GPT3") for d in DATASETS]
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
        assert printed(row) == [answer_f1("without_reader", model, "ircot", reader)[dataset] for dataset in DATASETS]


def test_tables_1_and_3_are_the_papers() -> None:
    text = paper("ircot-acl2023-pdf-text.txt")
    cells = r"\s+".join([r"([\d.]+|\u2212) \| ([\d.]+|\u2212)"] * 5)
    rows = re.findall(rf"^(\w+)(?: QA)? \((.+?)\)(?: \*)? {cells}$", text, re.MULTILINE)
    assert len(rows) == len(LAYOUTS["answers"].rows) == 8
    for (system, reference, *numbers), ours in zip(rows, LAYOUTS["answers"].rows, strict=True):
        assert system.lower() == str(ours.values["system"]).lower()
        assert reference == (ours.published.partition("(")[2].rstrip(")") or "ours")
        places = ("hotpotqa_bridge", "hotpotqa", "2wikimultihopqa", "musique_2hop", "musique")
        pairs = [scores(ours).get(place, EMAndF1(em=None, f1=None)) for place in places]
        known = [(pair.em and pair.em.mean, pair.f1 and pair.f1.mean) for pair in pairs]
        shares = [None if number == "\u2212" else round(float(number) / 100, 3) for number in numbers]
        assert shares == [share for pair in known for share in pair]


def test_table_1_has_the_systems_of_the_paper_and_table_3_adds_two() -> None:
    added = [row.values["system"] for row in LAYOUTS["answers"].rows if row.published.startswith("table 3")]
    assert added == ["DecomP", "DSP"]


@each_case(("model", "reader"), [("Flan-T5-XXL", "direct"), ("GPT3", "cot")])
def test_what_section_5_says_of_f1_follows_from_table_4(model: str, reader: str) -> None:
    stated = differences("answer_f1", model)
    rows = [row.values for row in LAYOUTS["differences"].rows]
    assert {row["reader"] for row in rows if (row["metric"], row["model"]) == ("answer_f1", model)} == {reader}
    ours, theirs = means(model, "ircot", reader), means(model, "one-step", reader)
    assert stated == {name: round(ours[name] - theirs[name], 3) for name in stated}


def test_what_section_5_says_of_recall_is_its_text() -> None:
    text = " ".join(paper("ircot-acl2023.txt").split())
    flan = re.search(
        r"on HotpotQA by ([\d.]+), on 2WikiMultihopQA by ([\d.]+), on MuSiQue by ([\d.]+), and on IIRC by ([\d.]+) "
        r"points\. For GPT3, this improvement is by ([\d.]+), ([\d.]+), ([\d.]+), and ([\d.]+) points",
        text,
    )
    assert flan
    ours = [round(100 * value, 1) for value in differences("paragraph_recall").values()]
    assert ours == [float(number) for number in flan.groups()]


@each_case(("model", "reader"), [("Flan-T5-XXL", "direct"), ("GPT3", "cot")])
def test_table_6_repeats_table_4(model: str, reader: str) -> None:
    assert answer_f1("without_reader", model, "ircot", reader) == answer_f1("readers", model, "ircot", reader)


def test_table_3_repeats_the_f1_of_table_4() -> None:
    own = scores(LAYOUTS["answers"].rows[-1])
    f1 = means("GPT3", "ircot", "cot")
    assert {name: own[name].f1 for name in f1 if name in own} == {
        name: Mean(mean=score) for name, score in f1.items() if name != "iirc"
    }


def test_every_score_is_a_share_of_one() -> None:
    rows = [row for layout in ("readers", "without_reader") for row in LAYOUTS[layout].rows]
    values = [value for row in rows for value in row.values.values() if isinstance(value, Mean)]
    shares = [share for value in values for share in (value.mean, value.deviation or 0.0)]
    shares += [*differences("paragraph_recall").values(), *differences("answer_f1").values()]
    assert len(shares) == 16 * 4 * 2 + 15
    assert all(0 < share < 1 for share in shares)
