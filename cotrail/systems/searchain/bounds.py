"""The most steps that Search-in-the-Chain takes by its settings."""

from cotrail.core.demonstrations import AnswerForm
from cotrail.core.questions import Question
from cotrail.systems.parts.most import Most
from cotrail.systems.searchain.prompts import own_prompt
from cotrail.systems.searchain.settings import SearChainSettings

_COMPARING = {"embedder": "embed", "rater": "rate"}


def most(question: Question, settings: SearChainSettings) -> tuple[Most, ...]:  # noqa: ARG001
    """See `SystemSpec`: every query of every chain is searched for and read, and stays in the conversation."""
    rounds = settings.rounds if settings.retrieve else 1
    told = rounds * (settings.max_chain_tokens + settings.max_paragraph_words) + len(own_prompt(settings).split())
    form = AnswerForm.PROMPT
    chains = Most(kind="reason", times=rounds, output=settings.max_chain_tokens, words=told, form=form)
    final = Most(kind="reason", times=1, output=settings.max_final_tokens, words=told, form=form)
    steps = (chains, *([final] if settings.tracing else ()))
    return (*steps, *_looked_up(rounds * settings.max_queries, settings)) if settings.retrieve else steps


def _looked_up(queries: int, settings: SearChainSettings) -> tuple[Most, ...]:
    """The steps that look up so many queries."""
    kinds = ["retrieve", *([_COMPARING[settings.duplicates]] if settings.duplicates in _COMPARING else ())]
    words, output = settings.max_paragraph_words, settings.max_answer_tokens
    reads = Most(kind="read", times=queries, output=output, words=words)
    if settings.reads and settings.reader == "extractor":
        kinds.append("extract")
    searches = tuple(Most(kind=kind, times=queries) for kind in kinds)
    return (*searches, reads) if settings.reads and settings.reader == "model" else searches
