"""The last step of the variants: the answer inferred from supporting facts (section 5.3 and appendix A.5)."""

from msgspec.structs import replace

from cotrail.core.actions.generate import Read
from cotrail.core.binding import MODEL
from cotrail.core.demonstrations import Demonstrations, Shots
from cotrail.core.paragraphs import Paragraph, passage_of
from cotrail.core.ports.inferrer import INFERRER
from cotrail.core.prompts import Prompt
from cotrail.core.questions import Question
from cotrail.core.results import Generated
from cotrail.core.system import Part, expect
from cotrail.systems.parts.prompting import shown
from cotrail.systems.parts.reader import reader_prompt
from cotrail.systems.parts.tasks import OPENINGS, task_answer, task_prompt, task_question
from cotrail.systems.rethinking.settings import RethinkingSettings


def infer_answer(question: Question, facts: tuple[str, ...], shots: Shots, settings: RethinkingSettings) -> Part[str]:
    """The answer by the settings' way of inferring; facts: the supporting ones."""
    if settings.inference == "reader":
        prompt, max_tokens = _reader_prompt(question, facts, shots, settings), settings.reading.max_tokens
    else:
        prompt, max_tokens = _bare_prompt(question, facts, settings), settings.reading.max_answer_tokens
    model = INFERRER.name if settings.infers_elsewhere else MODEL
    reading = Read(prompt=prompt, max_tokens=max_tokens, until=settings.until, model=model)
    text = expect((yield reading), Generated).text
    if settings.inference == "reader":
        text = settings.reading.answer_in(text)
    return task_answer(text, settings)


def _reader_prompt(question: Question, facts: tuple[str, ...], shots: Shots, settings: RethinkingSettings) -> Prompt:
    """The reader's: `cot` continues the facts, as the beginning of a chain; `direct` is shown them as a paragraph."""
    continues = settings.reading.reader == "cot"
    task_form = replace(question, text=task_question(question, settings.task))
    shown_facts = () if continues else _passage(facts)
    return reader_prompt(
        task_form,
        shown(question, shown_facts),
        shots,
        settings.reading,
        settings.prompting,
        sentences=facts if continues else (),
        layout=settings.prompt_layout,
    )


def _bare_prompt(question: Question, facts: tuple[str, ...], settings: RethinkingSettings) -> Prompt:
    """Without demonstrations: as zero-shot prompting does, or in UnifiedQA's form."""
    if settings.inference == "unifiedqa":
        settings = replace(settings, layout="unifiedqa")
    opening = "" if settings.inference == "unifiedqa" else OPENINGS[settings.task]
    return task_prompt(question, Demonstrations(), settings, opening, _passage(facts))


def _passage(facts: tuple[str, ...]) -> tuple[Paragraph, ...]:
    return (passage_of(" ".join(facts)),) if facts else ()
