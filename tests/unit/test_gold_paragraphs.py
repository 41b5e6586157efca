"""Which gold paragraphs were found, and where."""

from cotrail.core.questions import GoldParagraph, Paragraph
from cotrail.models.queries.traces import Collected, TracedQuestion
from cotrail.services.results.exporting import trace
from cotrail.services.results.reasoning import gold_paragraphs, where
from cotrail.services.results.reports.run_report import run_page
from cotrail.services.runs.scores import scores_of
from tests.unit.made_results import COST
from tests.unit.made_runs import OWLS, progress, question, record, search

INK = Paragraph(id="ink", title="Ink", text="Stains.")
OTHER_INK = Paragraph(id="ink-2", title="Ink", text="Dries.")
PAPER = GoldParagraph(title="Paper", text="Made of pulp.", id="p-9")


def gold(paragraph: Paragraph) -> GoldParagraph:
    return GoldParagraph(title=paragraph.title, text=paragraph.text)


def asked(*wanted: GoldParagraph, collected: tuple[Paragraph, ...] = (OWLS,)) -> TracedQuestion:
    """Two searches: the first finds owls, the second ink."""
    return question(
        gold=wanted,
        collected=tuple(Collected(paragraph=each, step=0, query="birds", rank=1, score=1.0) for each in collected),
        steps=(search(0, OWLS), search(2, OWLS, INK, query="what stains")),
    )


def test_each_is_named_with_the_search_that_found_it_or_as_not_found() -> None:
    traced = asked(gold(OWLS), gold(INK), PAPER)
    owls, ink, paper = gold_paragraphs(traced, "jsonl")
    assert (owls.id, owls.collected, where(owls)) == (OWLS.id, True, "found by search 1 (step 0), rank 1")
    assert (ink.id, ink.collected) == ("ink", False)
    assert where(ink) == "found by search 2 (step 2), rank 2, then left out"
    assert ink.found is not None
    assert ink.found.query == "what stains"
    assert (paper.id, paper.title, paper.collected, where(paper)) == ("p-9", "Paper", False, "not found")


def test_another_paragraph_of_the_same_title_is_said() -> None:
    [found] = gold_paragraphs(asked(gold(OTHER_INK)), "jsonl")
    assert (found.found, found.id) == (None, None)
    assert where(found) == "not found; another paragraph of its title by search 2 (step 2), rank 2"


def test_those_that_are_named_are_those_of_the_recall() -> None:
    """By the dataset's own comparison, each once, and without the pinned passage's."""
    accented, plain = GoldParagraph(title="Owlsé", text=OWLS.text), GoldParagraph(title="Owls", text=OWLS.text)
    found = Paragraph(id="o", title="Owls", text=OWLS.text)
    for dataset in ("jsonl", "hotpotqa"):
        traced = question(
            gold=(accented, plain, plain, PAPER),
            pinned=GoldParagraph(title="Paper", text=""),
            collected=(Collected(paragraph=found, step=0, query="", rank=1, score=1.0),),
            steps=(search(0, found),),
        )
        named = gold_paragraphs(traced, dataset)
        recall = scores_of(record(dataset=dataset), traced)["paragraph_recall"]
        assert recall == sum(each.collected for each in named) / len(named)
        assert [each.title for each in named][-1] in ("Owls", "Owlsé")
        assert all(each.title != "Paper" for each in named)


def test_the_page_and_the_json_name_them() -> None:
    traced = asked(gold(OWLS), PAPER)
    named = trace(record(), traced).gold_paragraphs
    assert [(each.id, each.collected) for each in named] == [(OWLS.id, True), ("p-9", False)]
    html = run_page(record(), progress([traced]), COST, [traced]).html
    assert "found by search 1 (step 0), rank 1" in html
    assert "<bdi>Paper</bdi></b> <small>p-9</small>" in html
    assert "not found" in html
