import json
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cotrail.core.actions.entail import Extract
from cotrail.core.questions import Paragraph
from cotrail.core.results import Extracted
from cotrail.engines.extraction.extractors import EXTRACTORS, ScriptedExtractor
from cotrail.engines.extraction.transformers import best_span, trimmed
from cotrail.errors import InputError, NotInstalledError, StepError, UnknownNameError
from tests.cases import each_case

VELL = Paragraph(id="v", title="Vell", text="The Vell flows into the Amber Sea.")
SEA = Extract(question="Where does the Vell end?", paragraph=VELL)

# Spans


@each_case(
    ("starts", "ends", "span"),
    [
        ([1.0, 5.0, 0.0], [0.0, 1.0, 4.0], (1, 2)),
        ([5.0, 0.0, 1.0], [6.0, 0.0, 1.0], (0, 0)),
        # The likeliest end stands before the likeliest start, and 2-0, which has 5 + 9, is no span.
        ([1.0, 0.0, 5.0], [9.0, 0.0, 3.0], (0, 0)),
        ([0.0, 0.0, 5.0], [4.0, 0.0, 3.0], (2, 2)),
        # Eleven tokens are too many, ten aren't.
        ([9.0, *[0.0] * 10], [*[0.0] * 9, 1.0, 9.0], (0, 9)),
        ([9.0, *[0.0] * 10], [*[0.0] * 10, 10.0], (1, 10)),
        # Of equal sums the earliest span counts, and of these the shortest.
        ([1.0, 1.0], [2.0, 2.0], (0, 0)),
        ([-1.0, -2.0], [-3.0, -4.0], (0, 0)),
        ([2.0], [-7.0], (0, 0)),
        ([], [], None),
    ],
)
def test_the_best_span_is_the_one_with_the_highest_sum(
    starts: list[float], ends: list[float], span: tuple[int, int] | None
) -> None:
    assert best_span(starts, ends) == span


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=30))
def test_a_span_never_ends_before_it_starts_is_never_too_long_and_none_is_better(logits: list[tuple[int, int]]) -> None:
    starts, ends = [float(start) for start, _ in logits], [float(end) for _, end in logits]
    found = best_span(starts, ends)
    assert found is not None
    first, last = found
    assert first <= last < first + 10
    sums = [starts[a] + ends[b] for a in range(len(starts)) for b in range(len(starts)) if 0 <= b - a < 10]
    assert starts[first] + ends[last] == max(sums)


@each_case(
    ("text", "span", "piece"),
    [
        ("in the Amber Sea", (2, 16), (3, 16)),
        ("Amber Sea ", (0, 10), (0, 9)),
        ("Amber", (0, 5), (0, 5)),
        ("a  b", (1, 3), (3, 3)),
        ("a b", (2, 2), (2, 2)),
    ],
)
def test_an_answer_has_no_spaces_around_it(text: str, span: tuple[int, int], piece: tuple[int, int]) -> None:
    assert trimmed(text, span) == piece


# Scripts


def test_a_script_answers_by_question_and_title_or_text() -> None:
    sea, salt = {"text": "Amber Sea", "confidence": 2.5}, {"text": "salt", "confidence": -1.0}
    reader = ScriptedExtractor({"answers": {SEA.question: {"Vell": sea, "It carries salt.": salt}}})
    barge = Paragraph(id="b", title="Barge", text="It carries salt.")
    other = Paragraph(id="o", title="Other", text="It carries stone.")
    asked = [SEA, *(Extract(question=SEA.question, paragraph=each) for each in (barge, other))]
    assert reader.extract(asked) == [
        Extracted(text="Amber Sea", confidence=2.5, start=24, end=33),
        Extracted(text="salt", confidence=-1.0, start=11, end=15),
        Extracted(text="", confidence=0.0, start=0, end=0),
    ]
    assert VELL.text[24:33] == "Amber Sea"


def test_a_scripted_answer_that_is_not_in_the_text_fails_the_step() -> None:
    with pytest.raises(StepError, match="'Blue Sea' isn't in the text of 'Vell'"):
        ScriptedExtractor({"default": {"text": "Blue Sea"}}).extract([SEA])


# Catalogue


def listed(tmp_path: Path, table: str) -> Path:
    (tmp_path / "models.toml").write_text(f"[extractors.mine]\n{table}\n")
    return tmp_path / "models.toml"


def test_a_script_of_the_list_is_opened_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text(json.dumps({"default": {"text": "Amber Sea", "confidence": 2}}))
    spec = EXTRACTORS.find(listed(tmp_path, 'engine = "scripted"\npath = "answers.json"'), "mine")
    opened = spec.open("deterministic")
    assert spec.identity() == opened.identity
    assert opened.identity.startswith("mine@")
    assert opened.extract([SEA]) == [Extracted(text="Amber Sea", confidence=2.0, start=24, end=33)]
    (tmp_path / "answers.json").write_text("{}")
    assert spec.identity() != opened.identity


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ('engine = "llamacpp"\npath = "x"', "there are: transformers, scripted"),
        ('engine = "transformers"\npath = "x"\nlabels = 3', "no key `labels`; there are: path"),
    ],
)
def test_a_malformed_table_is_refused(table: str, problem: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=problem):
        EXTRACTORS.find(listed(tmp_path, table), "mine")


def test_names_that_are_unknown_taken_or_not_installed_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UnknownNameError, match=r"there is no extractor 'yours'; there are: dpr-reader-multiset, "):
        EXTRACTORS.find(tmp_path / "models.toml", "yours")
    (tmp_path / "models.toml").write_text('[extractors.dpr-reader-nq]\nengine = "scripted"\npath = "x"\n')
    with pytest.raises(InputError, match="dpr-reader-nq is the name of a built-in extractor"):
        EXTRACTORS.find(tmp_path / "models.toml", "dpr-reader-nq")

    def absent(repository: str) -> Path:
        raise NotInstalledError(f"{repository} isn't here")

    published: Any = EXTRACTORS.built_in["dpr-reader-nq"]
    missing = replace(published, folder=partial(absent, *published.folder.args))
    monkeypatch.setitem(cast(dict[str, Any], EXTRACTORS.built_in), "dpr-reader-nq", missing)
    with pytest.raises(NotInstalledError, match="facebook/dpr-reader-single-nq-base isn't here"):
        EXTRACTORS.find(tmp_path / "nothing.toml", "dpr-reader-nq")
