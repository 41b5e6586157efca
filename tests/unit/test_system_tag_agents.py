"""Agents that search by tags, under transcripts written by hand."""

from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Open, Retrieve
from cotrail.core.history import Finished, Outcome
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Action, LimitReached
from cotrail.systems.registry import find_system
from cotrail.systems.tag_agents.agents import AGENTS
from cotrail.systems.tag_agents.system import told_steps
from tests.cases import each_case
from tests.replay.driving import MadeUp, found_paragraphs, live
from tests.told import Ran, ToldModel, ran

QUESTION = Question(id="q", text="On which sea does Brenn's river end?")
BRENN = Paragraph(id="1", title="Brenn", text="Brenn lies on the Vell.")
VELL = Paragraph(id="2", title="Vell", text="It ends in the Amber Sea.")
FOUND = {"river of Brenn": (BRENN,), "end of the Vell": (VELL, BRENN), "Nowhere": ()}
NAMES = tuple(AGENTS)


def told(name: str, *lines: str, **settings: Any) -> Ran:
    spec = find_system(name)
    return ran(partial(spec.open, QUESTION, {}, spec.settings(**settings)), lines, FOUND)


def messages(prompt: str) -> list[dict[str, Any]]:
    return msgspec.json.decode(prompt)["messages"]  # type: ignore[no-any-return]


def last_message(result: Ran) -> str:
    return str(messages(result.prompts[-1])[-1]["content"])


def test_search_r1_reads_documents_behind_its_query_and_answers() -> None:
    result = told(
        "search-r1", "I look. <search> river of Brenn </search> more", "So: <answer> the Amber Sea </answer> x"
    )
    assert messages(result.prompts[0])[0]["content"].endswith(f"Question: {QUESTION.text}")
    assert last_message(result) == (
        f"I look. <search> river of Brenn </search>\n\n<information>Doc 1(Title: Brenn) {BRENN.text}</information>\n\n"
    )
    assert (result.answer.text, result.answer.limit, result.answer.paragraphs) == ("the Amber Sea", "", (BRENN,))
    assert [each.count for each in result.actions if isinstance(each, Retrieve)] == [3]
    assert all(each.max_tokens == 500 for each in result.actions if isinstance(each, Reason))
    assert {each.prompt.window for each in result.actions if isinstance(each, Reason)} == {4096}


def test_documents_stand_on_lines_of_their_own_without_one_behind_the_last() -> None:
    search = "<search>end of the Vell</search>"
    first, second = f"Doc 1(Title: Vell) {VELL.text}", f"Doc 2(Title: Brenn) {BRENN.text}"
    shown = last_message(told("search-r1", search, "<answer>x</answer>"))
    assert shown == f"{search}\n\n<information>{first}\n{second}</information>\n\n"
    shown = last_message(told("zerosearch", search, "<answer>x</answer>"))
    assert shown == (f"{search}\n\n<information>Doc 1: Vell {VELL.text}\nDoc 2: Brenn {BRENN.text}</information>\n\n")


def test_a_search_that_is_closed_but_never_opened_is_no_action() -> None:
    result = told(
        "search-r1", "<think> I will search. </search>", "<search> river of Brenn </search>", "<answer>x</answer>"
    )
    assert [each.query for each in result.actions if isinstance(each, Retrieve)] == ["river of Brenn"]
    assert "</search>\nThat was neither a search nor an answer." in last_message(result)


def test_what_search_r1_finds_is_cut_with_its_tags() -> None:
    result = told("search-r1", "<search>river of Brenn</search>", "<answer>x</answer>", found_tokens=4)
    assert isinstance(last := result.actions[-1], Reason)
    assert [getattr(piece, "tokens", None) for piece in last.prompt.turns[-1].pieces] == [None, 4, 4, 4]


def test_search_r1_is_told_of_an_invalid_action_and_its_last_call_searches_nothing() -> None:
    search = "<search>river of Brenn</search>"
    result = told("search-r1", "Hm.", search, "<answer>never closed", search, search)
    assert (result.answer.text, result.answer.limit) == ("", "calls")
    assert len(result.asked(Retrieve)) == 2
    assert last_message(result).startswith("Hm.\nThat was neither a search nor an answer.")


def test_two_answers_count_by_the_last_and_a_nested_query_by_its_first_tag() -> None:
    assert told("search-r1", "<answer>a</answer>").answer.text == "a"
    result = told("search-r1", "<search>a <search>b</search>", "x <answer>a <answer>b</answer>")
    assert [each.query for each in result.actions if isinstance(each, Retrieve)] == ["a <search>b"]
    assert result.answer.text == "b"


