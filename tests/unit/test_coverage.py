from collections.abc import Sequence

from cotrail.core.questions import GoldParagraph, Paragraph, Question
from cotrail.evaluation.metrics.corpus_coverage import coverage, located

TEXTS = {
    "Ink": ["Ink is a dark fluid that stains paper and fingers alike, and it dries within the hour."],
    "Pen": ["A pen carries ink.", "A pen is held in the hand by people who write, and by few others."],
}


def of_title(title: str) -> list[Paragraph]:
    return [Paragraph(id=f"{title}{n}", title=title, text=text) for n, text in enumerate(TEXTS.get(title, []))]


def of_no_ids(_: Sequence[str]) -> dict[str, Paragraph]:
    return {}


def question(*gold: tuple[str, str]) -> Question:
    return Question(id="q1", text="?", gold=tuple(GoldParagraph(title=title, text=text) for title, text in gold))


def test_gold_that_differs_only_in_case_and_spaces_is_there() -> None:
    found = coverage(
        [question(("Ink", f"  {TEXTS['Ink'][0].upper()} "), ("Pen", "A pen carries  ink."))], of_title, of_no_ids
    )
    assert (found.gold, found.missing) == (2, ())


def test_gold_of_another_title_is_missing() -> None:
    found = coverage([question(("Ink", TEXTS["Ink"][0])), question(("Ink", TEXTS["Pen"][0]))], of_title, of_no_ids)
    assert found.gold == 2
    assert [each.paragraph.text for each in found.missing] == [TEXTS["Pen"][0]]


def test_gold_that_several_questions_share_counts_for_each() -> None:
    found = coverage([question(("Nib", "A nib."))] * 3, of_title, of_no_ids)
    assert (found.gold, len(found.missing)) == (3, 3)


def test_gold_with_small_differences_is_located() -> None:
    published = TEXTS["Ink"][0].replace("fluid that", "fluid, that")
    (after,) = located([question(("Ink", published))], of_title)
    assert after.gold == (GoldParagraph(title="Ink", text=TEXTS["Ink"][0]),)


def test_gold_of_another_wording_is_not_located_among_whole_paragraphs() -> None:
    before = question(("Ink", "Ink is a fluid of any colour, which takes a day to dry."))
    assert located([before], of_title) == (before,)


def test_gold_that_is_there_stays_although_another_paragraph_contains_it() -> None:
    before = question(("Pen", TEXTS["Pen"][0]))
    assert located([before], lambda title: [*of_title(title), *of_title(title)]) == (before,)


def test_each_title_is_looked_up_once() -> None:
    asked: list[str] = []

    def counting(title: str) -> list[Paragraph]:
        asked.append(title)
        return of_title(title)

    coverage([question(("Ink", "a"), ("Ink", "b"), ("ink", "c"))], counting, of_no_ids)
    assert asked == ["Ink", "ink"]


def test_gold_by_id_is_there_if_its_id_is_and_a_page_if_any_paragraph_of_it_is() -> None:
    gold = (
        GoldParagraph(title="", text="", id="Ink0", by="id"),
        GoldParagraph(title="", text="", id="Nib0", by="id"),
        GoldParagraph(title="Pen", text="", by="title"),
        GoldParagraph(title="Nib", text="", by="title"),
    )
    asked = Question(id="q1", text="?", gold=gold)
    assert located([asked], of_title) == (asked,)

    def of_ids(ids: Sequence[str]) -> dict[str, Paragraph]:
        return {each.id: each for title in TEXTS for each in of_title(title) if each.id in ids}

    found = coverage([asked], of_title, of_ids)
    assert (found.gold, [each.paragraph for each in found.missing]) == (4, [gold[1], gold[3]])
