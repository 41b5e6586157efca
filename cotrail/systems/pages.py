"""The pages that a question with a pinned passage searches (IRCoT, appendix B: IIRC)."""

from cotrail.core.actions.reason import Reason
from cotrail.core.actions.retrieve import Retrieve
from cotrail.core.page_titles import parse_titles, title_question
from cotrail.core.prompts import AnswerForm, Demonstrations, Prompt
from cotrail.core.questions import Question
from cotrail.core.results import Retrieved
from cotrail.core.system import Together
from cotrail.systems.reading import Part, Shots, instructed, pinned_paragraph, written
from cotrail.systems.settings import PageSettings, PromptSettings

MAX_PAGES = 15
"""How many pages are searched at most (`global_max_num_paras` in the released configurations)."""


def find_pages(
    question: Question, shots: Shots, settings: PageSettings, prompting: PromptSettings
) -> Part[tuple[str, ...]]:
    """Has the model name pages, and returns the corpus's nearest titles, each once; none leaves searches unscoped.

    A question that pins no passage searches the whole corpus. A model may name more pages than it is asked for: each
    is looked up, and the first `MAX_PAGES` that are found are searched.
    """
    pinned = pinned_paragraph(question)
    if pinned is None:
        return ()
    demonstrations = shots.get(AnswerForm.TITLES, Demonstrations())
    prompt = Prompt(
        demonstrations=demonstrations,
        paragraphs=(pinned,),
        question=instructed(title_question(question.text, settings.count), demonstrations.instruction),
        drop=prompting.drop,
    )
    titles = parse_titles((yield from written(Reason(prompt=prompt, max_tokens=settings.max_tokens, until="line"))))
    if settings.titles == "asked":
        titles = titles[: settings.count]
    if not titles:
        return ()
    found = yield Together(tuple(Retrieve(query=title, count=1, field="title") for title in titles))
    assert isinstance(found, tuple)  # noqa: S101 - what a Together is answered with
    hits = (hit for each in found if isinstance(each, Retrieved) for hit in each.hits)
    return tuple(dict.fromkeys(hit.paragraph.title for hit in hits))[:MAX_PAGES]
