"""Judge: a language model grades an answer of another run by a rubric."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct, field

from cotrail.common.numbers import Positive, rounded
from cotrail.core.actions.generate import Judge
from cotrail.core.demonstrations import Shots
from cotrail.core.paragraphs import Paragraph, passage_of
from cotrail.core.ports.judge import JUDGING
from cotrail.core.prompts import Asked, Piece, Prompt, Shown, user
from cotrail.core.questions import JudgedAnswer, Question
from cotrail.core.results import Generated
from cotrail.core.system import Answer, Part, System, Together, expect, expect_each
from cotrail.systems.judge.answer_form import (
    CLAIMS,
    CLAIMS_IN_WORDS,
    Said,
    claims_in,
    in_words,
    said_in,
    verdict_schema,
)
from cotrail.systems.judge.judgement import ClaimVerdict, Judgement
from cotrail.systems.judge.rubric import Rubric, built_in
from cotrail.systems.parts.most import Most
from cotrail.systems.parts.words import Filling, filled
from cotrail.systems.spec import Needs, SystemSpec

FAITHFUL, PARTLY, UNFAITHFUL, CONTRADICTED, NO_CLAIMS = "faithful", "partly", "unfaithful", "contradicted", "no claims"
"""The verdicts on an answer by those on its claims: all are supported, some, none; one is contradicted; there are none.
The score is the share of claims that are supported and for which a paragraph is cited; 0 without any claim."""

SWAPPED = {"first": "second", "second": "first"}
TIE = "tie"
SHARE_DECIMALS = 6


class JudgeSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A judge."""

    rubric: Rubric = field(default_factory=partial(built_in, "correct"))
    """What it is asked, and which verdicts there are."""

    runs: tuple[str, ...] = ()
    """The ids of the runs whose answers it grades."""

    max_tokens: Positive = 2048
    """The most tokens of a verdict with its reasons, or of a list of claims."""

    max_claims: Annotated[int, Meta(ge=1, le=200)] = 50
    """The most claims of an answer that are judged, the first ones."""


def judge(question: Question, _: Shots, settings: JudgeSettings) -> System:
    """Grade an answer by a rubric: as a whole, claim by claim, or against another answer in both orders."""
    rubric = settings.rubric
    match rubric.asks:
        case "claims":
            return (yield from _claim_by_claim(question, settings))
        case "pair":
            judgement = yield from _in_both_orders(question, settings)
        case "answer":
            judgement = yield from _as_a_whole(question, settings)
    return Answer(text=judgement.verdict, details=judgement)


def _as_a_whole(question: Question, settings: JudgeSettings) -> Part[Judgement]:
    [judged] = question.judged
    rubric = settings.rubric
    action = _asking(
        question,
        settings,
        answer=_quoted(judged.answer),
        sentences=_quoted("\n".join(judged.sentences)),
        paragraphs=_numbered(judged.paragraphs),
    )
    said = said_in(expect((yield action), Generated).text)
    return Judgement(
        rubric=rubric.name,
        verdict=said.verdict,
        score=rubric.scores[said.verdict],
        confidence=_share(said.confidence),
        reasoning=said.reasoning,
        extracted=said.extracted,
    )


def _in_both_orders(question: Question, settings: JudgeSettings) -> Part[Judgement]:
    """The preference of both orders; a tie where they disagree (Zheng et al., 2023, section 3.4)."""
    one, other = (_quoted(each.answer) for each in question.judged)
    orders = ((one, other), (other, one))
    actions = tuple(_asking(question, settings, first=first, second=second) for first, second in orders)
    given, turned = (said_in(each.text) for each in expect_each((yield Together(actions)), Generated))
    consistent = given.verdict == SWAPPED.get(turned.verdict, turned.verdict)
    verdict = given.verdict if consistent else TIE
    sure = [each.confidence for each in (given, turned) if each.confidence is not None]
    return Judgement(
        rubric=settings.rubric.name,
        verdict=verdict,
        score=settings.rubric.scores[verdict],
        # A tie by disagreement is neither's verdict, so neither was sure of it.
        confidence=_share(sum(sure) / len(sure)) if sure and consistent else None,
        reasoning=f"In this order: {given.reasoning}\n\nIn the other: {turned.reasoning}",
        consistent=consistent,
    )


def _claim_by_claim(question: Question, settings: JudgeSettings) -> System:
    [judged] = question.judged
    claims = claims_in(expect((yield _listing(question, judged, settings)), Generated).text)
    taken = claims[: settings.max_claims]
    paragraphs = _numbered(judged.paragraphs)
    actions = tuple(_asking(question, settings, claim=Asked(claim), paragraphs=paragraphs) for claim in taken)
    replies = expect_each((yield Together(actions)), Generated) if actions else ()
    verdicts = tuple(
        _claim_verdict(claim, said_in(reply.text), len(judged.paragraphs))
        for claim, reply in zip(taken, replies, strict=True)
    )
    judgement = _summed_up(settings.rubric, verdicts)
    return Answer(text=judgement.verdict, details=judgement, limit="claims" if len(claims) > len(taken) else "")


