"""Chains of queries are read from whatever a model writes."""
# ruff: noqa: RUF001 - models write the brackets of other scripts

import re
import time

from hypothesis import given
from hypothesis import strategies as st

from cotrail.systems.searchain.chain_of_query import MOST_CHARACTERS, MOST_VIOLATIONS, ChainOfQuery, Pair, read_chain
from tests.cases import each_case

WHO = Pair(query="Who wrote it?", answer="Ada wrote it.")
WHERE = Pair(query="Where was Ada born?", answer="Ada was born in London.")

STRICT = """[Query 1]: Who wrote it?
[Answer 1]: Ada wrote it.
[Query 2]: Where was Ada born?
[Answer 2]: Ada was born in London.
[Final Content]: Ada wrote it [1]. She was born in London [2]. So the answer is London."""


def read(message: str, most: int = 20) -> ChainOfQuery:
    return read_chain(message, round=1, most=most)


def odd(message: str) -> list[str]:
    return [each.what for each in read(message).violations]


def test_a_message_as_it_was_asked_for_violates_no_format() -> None:
    chain = read(STRICT)
    assert chain.pairs == (WHO, WHERE)
    assert chain.final == "Ada wrote it [1]. She was born in London [2]. So the answer is London."
    assert chain.violations == ()


@each_case(
    "message",
    [
        "[Query 2]: Who wrote it?\n[Answer 2]: Ada wrote it.\n[Unsolved Query]: Where was Ada born?",
        "[Query 2]: Who wrote it?\n[Answer 2]: Ada wrote it.\n[Unsolved Query 3]: Where was Ada born?",
        "[Query 2]: Who wrote it?\n\n[Answer 2]: Ada wrote it.\n\n[Unsolved Query 3]: Where was Ada born?\n",
    ],
)
def test_an_unsolved_query_may_have_a_number_and_a_chain_may_begin_at_any(message: str) -> None:
    chain = read(message)
    assert chain.pairs == (WHO, Pair(query="Where was Ada born?", unsolved=True))
    assert chain.violations == ()


@each_case(
    ("message", "violations"),
    [
        ("[query 1]: Who wrote it?\n[ANSWER 1]: Ada wrote it.", ["tag", "tag"]),
        ("[Query 1] : Who wrote it?\n[Answer 1] : Ada wrote it.", ["tag", "tag"]),
        ("[Query 1] Who wrote it?\n[Answer 1] Ada wrote it.", ["tag", "tag"]),
        ("[Query 1: Who wrote it?]\n[Answer 1: Ada wrote it.]", ["tag", "tag"]),
        ("[[Query 1]]: Who wrote it?\n[[Answer 1]]: Ada wrote it.", ["tag", "tag"]),
        ("Query 1: Who wrote it?\nAnswer 1: Ada wrote it.", ["tag", "tag"]),
        ("**[Query 1]:** Who wrote it?\n**[Answer 1]:** Ada wrote it.", ["tag", "tag"]),
        ("**Query 1**: Who wrote it?\n**Answer 1**: Ada wrote it.", ["tag", "tag"]),
        ("**[Query 1]: Who wrote it?**\n- [Answer 1]: Ada wrote it.", ["tag", "tag"]),
        ("### Query 1\nWho wrote it?\n### Answer 1\nAda wrote it.", ["tag", "tag"]),
        ("1. [Query 1]: Who wrote it?\n   [Answer 1]: Ada wrote it.", ["tag", "tag"]),
        ("1. [Query 1]: Who wrote it?\n2. [Answer 1]: Ada wrote it.\n3. [Query 2]:", ["tag", "tag", "tag", "no query"]),
        ("【Query 1】：Who wrote it?\n【Answer 1】：Ada wrote it.", ["tag", "tag"]),
        ("(Query 1): Who wrote it?\n<Answer 1>: Ada wrote it.", ["tag", "tag"]),
        ("[Query 1]: Who wrote it? [Answer 1]: Ada wrote it.", ["tag"]),
        ("[Question 1]: Who wrote it?\n[Answer 1]: Ada wrote it.", ["tag"]),
        ("[Query]: Who wrote it?\n[Answer]: Ada wrote it.", ["tag", "number", "tag", "number"]),
        ("[Query 1]: Who wrote it?\n[Answer 7]: Ada wrote it.", ["number"]),
        ("Sure! Here it is:\n[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.", ["text outside"]),
        ("[Query 1]: Who wrote it?\nLet me think.\n[Answer 1]: Ada wrote it.", ["text outside"]),
        ("[Question]: Where?\n[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.", ["tag", "text outside"]),
        ("[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.\n[Answer 1]: Eve did.", ["second answer"]),
        ("[Answer 1]: So it is.\n[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.", ["no query"]),
        ("[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.\n[Query 2]:", ["no query"]),
        ("[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.\n[Query 2]:\n[Answer 2]: x", ["no query"]),
        ("[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.\n[Unsolved Q", ["cut"]),
        ("[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.\n[", ["cut"]),
    ],
)
def test_other_forms_are_read_too_and_recorded_as_violations(message: str, violations: list[str]) -> None:
    assert read(message).pairs == (WHO,)
    assert odd(message) == violations


