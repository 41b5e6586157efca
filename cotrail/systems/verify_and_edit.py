"""Verify-and-Edit: a chain on which few samples agree is checked by sentences (Zhao et al., 2023, section 3)."""

import math
from collections.abc import Sequence
from operator import attrgetter, itemgetter
from typing import Annotated, Any

from msgspec import Meta, Struct

from cotrail.common.numbers import Positive
from cotrail.core.actions.embed import Embed
from cotrail.core.actions.generate import Read, Reason
from cotrail.core.demonstrations import Shots
from cotrail.core.paragraphs import Paragraph
from cotrail.core.ports.embedder import EMBEDDER
from cotrail.core.ports.entailer import ENTAILER
from cotrail.core.prompts import Asked, Piece, Prompt, Written, plain
from cotrail.core.questions import Question
from cotrail.core.results import Embedded, Generated
from cotrail.core.system import Answer, LimitReached, Part, System, expect
from cotrail.faithfulness.sentences import all_sentences, sentences
from cotrail.systems.parts.answers import behind
from cotrail.systems.parts.majority import majority, same_answer
from cotrail.systems.parts.most import Most, words_in
from cotrail.systems.parts.searching import SearchSettings, found
from cotrail.systems.parts.steps import all_of, last_step
from cotrail.systems.parts.token_scores import mean_score
from cotrail.systems.parts.words import Filling, chosen_words, own_words, worded
from cotrail.systems.spec import Needs, SystemSpec

OWN = own_words("verify_and_edit")
STATEMENT = "The answer is"
STOP = ("\n\n", "\nQ:")
MOST_SENTENCES = 200
"""Sentences of what was found that are compared with a question."""


class VerifyAndEditSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Verify-and-Edit."""

    search: SearchSettings = SearchSettings()

    samples: Positive = 5
    """The number of chains that are sampled."""

    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.7
    """The temperature at which they are; the released code draws them all at 0."""

    agreeing: Positive | None = 3
    """As many chains with the same answer are believed and not edited: half of them, rounded up, in the paper. Without
    a number every chain is edited."""

    context_sentences: Positive = 3
    """Sentences of what was found that a sentence is edited by."""

    max_chain_tokens: Positive = 144
    """The most tokens of a chain."""

    max_sentence_tokens: Positive = 70
    """The most tokens of a question about a sentence, and of the sentence that replaces it."""

    max_edited: Positive = 10
    """Sentences of a chain that are edited, at most; further ones stay."""


class Chain(Struct, frozen=True):
    """A sampled chain: its sentences, the answer that it states, and the mean log probability of its tokens."""

    sentences: tuple[str, ...]
    answer: str
    score: float


def verify_and_edit(question: Question, shots: Shots, settings: VerifyAndEditSettings) -> System:
    """Sample chains and, where too few agree, replace each sentence of the likeliest one by what is found for it."""
    chain, limit = Chain((), "", 0.0), ""
    edited: tuple[str, ...] = ()
    paragraphs: tuple[Paragraph, ...] = ()
    try:
        chain, votes = agreed((yield from sampled_chains(question, shots, settings)))
        if settings.agreeing is not None and votes >= settings.agreeing:
            return Answer(text=chain.answer, sentences=chain.sentences)
        for sentence in chain.sentences[: settings.max_edited]:
            asked = yield from wrote("verify", question.text, shots, settings, sentence=sentence)
            known = yield from found(asked, settings.search)
            paragraphs = tuple(dict.fromkeys((*paragraphs, *known)))
            context = yield from nearest(asked, known, settings)
            answer = yield from wrote("edit", asked, shots, settings, context=context)
            # Without anything found, or an answer from it, the sentence stays.
            edited += (answer if context and answer else sentence,)
    except LimitReached as reached:
        limit = reached.limit
    rationale = (*edited, *chain.sentences[len(edited) :])
    prompt = chain_prompt(question, shots, *(Written(f" {each}") for each in rationale), f" {STATEMENT}")
    read = Read(prompt=prompt, max_tokens=settings.max_sentence_tokens, temperature=0.0)
    answer = expect((yield from last_step(read)), Generated).text.removesuffix(".").rstrip()
    return Answer(text=answer, sentences=rationale, paragraphs=paragraphs, limit=limit)


def sampled_chains(question: Question, shots: Shots, settings: VerifyAndEditSettings) -> Part[tuple[Chain, ...]]:
    """Chains of thought, all of one prompt."""
    prompt = chain_prompt(question, shots)
    asked = (
        Reason(
            prompt=prompt,
            max_tokens=settings.max_chain_tokens,
            until="stop",
            stop=STOP,
            temperature=settings.temperature,
            sample=number,
            scored=True,
        )
        for number in range(settings.samples)
    )
    return tuple(map(chain_of, (yield from all_of(asked, Generated))))


def chain_of(written: Generated) -> Chain:
    """A chain as it was written; its rationale is what stands before its last statement."""
    rationale, is_stated, _ = written.text.rpartition(STATEMENT)
    score = mean_score(written, 0, len(written.text))
    return Chain(
        sentences=sentences(rationale if is_stated else written.text),
        answer=behind(written.text, STATEMENT) or "",
        score=-math.inf if score is None else score,
    )


def agreed(chains: Sequence[Chain]) -> tuple[Chain, int]:
    """The likeliest chain with the answer that most have, and how many have it; of all chains where none has any."""
    votes = majority(each.answer for each in chains)
    with_it = [each for each in chains if not votes.winner or same_answer(each.answer, votes.winner)]
    return max(with_it, key=attrgetter("score")), votes.counted[0].votes if votes.counted else 0


def nearest(query: str, known: tuple[Paragraph, ...], settings: VerifyAndEditSettings) -> Part[str]:
    """The sentences of what was found that are most like the question, in the order of their likeness."""
    texts = dict.fromkeys(each for paragraph in known for each in all_sentences(paragraph.text))
    compared = tuple(texts)[:MOST_SENTENCES]
    if not compared or not query:
        return ""
    similar = expect((yield Embed(sentences=(query, *compared))), Embedded).similarities[0][1:]
    ranked = sorted(zip(similar, compared, strict=True), key=itemgetter(0), reverse=True)
    return " ".join(text for _, text in ranked[: settings.context_sentences])


def wrote(name: str, question: str, shots: Shots, settings: VerifyAndEditSettings, **values: Filling) -> Part[str]:
    """What the model writes to the prompt of that name, in one line."""
    words = worded(shots, OWN, name, question=Asked(question), **values)
    step = Reason(
        prompt=Prompt(turns=(plain(*words),)),
        max_tokens=settings.max_sentence_tokens,
        until="line",
        temperature=0.0,
    )
    return expect((yield step), Generated).text


def chain_prompt(question: Question, shots: Shots, *begun: str | Piece) -> Prompt:
    """The demonstrations and the question, with the beginning of its chain."""
    examples = chosen_words(shots, OWN, "examples")
    words = worded(shots, OWN, "answer", examples=examples, question=Asked(question.text))
    return Prompt(turns=(plain(*words, *begun),))


def needs(_: VerifyAndEditSettings) -> Needs:
    """Several chains with their probabilities, a corpus, and a model that compares sentences."""
    # Runs that compare sentences by embeddings pin an entailer too.
    engines = (EMBEDDER, ENTAILER)
    return Needs(words=OWN, corpus=True, samples=True, engines=engines, capabilities=frozenset({"scores"}))


def most(question: Question, settings: VerifyAndEditSettings) -> tuple[Most, ...]:  # noqa: ARG001
    """See `SystemSpec`."""
    edited, own = settings.max_edited, words_in(OWN)
    line, context = settings.max_sentence_tokens, own + settings.search.most_words
    return (
        Most(kind="reason", times=settings.samples, in_turn=1, output=settings.max_chain_tokens, words=own),
        Most(kind="reason", times=2 * edited, output=line, words=context),
        Most(kind="retrieve", times=edited),
        Most(kind="embed", times=edited),
        Most(kind="read", times=1, output=line, words=own + settings.max_chain_tokens + edited * line),
    )


def released(*, instructed: bool) -> dict[str, Any]:  # noqa: ARG001 - see `Released`
    """Where the authors' code departs from the paper: it edits every chain, and draws all samples at temperature 0."""
    return {"agreeing": None, "temperature": 0.0}


SPECS = (
    SystemSpec(
        name="verify-and-edit",
        version=1,
        title="Verify-and-Edit",
        paper="Zhao et al., 2023, https://arxiv.org/abs/2305.03268",
        settings=VerifyAndEditSettings,
        open=verify_and_edit,
        needs=needs,
        released=released,
        most=most,
    ),
)
