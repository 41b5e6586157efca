"""One round of searches, then a prompt: baselines of Search-in-the-Chain (section 4.1).

Direct Retrieval shows the best paragraphs for the question. Plan-and-Solve makes a plan of the whole question, searches
for all its sub-questions, and solves it; as it was published (Wang et al., 2023, section 2) it searches for nothing.
"""

from itertools import chain

from msgspec import Struct

from cotrail.common.humanize import Positive, Temperature
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import AnswerForm, Shots
from cotrail.core.prompts import Asked, Prompt, Written, user
from cotrail.core.questions import Paragraph, Question
from cotrail.core.system import Answer, Part, System
from cotrail.faithfulness.paper import sentences
from cotrail.systems.parts import prompting
from cotrail.systems.parts.answers import behind_answer_is, stated_or_all, sub_questions
from cotrail.systems.parts.prompting import own_words, worded
from cotrail.systems.parts.rules import Limited, StepBound, words_in
from cotrail.systems.parts.searching import SearchSettings, each_found, found, shown
from cotrail.systems.parts.steps import asked_on, last_text, text_of
from cotrail.systems.spec import Needs, SystemSpec, always, description

DIRECT, PLAN = own_words("direct_retrieval"), own_words("plan_and_solve")

PARAGRAPH = "Paragraph {number}: {title}\n{text}\n\n"


class DirectRetrievalSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Direct Retrieval."""

    search: SearchSettings = SearchSettings()

    max_tokens: Positive = 256
    """The most tokens of the answer."""

    temperature: Temperature | None = None
    """The temperature; the run's unless given."""


def direct_retrieval(question: Question, shots: Shots, settings: DirectRetrievalSettings) -> System:
    """Search with the question, show what was found, and take what the model says."""
    paragraphs: tuple[Paragraph, ...] = ()
    with Limited() as end:
        paragraphs = yield from found(question.text, settings.search)
    pieces = shown(prompting.shown(question, paragraphs), PARAGRAPH, settings.search)
    words = worded(shots, DIRECT, "prompt", paragraphs=pieces, question=Asked(question.text))
    prompt = Prompt(turns=(user(*words),))
    reading = Read(prompt=prompt, max_tokens=settings.max_tokens, until="end", temperature=settings.temperature)
    said = yield from last_text(reading)
    return Answer(text=stated_or_all(said), paragraphs=paragraphs, limit=end.limit)


def direct_retrieval_bounds(question: Question, settings: DirectRetrievalSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    words = settings.search.most_words + words_in(DIRECT)
    reading = StepBound(kind="read", times=1, output=settings.max_tokens, words=words, form=AnswerForm.PROMPT)
    return (StepBound(kind="retrieve", times=1), reading)


class PlanAndSolveSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Plan-and-Solve."""

    retrieve: bool = True
    """Whether the plan's sub-questions are searched for, all at once. Without it the plan and its solution are one text
    from memory, as Wang et al. (2023) have it."""

    search: SearchSettings = SearchSettings()

    sub_questions: Positive = 8
    """Sub-questions of the plan that are searched for, at most."""

    max_tokens: Positive = 256
    """The most tokens of the plan, and of the solution."""

    max_answer_tokens: Positive = 32
    """The most tokens of an answer that is asked for behind a solution that states none."""

    temperature: Temperature | None = None
    """The temperature; the run's unless given."""


def plan_and_solve(question: Question, shots: Shots, settings: PlanAndSolveSettings) -> System:
    """Plan, search for what the plan asks, and carry it out; where that states no answer, ask for it."""
    prompt = Prompt(turns=(user(*worded(shots, PLAN, "think", question=Asked(question.text))),))
    paragraphs: tuple[Paragraph, ...] = ()
    solution, answer = "", None
    with Limited() as end:
        if settings.retrieve:
            plan = yield from planned(question, shots, settings)
            paragraphs = yield from looked_up(plan, question, settings)
            prompt = solving(question, plan, paragraphs, shots, settings)
        solution = yield from text_of(writing(prompt, settings))
        answer = behind_answer_is(solution)
    if not answer:
        answer = yield from extracted(prompt, solution, shots, settings)
    return Answer(text=answer, sentences=sentences(solution), paragraphs=paragraphs, limit=end.limit)


def planned(question: Question, shots: Shots, settings: PlanAndSolveSettings) -> Part[str]:
    """The plan as the model writes it."""
    prompt = Prompt(turns=(user(*worded(shots, PLAN, "plan", question=Asked(question.text))),))
    return (yield from text_of(writing(prompt, settings)))


def looked_up(plan: str, question: Question, settings: PlanAndSolveSettings) -> Part[tuple[Paragraph, ...]]:
    """What searches for the plan's sub-questions find, or for the question where the plan has none."""
    queries = sub_questions(plan, settings.sub_questions) or (question.text,)
    return tuple(dict.fromkeys(chain.from_iterable((yield from each_found(queries, settings.search)))))


def solving(
    question: Question, plan: str, paragraphs: tuple[Paragraph, ...], shots: Shots, settings: PlanAndSolveSettings
) -> Prompt:
    """The paragraphs, the plan and the question."""
    pieces = shown(prompting.shown(question, paragraphs), PARAGRAPH, settings.search)
    asked = Asked(question.text)
    return Prompt(turns=(user(*worded(shots, PLAN, "solve", paragraphs=pieces, plan=Written(plan), question=asked)),))


def writing(prompt: Prompt, settings: PlanAndSolveSettings) -> Reason:
    """A plan, or a solution."""
    return Reason(prompt=prompt, max_tokens=settings.max_tokens, until="end", temperature=settings.temperature)


def extracted(prompt: Prompt, solution: str, shots: Shots, settings: PlanAndSolveSettings) -> Part[str]:
    """The answer, asked for behind the solution."""
    asking = asked_on(prompt, solution, *worded(shots, PLAN, "state"))
    reading = Read(prompt=asking, max_tokens=settings.max_answer_tokens, temperature=settings.temperature)
    return stated_or_all((yield from last_text(reading)))


def plan_and_solve_bounds(question: Question, settings: PlanAndSolveSettings) -> tuple[StepBound, ...]:  # noqa: ARG001
    """See `SystemSpec`: a plan, a round of searches, a solution and an answer."""
    texts, count = (2, settings.sub_questions) if settings.retrieve else (1, 0)
    words = words_in(PLAN) + texts * settings.max_tokens + count * settings.search.most_words
    return (
        *([StepBound(kind="retrieve", times=count, in_turn=1)] if settings.retrieve else []),
        StepBound(kind="reason", times=texts, output=settings.max_tokens, words=words, form=AnswerForm.PROMPT),
        StepBound(kind="read", times=1, output=settings.max_answer_tokens, words=words, form=AnswerForm.PROMPT),
    )


SPECS = (
    SystemSpec(
        **description("direct-retrieval"),
        settings=DirectRetrievalSettings,
        open=direct_retrieval,
        needs=always(Needs(words=DIRECT, corpus=True, capabilities=frozenset({"turns"}))),
        step_bounds=direct_retrieval_bounds,
    ),
    SystemSpec(
        **description("plan-and-solve"),
        settings=PlanAndSolveSettings,
        open=plan_and_solve,
        needs=lambda settings: Needs(words=PLAN, corpus=settings.retrieve, capabilities=frozenset({"turns"})),
        step_bounds=plan_and_solve_bounds,
    ),
)
