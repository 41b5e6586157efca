"""Results of steps, as systems read them."""

from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.questions import Hit, Paragraph
from cotrail.core.results import Generated, Retrieved
from tests.cases import each_case

PIECES = st.lists(st.text(min_size=1, max_size=4), max_size=6)


def written(text: str, pieces: list[str], raw: str | None = None) -> Generated:
    return Generated(
        text=text,
        raw="".join(pieces) if raw is None else raw,
        demonstrations=0,
        paragraphs=0,
        prompt_digest="",
        prompt_tokens=1,
        cached_prompt_tokens=0,
        generated_tokens=len(pieces),
        tokens=tuple((piece, -float(number)) for number, piece in enumerate(pieces)),
    )


@each_case(
    ("text", "kept"),
    [
        ("Ada came.", ["Ada", " came", ". "]),
        ("Ada", ["Ada"]),
        ("came. Bo", [" came", ". ", "Bob"]),
        ("", []),
        ("no piece of it", ["\n", "Ada", " came", ". ", "Bob"]),
    ],
)
def test_tokens_are_kept_whose_text_is(text: str, kept: list[str]) -> None:
    result = written(text, ["\n", "Ada", " came", ". ", "Bob"])
    assert [token for token, _ in result.kept_tokens] == kept


@given(PIECES, st.data())
def test_the_tokens_of_a_text_hold_it_and_none_is_beside_it(pieces: list[str], data: st.DataObject) -> None:
    raw = "".join(pieces)
    start = data.draw(st.integers(0, len(raw)))
    text = raw[start : data.draw(st.integers(start, len(raw)))]
    kept = "".join(token for token, _ in written(text, pieces).kept_tokens)
    assert text in kept
    assert not text or len(kept) < len(text) + 2 * 4


def test_a_search_has_its_paragraphs_in_their_order() -> None:
    found = tuple(Paragraph(id=name, title=name, text=name) for name in "ba")
    hits = tuple(Hit(paragraph=each, rank=rank, score=1.0) for rank, each in enumerate(found, start=1))
    assert Retrieved(hits=hits).paragraphs == found