def test_research_boxes_its_first_answer_and_its_last_opened_query_counts() -> None:
    result = told(
        "research",
        "<think>x</think><search>a <search>end of the Vell</search>",
        "<answer>\\boxed{no} but \\boxed{the {Amber} Sea}</answer> <answer>\\boxed{y}</answer>",
    )
    system, _, said = messages(result.prompts[-1])
    assert system["role"] == "system"
    assert said["content"].endswith(f"</search> <result>\nVell\n{VELL.text}\n\nBrenn\n{BRENN.text}\n</result>")
    assert result.answer.text == "the {Amber} Sea"


def test_research_has_no_answer_beyond_its_tokens() -> None:
    result = told("research", "<answer>\\boxed{x}</answer>", total_tokens=10)
    assert (result.answer.text, result.answer.limit) == ("", "tokens of context")


def test_r1_searcher_is_plain_text_and_quotes_are_no_part_of_a_query() -> None:
    query = 'It is <|begin_of_query|> "river of Brenn"\t<|end_of_query|>'
    result = told("r1-searcher", query, "</think><answer> Amber Sea")
    first, second = result.prompts
    assert first.endswith(f"User:{QUESTION.text}\nAssistant: <think>")
    assert second == (f"{first}{query}\n\n<|begin_of_documents|>\n(1)Brenn {BRENN.text}\n<|end_of_documents|>\n\n")
    assert result.answer.text == "Amber Sea"


@each_case(
    ("query", "searched"),
    [
        ("Brenn\tits river", ["Brenn its river"]),
        (" Brenn \t 'its' \"river\"...", ["Brenn its river"]),
        ("a <|begin_of_query|>Brenn", ["Brenn"]),
        *((empty, []) for empty in ("", " ", "\t", "...", '"\'"')),
    ],
)
def test_r1_searcher_parts_keywords_where_the_authors_do(query: str, searched: list[str]) -> None:
    written = f"<|begin_of_query|>{query}<|end_of_query|>"
    result = told("r1-searcher", written, *["<answer>x</answer>"][: len(searched)])
    assert [each.query for each in result.actions if isinstance(each, Retrieve)] == searched
    assert result.answer.text == ("x" if searched else "")


def test_r1_searcher_is_told_that_nothing_was_found() -> None:
    query = "<|begin_of_query|>Nowhere<|end_of_query|>"
    result = told("r1-searcher", query, "<answer>y</answer>")
    assert result.prompts[-1].endswith("\n\n<|begin_of_documents|>\nNone<|end_of_documents|>\n\n")


@each_case("written", ["I think.</search>", "<search></search>", "<search> \n</search>", "</search>"])
def test_research_is_told_of_a_search_without_a_query_and_goes_on(written: str) -> None:
    result = told("research", written, "<search>end of the Vell</search>", "<answer>\\boxed{x}</answer>")
    assert f"{written} <result>\nnothing to search\n</result><search>end of the Vell" in last_message(result)
    assert (result.answer.text, result.answer.limit, len(result.asked(Retrieve))) == ("x", "", 1)


def test_research_that_only_closes_searches_ends_at_its_calls() -> None:
    assert told("research", *["</search>"] * 32).answer.limit == "calls"


def test_r1_searcher_says_nothing_where_it_does_not_answer_unless_released() -> None:
    assert told("r1-searcher", "Hm.").answer.text == ""
    released = find_system("r1-searcher").rule_settings("released", instructed=False)
    assert told("r1-searcher", "Hm.", **released).answer.text == "I don't know."
    result = told("r1-searcher", *["<|begin_of_query|>x<|end_of_query|>"] * 9)
    assert (result.answer.limit, len(result.asked(Retrieve))) == ("calls", 8)


O1_QUERY = "<|begin_search_query|>river of Brenn<|end_search_query|>"


def test_search_o1_is_shown_what_a_further_prompt_takes_from_the_pages() -> None:
    result = told(
        "search-o1", f"First.\n\nI look.{O1_QUERY}", "x **Final Information**\n\nIt is\nthe Vell. ", "\\boxed{Vell}"
    )
    asked, reading, going_on = result.prompts
    assert "At most 10 searches are allowed." in asked
    [read] = messages(reading)
    assert f"The search query:\nriver of Brenn\n\nThe pages:\nPage 1: Brenn\n{BRENN.text}\n" in read["content"]
    assert f"Step 1: First.\n\nStep 2: I look.{O1_QUERY}" in read["content"]
    said = messages(going_on)[-1]["content"]
    assert said.endswith(f"{O1_QUERY}\n\n<|begin_search_result|>It is the Vell.<|end_search_result|>\n\n")
    assert (result.answer.text, result.answer.paragraphs) == ("Vell", (BRENN,))
    assert {(each.top_k, each.repetition_penalty) for each in result.actions if isinstance(each, Reason)} == {
        (20, 1.05)
    }


