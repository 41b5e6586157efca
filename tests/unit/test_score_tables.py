"""Tables of a run's main scores by kind."""

from collections.abc import Sequence

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.evaluation.metrics.question_scores import KindedScores, kinded_means
from cotrail.services.results.scoring import SHOWN_KINDS, RunScores, kind_tables
from tests.unit.scored import question_scores

INK = Paragraph(id="1", title="Ink", text="Stains.")


def run(scored: Sequence[KindedScores]) -> RunScores:
    whole, kinds = kinded_means(scored)
    return RunScores(
        run="r",
        system="ircot",
        dataset="jsonl",
        questions=len(scored),
        finished=len(scored),
        failed=0,
        metrics=whole.metrics,
        intervals=whole.intervals,
        kinds=kinds,
        steps=0,
        prompt_tokens=0,
        cached_prompt_tokens=0,
        generated_tokens=0,
    )


def asked(dataset: str = "jsonl", gold: Sequence[GoldParagraph] = (), **kinds: str) -> KindedScores:
    return KindedScores(kinds=kinds, scores=question_scores(dataset, "ink", ("ink",), [INK], gold))


def test_a_sort_of_which_all_questions_are_one_kind_has_no_table() -> None:
    assert list(kind_tables(run([asked(level="hard"), asked(level="hard"), asked()]))) == []
    [table] = kind_tables(run([asked(level="hard", type="bridge"), asked(level="hard", type="comparison")]))
    assert (table.sort, [row.kind for row in table.rows], table.note) == ("type", ["bridge", "comparison"], "")


def test_a_table_has_the_first_of_the_main_metrics_that_the_run_has() -> None:
    gold = (GoldParagraph(title="Ink", text="Stains."),)
    for of, metrics in (
        ({}, ("answer_em", "answer_f1", "cover_em")),
        ({"gold": gold}, ("answer_em", "answer_f1", "paragraph_recall")),
        ({"dataset": "eli5"}, ("rouge_l", "answer_em", "answer_f1")),
    ):
        [table] = kind_tables(run([asked(**of, type="bridge"), asked(**of, type="comparison")]))
        assert table.metrics == metrics
        assert all(len(row.means) == len(metrics) for row in table.rows)


def test_only_the_largest_of_many_kinds_are_shown() -> None:
    questions = [asked(relation=f"r{number:02}") for number in range(SHOWN_KINDS + 2) for _ in range(number + 1)]
    [table] = kind_tables(run(questions))
    assert [row.questions for row in table.rows] == list(range(SHOWN_KINDS + 2, 2, -1))
    assert table.note == "and 2 smaller kinds, which cotrail score --json has too"