@each_case(
    "message",
    [
        "[Query 1]: Who wrote it? [Unsolved Query]",
        "[Query 1]: Who wrote it?\n[Unsolved Query]",
        "[Query 1]: Who wrote it?\n[Answer 1]: [Unsolved Query]",
        "[Query 1] [Unsolved Query]: Who wrote it?",
        "[Query 1 (Unsolved)]: Who wrote it?",
        "[Query 1]: Who wrote it?\n[Unsolved Query]: Who wrote it?",
        "[Unsolved]: Who wrote it?",
        "**Unsolved Query 1:** Who wrote it?",
    ],
)
def test_the_flag_of_an_unsolved_query_may_stand_anywhere(message: str) -> None:
    assert read(message).pairs == (Pair(query="Who wrote it?", unsolved=True),)
    assert "tag" in odd(message) or message.count("[Unsolved Query]: Who") == 1


def test_an_answer_belongs_to_the_query_of_its_number() -> None:
    message = "[Query 1]: Who wrote it?\n[Query 2]: Where was Ada born?\n"
    answers = "[Answer 1]: Ada wrote it.\n[Answer 2]: Ada was born in London."
    assert read(message + answers).pairs == (WHO, WHERE)


def test_an_unsolved_query_with_an_answer_stays_unsolved() -> None:
    chain = read("[Unsolved Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.")
    assert chain.pairs == (Pair(query="Who wrote it?", answer="Ada wrote it.", unsolved=True),)
    assert [each.what for each in chain.violations] == ["answer to an unsolved query"]


def test_numbers_may_leave_out_unsolved_queries_or_count_them() -> None:
    opening = "[Query 1]: a\n[Answer 1]: b\n[Unsolved Query]: c\n"
    assert odd(opening + "[Query 2]: d\n[Answer 2]: e") == []
    assert odd(opening + "[Query 3]: d\n[Answer 3]: e") == []
    assert odd(opening + "[Query 4]: d\n[Answer 4]: e") == ["number"]
    assert odd(opening + "[Query 1]: d\n[Answer 1]: e") == ["number"]


def test_a_further_example_behind_the_final_content_is_none_of_the_chain() -> None:
    chain = read(STRICT + "\n\n[Question]: Why?\n[Query 1]: Whence?\n[Answer 1]: Thence.\n[Final Content]: Thus.")
    assert chain.pairs == (WHO, WHERE)
    assert chain.final is not None
    assert chain.final.endswith("London.")
    assert [each.what for each in chain.violations] == ["further example"]


def test_a_further_example_behind_a_chain_without_final_content_is_none_of_it_either() -> None:
    chain = read("[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.\n[Question]: Why?\n[Unsolved Query]: Whence?")
    assert (chain.pairs, chain.final) == ((WHO,), None)
    assert [each.what for each in chain.violations] == ["further example"]


def test_the_final_content_may_speak_of_queries_and_answers() -> None:
    final = "As [Query 1] asks,\nAnswer: Ada [Answer 1].\n[1]: a book"
    chain = read(f"[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.\n[Final Content]: {final}")
    assert (chain.pairs, chain.final, chain.violations) == ((WHO,), final, ())


@each_case(
    ("message", "final"),
    [
        ("[Final Content]: So it is Ada.\n[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.", "So it is Ada."),
        ("[Final Content]: So.\n\nQuery 1: Who wrote it?\nAnswer 1: Ada wrote it.\n[Final Content]: Ada.", "Ada."),
        ("[Final Content]: So.\n[Query 1]: Who wrote it? [Answer 1]: Ada wrote it.\n[Final Content]:", "So."),
        ("[Query 1]: Who wrote it?\n[Final Content]: So.\n[Answer 1]: Ada wrote it.", "So."),
        ("[Final Content]:\n[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.", None),
    ],
)
def test_answers_behind_a_final_content_are_read(message: str, final: str | None) -> None:
    assert read(message).pairs == (WHO,)
    assert read(message).final == final
    assert "no answer" not in odd(message)