@each_case("read", ["", "Nothing.", "**Final Information**\n"])
def test_pages_that_do_not_help_are_told_so(read: str) -> None:
    result = told("search-o1", O1_QUERY, read, "\\boxed{x}")
    assert "<|begin_search_result|>No helpful information found.<|end_search_result|>" in last_message(result)


def test_search_o1_is_told_of_a_repeated_search_and_of_too_many() -> None:
    other = O1_QUERY.replace("river", "sea")
    result = told("search-o1", O1_QUERY, "", O1_QUERY, other, "\\boxed{x", searches=1)
    said = last_message(result)
    assert said.count("The most searches are used up.") == 2
    assert (result.answer.text, len(result.asked(Retrieve))) == ("", 1)
    repeated = told("search-o1", O1_QUERY, "", O1_QUERY, other, "", "\\boxed{x}", searches=2)
    assert "This query was searched for before." in last_message(repeated)
    # A repeated search isn't carried out, so that it doesn't count.
    assert len(repeated.asked(Retrieve)) == 2


@each_case(
    ("boxed", "answer"),
    [
        ("\\text{Amber Sea}", "Amber Sea"),
        ("(B)", "B"),
        ("\\text{(B)}", "B"),
        ("12 \\text{ km}", "12 \\text{ km}"),
        ("\\text{", None),
        ("", ""),
    ],
)
@each_case("name", ["search-o1", "webthinker"])
def test_text_and_brackets_around_a_boxed_answer_are_no_part_of_it(name: str, boxed: str, answer: str | None) -> None:
    assert told(name, f"It is \\boxed{{{boxed}}}.").answer.text == (answer or "")


def test_webthinkers_explorer_searches_opens_pages_and_reports() -> None:
    result = told(
        "webthinker",
        O1_QUERY,
        "More.<|begin_search_query|>end of the Vell<|end_search_query|>",
        "That page.<|begin_click_link|>Brenn<|end_click_link|>",
        "**Final Information**\nThe Vell.",
        f"Again.{O1_QUERY}",
    )
    explored = [prompt for prompt in result.prompts if "You explore" in prompt]
    said = messages(explored[-1])[-1]["content"]
    assert f"<|begin_search_result|>Page 1: Vell\n{VELL.text}\nPage 2: Brenn" in said
    assert said.endswith("<|begin_click_result|>Page 1: Brenn\nOn Brenn.\n<|end_click_result|>\n\n")
    assert last_message(result).endswith("<|begin_search_result|>The Vell.<|end_search_result|>\n\n")
    assert (result.answer.text, result.answer.limit) == ("", "")


def test_an_explorer_ends_at_its_interactions() -> None:
    more = "<|begin_search_query|>end of the Vell<|end_search_query|>"
    result = told("webthinker", O1_QUERY, more, more, "\\boxed{x}", explored=2)
    assert "No helpful information found." in last_message(result)
    assert (result.answer.text, len(result.asked(Retrieve))) == ("x", 2)


READ_FOR: dict[str, Any] = {"explores": "read"}
SEARCHED = "<|begin_search_query|>end of the Vell<|end_search_query|>"
OPENED = "<|begin_click_link|>Brenn<|end_click_link|>"


def test_webthinkers_explorer_has_an_intent_and_pages_are_read_for_its_own() -> None:
    lines = ("Which river it is. ", SEARCHED, OPENED, "its river", "It lies on the Vell. ", "x **Final Information** y")
    result = told("webthinker", f"I look.{O1_QUERY}", *lines, "\\boxed{z}", **READ_FOR)
    _, intent, explorer, _, click, page, reporting, _ = (messages(prompt) for prompt in result.prompts)
    assert intent[0]["content"].endswith(f"\n\nI look.{O1_QUERY}")
    assert "What is to be found out:\nWhich river it is.\n" in explorer[0]["content"]
    assert "The search query:\nriver of Brenn\n" in explorer[0]["content"]
    assert f"<|begin_search_result|>Page 1: Vell\n{VELL.text}" in click[0]["content"]
    assert click[0]["content"].endswith(OPENED)
    assert page[0]["content"].endswith("What is to be found out:\nits river\n\nThe page:\nPage 1: Brenn\nOn Brenn.\n")
    said = reporting[-1]["content"]
    assert said.endswith(f"{OPENED}\n\n<|begin_click_result|>It lies on the Vell.<|end_click_result|>\n\n")
    assert last_message(result).endswith("<|begin_search_result|>y<|end_search_result|>\n\n")
    assert result.answer.text == "z"


