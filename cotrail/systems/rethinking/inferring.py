"""The last step of the variants: the answer inferred from supporting facts (section 5.3 and appendix A.5)."""

from msgspec.structs import replace

from cotrail.core.actions.read import Read
from cotrail.core.paragraphs import Paragraph
from cotrail.core.prompts import Demonstrations, Shots
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Part, expect
from cotrail.systems.parts.prompting import passage_of, shown
from cotrail.systems.parts.reading import read
from cotrail.systems.parts.tasks import OPENINGS, task_answer, task_prompt, task_question
from cotrail.systems.rethinking.settings import RethinkingSettings


def infer_answer(question: Question, told: tuple[str, ...], shots: Shots, settings: RethinkingSettings) -> Part[str]:
    """The answer by the settings' way of inferring; told: the supporting facts."""
    if settings.inference == "reader":
        text = yield from _read(question, told, shots, settings)
    else:
        text = yield from _prompted(question, told, settings)
    return task_answer(text, settings)


def _read(question: Question, told: tuple[str, ...], shots: Shots, settings: RethinkingSettings) -> Part[str]:
    """By the reader: `cot` continues the facts, as the beginning of a chain; `direct` is shown them as a paragraph."""
    continues = settings.reading.reader == "cot"
    return (
        yield from read(
            replace(question, text=task_question(question, settings.task)),
            shown(question, () if continues else _passage(told)),
            shots,
            settings.reading,
            settings.prompting,
            sentences=told if continues else (),
            layout=settings.prompt_layout,
            until=settings.until,
        )
    )


def _prompted(question: Question, told: tuple[str, ...], settings: RethinkingSettings) -> Part[str]:
    """Without demonstrations: as zero-shot prompting does, or in UnifiedQA's form."""
    if settings.inference == "unifiedqa":
        settings = replace(settings, layout="unifiedqa")
    prompt = task_prompt(question, Demonstrations(), settings)
    opening = "" if settings.inference == "unifiedqa" else OPENINGS[settings.task]
    prompt = replace(
        prompt,
        paragraphs=(*prompt.paragraphs, *_passage(told)),
        sentences=(opening,) if opening else (),
    )
    reply = yield Read(prompt=prompt, max_tokens=settings.reading.max_answer_tokens, until=settings.until)
    return expect(reply, Generated).text


def _passage(told: tuple[str, ...]) -> tuple[Paragraph, ...]:
    return (passage_of(" ".join(told)),) if told else ()