def test_an_answer_behind_a_final_content_counts_where_its_query_has_none() -> None:
    opening = "[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.\n[Final Content]: Ada.\n"
    for said in ("[Answer 1]: So the answer is Ada.", "[Answer 2]: x", "[Answer]: Ada", "Answer 1 says so."):
        assert read(opening + said).pairs == (WHO,)
        assert read(opening + said).final == f"Ada.\n{said}"


def test_queries_have_the_numbers_by_which_their_message_names_them() -> None:
    chain = read("[Query 4]: a\n[Answer 4]: b\n[Unsolved Query]: c\n[Query 5]: d\n[Query]: e")
    assert chain.numbers == (4, 5, 5, 6)
    assert read("[Unsolved Query]: c").numbers == (1,)


def test_of_several_final_contents_the_last_counts_and_the_others_are_violations() -> None:
    chain = read("[Final Content]: One.\n[Final Content]: Two.")
    assert (chain.final, [each.text for each in chain.violations]) == ("Two.", ["One."])
    assert odd("[Final Content]:") == ["nothing"]


def test_final_content_may_stand_below_a_heading() -> None:
    chain = read("**Final Content**\nAda wrote it [1].")
    assert (chain.final, [each.what for each in chain.violations]) == ("Ada wrote it [1].", ["tag"])


def test_the_end_of_a_code_block_is_none_of_the_answer() -> None:
    assert read("```\n[Query 1]: Who wrote it?\n[Answer 1]: Ada wrote it.\n```").pairs == (WHO,)


def test_the_rest_is_the_message_without_tags_and_queries() -> None:
    message = "[Question]: Who?\nHm.\n[Query 1]: Who wrote it?\n[Answer 1]: Ada.\n[Unsolved Query]: Where?\nSomewhere."
    assert read(message).rest == "Hm.\nAda.\nSomewhere."
    assert read("<think>Who?</think> Ada wrote it. ").rest == "Ada wrote it."


def test_a_violation_that_is_quoted_in_part_ends_with_an_ellipsis() -> None:
    (violation,) = read("word " * 100).violations
    assert len(violation.text) == MOST_CHARACTERS
    assert violation.text.endswith("…")


def test_an_answer_may_have_several_lines() -> None:
    assert read("[Query 1]: Why?\n[Answer 1]: First.\n\nSecond.").pairs[0].answer == "First.\n\nSecond."


def test_thoughts_before_a_message_are_none_of_it() -> None:
    chain = read(f"<think>[Query 1]: Whence?\n[Answer 1]: Thence.</think>\n\n{STRICT}")
    assert chain.pairs == (WHO, WHERE)
    assert [each.what for each in chain.violations] == ["text outside"]


@each_case("message", ["", " \n", "Paris.", "I can't answer a query: it has no answer.", "]]]["])
def test_a_message_without_a_chain_has_nothing(message: str) -> None:
    chain = read(message)
    assert (chain.pairs, chain.final) == ((), None)
    assert "nothing" in odd(message)


def test_queries_beyond_the_limit_do_not_count() -> None:
    chain = read("".join(f"[Query {n}]: q{n}\n[Answer {n}]: a{n}\n" for n in range(1, 10)), most=3)
    assert [pair.query for pair in chain.pairs] == ["q1", "q2", "q3"]
    assert [(each.what, each.text) for each in chain.violations] == [("too many queries", "q4")]


def test_by_the_released_code_the_answer_is_the_next_line_with_the_word_in_it() -> None:
    message = "[Query 1]: Who?\n[Query 2]: Where?\nHmm\nThe Answer is here\n[Query 3]: When?"
    chain = read_chain(message, round=1, most=9, answers="line")
    assert [pair.answer for pair in chain.pairs] == ["The Answer is here", "The Answer is here", ""]