def test_webthinkers_explorer_is_told_of_what_it_asked_for_before_and_has_to_report() -> None:
    lines = ("intent", SEARCHED, SEARCHED, OPENED, "why", "read", OPENED, " The Vell. ")
    result = told("webthinker", O1_QUERY, *lines, "\\boxed{z}", explored=4, **READ_FOR)
    asked = messages(result.prompts[-2])[-1]["content"]
    assert asked.count("This was looked for before. Use what is there already.") == 2
    assert asked.endswith(
        "No further search or page is allowed. I now write down what was found out.\n\n**Final Information**\n\n"
    )
    assert [each.max_tokens for each in result.actions if isinstance(each, Reason)][-2:] == [512, 8192]
    assert len(result.asked(Retrieve)) == 2
    assert "<|begin_search_result|>The Vell.<|end_search_result|>" in last_message(result)


@each_case("report", ["", " \n", "**Final Information**"])
def test_an_explorer_that_reports_nothing_at_last_found_nothing_helpful(report: str) -> None:
    result = told("webthinker", O1_QUERY, "", SEARCHED, report, "\\boxed{z}", explored=1, **READ_FOR)
    assert "<|begin_search_result|>No helpful information found.<|end_search_result|>" in last_message(result)


def test_a_page_that_is_not_there_is_not_read() -> None:
    class Nowhere(MadeUp):
        """A world without pages."""

        def __call__(self, action: Action) -> Outcome:
            return found_paragraphs() if isinstance(action, Open | Retrieve) else super().__call__(action)

    spec = find_system("webthinker")
    lines = (O1_QUERY, "intent", OPENED, "**Final Information** x", "\\boxed{y}")
    result = ran(partial(spec.open, QUESTION, {}, spec.settings(**READ_FOR)), lines, FOUND, Nowhere)
    said = messages(result.prompts[-2])[-1]["content"]
    assert said.endswith("<|begin_click_result|>There is no such page.<|end_click_result|>\n\n")


def test_the_released_rules_have_webthinkers_pages_read() -> None:
    assert find_system("webthinker").rule_settings("released", instructed=False) == READ_FOR


def test_steps_in_the_middle_are_left_out_unless_they_search() -> None:
    steps = ["one", "two\n", "three", "a <q>\n", "five", "six", "seven", "eight", "nine"]
    assert told_steps("\n".join(steps), "<q>").split("\n\n") == [
        *("Step 1: one", "...", "Step 4: a <q>", "...", "Step 6: six"),
        *("Step 7: seven", "Step 8: eight", "Step 9: nine"),
    ]


@each_case("name", NAMES)
def test_at_a_budgets_end_what_was_answered_counts(name: str) -> None:
    spec = find_system(name)
    agent = spec.open(QUESTION, {}, spec.settings())
    first = next(agent)
    opened, closed = AGENTS[name].query
    agent.send(MadeUp(ToldModel([f"{opened}river of Brenn{closed}"]))(first))  # type: ignore[arg-type]
    agent.send(found_paragraphs(BRENN))
    with pytest.raises(StopIteration) as ended:
        agent.throw(LimitReached("steps"))
    assert (ended.value.value.text, ended.value.value.limit) == ("", "steps")


PIECES = st.sampled_from(
    [
        *("<search>", "</search>", "<answer>", "</answer>", "\\boxed{", "}", "{", "x", " ", "\n\n"),
        *("<|begin_of_query|>", "<|end_of_query|>", "<|begin_search_query|>", "<|end_search_query|>"),
        *("<|begin_click_link|>", "<|end_click_link|>", "**Final Information**"),
    ]
)


@given(lines=st.lists(st.lists(PIECES, max_size=6).map("".join), min_size=40, max_size=40))
def test_an_explorer_for_whom_pages_are_read_asks_no_more_than_is_estimated(lines: list[str]) -> None:
    spec = find_system("webthinker")
    settings = spec.settings(calls=3, explored=3, **READ_FOR)
    trace, end = live(spec.open(QUESTION, {}, settings), MadeUp(ToldModel(lines), FOUND))
    assert isinstance(end, Finished)
    most = spec.step_bounds(QUESTION, settings) or ()
    assert sum(isinstance(action, Reason) for action, _ in trace) <= sum(
        each.times for each in most if each.kind == "reason"
    )


@pytest.mark.parametrize("name", NAMES)
@given(lines=st.lists(st.lists(PIECES, max_size=6).map("".join), min_size=10, max_size=10))
def test_anything_ends_within_the_calls(name: str, lines: list[str]) -> None:
    spec = find_system(name)
    trace, end = live(spec.open(QUESTION, {}, spec.settings(calls=4, explored=2)), MadeUp(ToldModel(lines), FOUND))
    assert isinstance(end, Finished)
    assert sum(isinstance(action, Reason) for action, _ in trace) <= 4 + 3 * 2
