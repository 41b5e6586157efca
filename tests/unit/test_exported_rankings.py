"""Rankings and judgements in TREC's forms: trec_eval comes to cotrail's own figures by them."""

from collections.abc import Sequence
from inspect import signature
from typing import get_args

import pytest
from msgspec.structs import replace

from cotrail.cli.commands.results import ExportForm, export
from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.errors import InputError
from cotrail.models.queries.traces import Collected, TracedQuestion
from cotrail.services.results.export_formats import FORMATS, FormatName, lines
from cotrail.services.results.exporting import REWARD, Source
from cotrail.services.runs.scores import shown_scores
from tests.cases import each_case
from tests.unit.made_runs import OWLS, question, record, search, written

RUN = record()
INK = Paragraph(id="100% ink\u202e", title="Ink", text="Stains.")
PULP = Paragraph(id="p", title="Pulp", text="Of wood.")
HENS = tuple(Paragraph(id=f"h{number}", title=f"Hen {number}", text="A hen.") for number in range(9))


def gold(paragraph: Paragraph, **fields: object) -> GoldParagraph:
    return GoldParagraph(title=paragraph.title, text=paragraph.text, **fields)  # type: ignore[arg-type]


def asked(key: str, searches: Sequence[Sequence[Paragraph]], *gold: GoldParagraph, **fields: object) -> TracedQuestion:
    """A question that searched so, and collected all that it found."""
    steps = [search(number, *found) for number, found in enumerate(searches)]
    first = {
        hit.paragraph.digest: Collected(paragraph=hit.paragraph, step=step.sequence, query="", rank=hit.rank, score=0)
        for step in reversed(steps)
        for hit in reversed(step.hits)
    }
    collected = [first[each.digest] for each in dict.fromkeys(each for found in searches for each in found)]
    told = {"gold": gold, "steps": (*steps, written(9, "a")), "collected": tuple(collected), **fields}
    return question(key, **told)


ASKED = (
    asked("q 1", [[*HENS, OWLS], [INK, OWLS]], gold(OWLS), gold(INK), gold(PULP)),
    asked("q2", [[PULP]], gold(PULP, grade=3, id="p"), gold(INK, id="ink")),
    asked("q3", [], gold(OWLS)),
    asked("q4", [[OWLS]]),
    asked(
        "q5",
        [[HENS[1], HENS[2]]],
        GoldParagraph(title="Hen 1", text="", by="title"),
        gold(HENS[2]),
        pinned=gold(HENS[3]),
    ),
    asked("q6", [[HENS[3], HENS[1]]], gold(HENS[1]), pinned=gold(HENS[3])),
)


def file(form: FormatName, questions: Sequence[TracedQuestion] = ASKED) -> str:
    return b"".join(lines(Source(record=RUN, questions=questions), form)).decode()


def test_a_ranking_is_of_all_that_a_question_collected_in_order() -> None:
    assert file("trec", ASKED[1:2]) == "q2 Q0 p 1 1 run-1\n"
    ranked = [line.split(" ") for line in file("trec", ASKED[:1]).splitlines()]
    assert [each[2] for each in ranked] == [*(hen.id for hen in HENS), "o", "100%25%20ink%E2%80%AE"]
    assert [int(each[3]) for each in ranked] == [12 - int(each[4]) for each in ranked] == [*range(1, 12)]
    assert {(each[0], each[1], each[5]) for each in ranked} == {("q%201", "Q0", "run-1")}


def test_each_search_is_a_topic_of_its_own() -> None:
    topics = [line.split(" ")[0] for line in file("trec-steps", ASKED[:2]).splitlines()]
    assert topics == ["q%201.0"] * 10 + ["q%201.1"] * 2 + ["q2.0"]
    judged = file("qrels-steps", ASKED[1:2])
    assert judged == "q2.0 0 p 3\nq2.0 0 ink 1\n"


def test_gold_is_judged_by_its_id_as_found_else_as_published_else_by_its_digest() -> None:
    assert file("qrels", ASKED[:2]).splitlines() == [
        "q%201 0 o 1",
        "q%201 0 100%25%20ink%E2%80%AE 1",
        f"q%201 0 unknown-{PULP.digest} 1",
        "q2 0 p 3",
        "q2 0 ink 1",
    ]


@each_case("cut", [5, 10, 100])
def test_recall_by_these_files_is_cotrail_s_own(cut: int) -> None:
    ranked: dict[str, list[str]] = {}
    for line in file("trec").splitlines():
        ranked.setdefault(line.split(" ")[0], []).append(line.split(" ")[2])
    judged: dict[str, set[str]] = {}
    for line in file("qrels").splitlines():
        judged.setdefault(line.split(" ")[0], set()).add(line.split(" ")[2])
    for each in ASKED:
        own, topic = shown_scores(RUN, each)[f"recall_at_{cut}"], each.key.replace(" ", "%20")
        assert own == (
            len(judged[topic] & {*ranked.get(topic, ())[:cut]}) / len(judged[topic]) if topic in judged else None
        )


def test_ir_measures_reads_them_and_agrees() -> None:
    measures = pytest.importorskip("ir_measures")
    qrels, run = [*measures.read_trec_qrels(file("qrels"))], [*measures.read_trec_run(file("trec"))]
    wanted = {measures.R @ 5: "recall_at_5", measures.R @ 10: "recall_at_10", measures.nDCG @ 10: "ndcg_at_10"}
    figures = {(each.query_id, each.measure): each.value for each in measures.iter_calc([*wanted], qrels, run)}
    for each in ASKED:
        own, topic = shown_scores(RUN, each), each.key.replace(" ", "%20")
        for measure, name in wanted.items():
            assert figures.get((topic, measure)) == (None if own[name] is None else pytest.approx(own[name])), (
                topic,
                name,
            )


@each_case(
    ("form", "lacking"), [("trec", "has collected no paragraphs"), ("qrels", "no questions with gold paragraphs")]
)
def test_a_run_without_any_is_refused(form: FormatName, lacking: str) -> None:
    for questions in ([], [replace(ASKED[2], gold=())]):
        with pytest.raises(InputError, match=f"run run-1 .*{lacking}.*; choose another format"):
            file(form, questions)


def test_the_command_has_every_format_and_the_folder() -> None:
    assert get_args(FormatName) == tuple(FORMATS)
    assert get_args(ExportForm) == (*FORMATS, "browsecomp-plus")
    assert signature(export).parameters["reward"].default == REWARD