def _listing(question: Question, judged: JudgedAnswer, settings: JudgeSettings) -> Judge:
    words = filled(
        settings.rubric.claims,
        question=Asked(question.text),
        answer=_quoted(judged.answer),
        sentences=_quoted("\n".join(judged.sentences)),
    )
    return _judging((*words, "\n\n", CLAIMS_IN_WORDS), CLAIMS, settings)


def _claim_verdict(claim: str, said: Said, paragraphs: int) -> ClaimVerdict:
    numbers = sorted({int(each) for each in said.cited if 1 <= each <= paragraphs})
    return ClaimVerdict(claim=claim, verdict=said.verdict, cited=tuple(numbers))


def _summed_up(rubric: Rubric, claims: Sequence[ClaimVerdict]) -> Judgement:
    """The verdict on an answer by those on its claims; a claim is supported only where a paragraph is cited for it."""
    scores = rubric.scores
    supported = sum(scores[each.verdict] == 1 and bool(each.cited) for each in claims)
    if not claims:
        verdict = NO_CLAIMS
    elif any(scores[each.verdict] < 0 for each in claims):
        verdict = CONTRADICTED
    elif supported == len(claims):
        verdict = FAITHFUL
    else:
        verdict = PARTLY if supported else UNFAITHFUL
    share = rounded(supported / len(claims), SHARE_DECIMALS) if claims else 0.0
    return Judgement(rubric=rubric.name, verdict=verdict, score=share, claims=tuple(claims))


def _asking(question: Question, settings: JudgeSettings, **values: Filling) -> Judge:
    """The step that asks for a verdict; values: what stands in the places of the rubric's words."""
    rubric = settings.rubric
    answers = _quoted("\n".join(question.answers))
    words = filled(rubric.words, question=Asked(question.text), answers=answers, **values)
    return _judging((*words, "\n\n", in_words(rubric)), verdict_schema(rubric), settings)


def _judging(words: Iterable[str | Piece], schema: str, settings: JudgeSettings) -> Judge:
    return Judge(prompt=Prompt(turns=(user(*words),)), max_tokens=settings.max_tokens, schema=schema)


def _quoted(text: str) -> Piece | str:
    """A text of others as a paragraph, since an answer mustn't speak for the model, and is stored once."""
    return Shown(paragraph=passage_of(text), form="{text}", yields=0) if text else ""


def _numbered(paragraphs: Sequence[Paragraph]) -> tuple[Shown, ...]:
    """The paragraphs with their numbers, from 1; none is ever left out, as a verdict without it would be another."""
    return tuple(
        Shown(paragraph=each, form=f"[{number}] {{title}}\n{{text}}\n\n", yields=0)
        for number, each in enumerate(paragraphs, start=1)
    )


def _share(percent: float | None) -> float | None:
    return None if percent is None else rounded(percent / 100, SHARE_DECIMALS)


def needs(settings: JudgeSettings) -> Needs:  # noqa: ARG001
    """A model that answers in a form that is asked for."""
    return Needs(capabilities=JUDGING)


def most(question: Question, settings: JudgeSettings) -> tuple[Most, ...]:
    """See `SystemSpec`: one verdict, two for a pair; or a list of claims and a verdict on each."""
    rubric, output = settings.rubric, settings.max_tokens
    words = len(f"{rubric.words} {rubric.claims} {in_words(rubric)}".split()) + _shown_words(question)
    match rubric.asks:
        case "claims":
            verdicts = Most(kind="judge", times=settings.max_claims, in_turn=1, output=output, words=words + output)
            return Most(kind="judge", times=1, output=output, words=words), verdicts
        case "pair":
            return (Most(kind="judge", times=2, in_turn=1, output=output, words=words),)
        case "answer":
            return (Most(kind="judge", times=1, output=output, words=words),)


def _shown_words(question: Question) -> int:
    """How many words the answers have that a prompt may show, the published ones among them, and their paragraphs."""
    judged = question.judged
    texts = [*question.answers, *(each.answer for each in judged), *(s for each in judged for s in each.sentences)]
    statements = [paragraph.statement for each in judged for paragraph in each.paragraphs]
    return sum(len(text.split()) for text in (*texts, *statements))


SPEC = SystemSpec(
    name="judge",
    version=1,
    title="Judge",
    paper="after Zheng et al., 2023, https://arxiv.org/abs/2306.05685",
    settings=JudgeSettings,
    open=judge,
    needs=needs,
    details=Judgement,
    most=most,
    judges=True,
    readerless=True,
)
SPECS = (SPEC,)
