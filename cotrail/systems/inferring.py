"""The last step of the variants: the answer that supporting facts lead to (section 5.3 and appendix A.5)."""

from msgspec.structs import replace

from cotrail.core.actions.read import Read
from cotrail.core.auxiliary_questions import untitled
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Demonstrations
from cotrail.core.questions import Question
from cotrail.systems.asking import task_answer, task_prompt, task_question
from cotrail.systems.reading import Part, Shots, read, text_of
from cotrail.systems.settings import OPENINGS, RethinkingSettings


def infer_answer(question: Question, told: tuple[str, ...], shots: Shots, settings: RethinkingSettings) -> Part[str]:
    """The answer by the settings' way of inferring; told: the supporting facts."""
    if settings.inference == "reader":
        text = yield from _read(question, told, shots, settings)
    else:
        text = yield from _asked(question, told, settings)
    return task_answer(text, settings)


def _read(question: Question, told: tuple[str, ...], shots: Shots, settings: RethinkingSettings) -> Part[str]:
    """By the reader. `cot` goes on from the facts, as from a chain's beginning; another one's paragraphs say them."""
    asked = replace(question, text=task_question(question, settings.task))
    goes_on = settings.reading.reader == "cot"
    return (
        yield from read(
            asked,
            () if goes_on else _passage(told),
            shots,
            settings.reading,
            settings.prompting,
            sentences=told if goes_on else (),
            layout=settings.prompt_layout,
            until=settings.until,
        )
    )


def _asked(question: Question, told: tuple[str, ...], settings: RethinkingSettings) -> Part[str]:
    """Without demonstrations: as zero-shot prompting does, or in UnifiedQA's form."""
    if settings.inference == "unifiedqa":
        settings = replace(settings, layout="unifiedqa")
    prompt = task_prompt(question, Demonstrations(), settings)
    opening = "" if settings.inference == "unifiedqa" else OPENINGS[settings.task]
    stating = replace(
        prompt,
        paragraphs=(*prompt.paragraphs, *_passage(told)),
        sentences=(opening,) if opening else (),
    )
    return text_of((yield Read(prompt=stating, max_tokens=settings.reading.max_answer_tokens, until=settings.until)))


def _passage(told: tuple[str, ...]) -> tuple[Paragraph, ...]:
    return (untitled(" ".join(told)),) if told else ()
