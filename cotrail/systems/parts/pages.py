"""The pages that a question with a pinned passage searches (IRCoT, appendix B: IIRC)."""

from typing import Literal

from msgspec import Struct

from cotrail.common.numbers import Positive
from cotrail.core.actions.generate import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.demonstrations import AnswerForm, Demonstrations, Shots
from cotrail.core.few_shot import few_shot_prompt
from cotrail.core.page_titles import parse_titles, title_question
from cotrail.core.ports.retriever import Scope
from cotrail.core.questions import Question
from cotrail.core.results import Retrieved
from cotrail.core.system import Part
from cotrail.systems.parts.defaults import with_defaults
from cotrail.systems.parts.most import Most
from cotrail.systems.parts.prompting import PromptSettings, instructed, pinned_paragraph
from cotrail.systems.parts.steps import all_of, text_of

MAX_PAGES = 15
"""The most pages that are searched (`global_max_num_paras` in the released configurations)."""


class PageSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Choice of the pages to search, for a question that pins a passage (IRCoT, appendix B)."""

    count: Positive = 3
    """Number of titles that are asked for."""

    titles: Literal["all", "asked"] = "all"
    """Whether `all` that the model writes are looked up, or only as many as were `asked` for."""

    max_tokens: Positive = 64
    """The most tokens that name titles."""

    scope: Scope = "only"
    """`only` searches the paragraphs of these pages, `after` filters the best of a search of the whole corpus, as
    the released code does."""


PageSettings1 = with_defaults(PageSettings, titles="asked")
"""Version 1 of the systems, which dropped titles beyond those asked for."""


def find_pages(
    question: Question, shots: Shots, settings: PageSettings, prompting: PromptSettings
) -> Part[tuple[str, ...]]:
    """Have the model name pages, and look up the corpus's nearest titles, each once; without any, search all pages.

    A question that pins no passage searches the whole corpus. A model may name more pages than it is asked for: each
    is looked up, and the first `MAX_PAGES` that are found are searched.
    """
    pinned = pinned_paragraph(question)
    if pinned is None:
        return ()
    demonstrations = shots.get(AnswerForm.TITLES, Demonstrations())
    prompt = few_shot_prompt(
        demonstrations=demonstrations,
        paragraphs=(pinned,),
        question=instructed(title_question(question.text, settings.count), demonstrations.instruction),
        drop=prompting.drop,
    )
    titles = parse_titles((yield from text_of(Reason(prompt=prompt, max_tokens=settings.max_tokens, until="line"))))
    if settings.titles == "asked":
        titles = titles[: settings.count]
    # A model may misspell a title or make one up, so that each stands for the corpus's nearest one.
    searches = yield from all_of((Retrieve(query=title, count=1, field="title") for title in titles), Retrieved)
    return tuple(dict.fromkeys(hit.paragraph.title for each in searches for hit in each.hits))[:MAX_PAGES]


def most_pages(question: Question, settings: PageSettings, most_words: int) -> tuple[Most, ...]:
    """The most steps that choose pages, none for a question that pins no passage; most_words: of the passage."""
    if pinned_paragraph(question) is None:
        return ()
    naming = Most(kind="reason", times=1, output=settings.max_tokens, words=most_words, form=AnswerForm.TITLES)
    looked_up = settings.max_tokens if settings.titles == "all" else settings.count
    return (naming, Most(kind="retrieve", times=looked_up))