TEXTS = (
    st.text()
    | st.text("[]QueryAnswer 12:\nFinal Content*【】Unsolved")
    | st.lists(
        st.sampled_from(
            [
                "[Query 1]: ",
                "[Answer 1]: ",
                "[Unsolved Query]",
                "[Final Content]: ",
                "[Question]:",
                "Query",
                " 2",
                "]",
                "[",
                "\n",
                "**",
                "who?",
                "Answer:",
                "（Query 3）：",
                "Final answer",
                ":",
                "[Query",
                "𝟙",
                "\r",
                "\u2028",
            ]
        ),
        max_size=30,
    ).map("".join)
)


@given(TEXTS)
def test_any_text_is_read_and_what_is_read_stands_in_it(message: str) -> None:
    chain = read_chain(message, round=3, most=5)
    assert len(chain.pairs) <= 5
    assert len(chain.violations) <= MOST_VIOLATIONS
    assert all(each.round == 3 for each in chain.violations)
    for pair in chain.pairs:
        assert pair.query
        assert pair.query in message
        assert pair.answer in message
    assert (chain.final or "") in message
    assert read_chain(message, round=3, most=5, answers="line").pairs[:0] == ()


# A text that is itself a tag, if without brackets, is read as one.
BARE_TAG = re.compile(r"(?:question|query|answer|unsolved|final).*[:\uff1a]", re.IGNORECASE)
LINES = (
    st.text(st.characters(exclude_characters="[]【】`\n\r", exclude_categories=["Cs"]), min_size=1)
    .map(str.strip)
    .filter(lambda text: not BARE_TAG.search(text))
)
PAIRS = st.lists(
    st.builds(Pair, query=LINES.filter(bool), answer=LINES.filter(bool))
    | st.builds(Pair, query=LINES.filter(bool), unsolved=st.just(True)),
    min_size=1,
    max_size=8,
)


BLOCKS = st.lists(
    st.tuples(st.just("final"), LINES.filter(bool))
    | st.tuples(st.just("pair"), LINES.filter(bool))
    | st.tuples(st.just("unsolved"), LINES.filter(bool)),
    min_size=1,
    max_size=12,
)


@given(BLOCKS)
def test_every_answer_is_read_wherever_final_contents_stand(blocks: list[tuple[str, str]]) -> None:
    lines, pairs, finals = [], [], []
    for number, (kind, text) in enumerate(blocks, start=1):
        if kind == "final":
            finals.append(text)
            lines.append(f"[Final Content]: {text}")
        elif kind == "unsolved":
            pairs.append(Pair(query=f"{number} {text}", unsolved=True))
            lines.append(f"[Unsolved Query]: {number} {text}")
        else:
            pairs.append(Pair(query=f"{number} {text}", answer=text))
            lines += [f"[Query {number}]: {number} {text}", f"[Answer {number}]: {text}"]
    chain = read("\n".join(lines))
    assert chain.pairs == tuple(pairs)
    assert chain.final == (finals[-1] if finals else None)


def written(pairs: list[Pair], final: str, *, numbered: bool) -> str:
    lines = []
    for number, pair in enumerate(pairs, start=1):
        if pair.unsolved:
            lines.append(f"[Unsolved Query{f' {number}' * numbered}]: {pair.query}")
        else:
            lines += [f"[Query {number}]: {pair.query}", f"[Answer {number}]: {pair.answer}"]
    return "\n".join([*lines, f"[Final Content]: {final}"])


@given(pairs=PAIRS, final=LINES.filter(bool), numbered=st.booleans())
def test_a_strict_message_is_read_as_it_was_written(pairs: list[Pair], final: str, *, numbered: bool) -> None:
    chain = read(written(pairs, final, numbered=numbered))
    assert chain.pairs == tuple(pairs)
    assert chain.final == final
    assert chain.violations == ()


@each_case(
    "part",
    [
        "[",
        "[Query",
        "[Query 1]: ",
        "Answer ",
        "word ",
        "\n",
        "[Unsolved Query] ",
        "[Question]: ",
        "*",
        " ",
        "1",
        "final ",
        "[Final Content]: x\n",
        "[Query 1]: q\n[Answer 1]: a\n",
        "[Query 1]: q\n[Final Content]: x\n[Answer 1]: a\n",
        "Answer\n[Query 1]: ",
    ],
)
@each_case("answers", ["tag", "line"])
def test_the_time_grows_linearly(part: str, answers: str) -> None:
    started = time.process_time()
    read_chain(part * (400_000 // len(part)), round=1, most=20, answers=answers)  # type: ignore[arg-type]
    assert time.process_time() - started < 10
