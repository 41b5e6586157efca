"""Names of models: `system:corpus:model`, parts may be left out at the end, and several corpora are joined by `+`."""

from collections.abc import Iterator
from typing import Any

from msgspec import ValidationError, convert

from cotrail.api.openai.requests import AnyRequest, Message
from cotrail.common import nearest
from cotrail.configuration.settings import settings
from cotrail.core.binding import MODEL
from cotrail.core.budgets import NO_BUDGET, Budget
from cotrail.errors import InputError, UnknownNameError
from cotrail.services.access.grants import find_granted_model
from cotrail.services.runs.asking import askable_systems, converses, corpus_names
from cotrail.services.runs.requests import DEFAULT_SYSTEM, AskRequest
from cotrail.services.runs.resolving import prices_of

MOST_LISTED = 1000
"""The most models that are listed; any other combination can be named as well."""

EARLIER, NOW = "The conversation so far:", "The question:"


def ask_request(request: AnyRequest, messages: list[Message]) -> AskRequest:
    """The question that a request asks; raises InputError.

    It is the last message of the user. What was said before it is put in front of it for systems whose prompts are
    conversations; others search with the question's own words, and get it alone.
    """
    request.check()
    asked = next((place for place in reversed(range(len(messages))) if messages[place].role == "user"), None)
    if asked is None:
        raise InputError("there is no message of the role `user`, whose last one is the question")
    question = _made(request, messages[asked].text)
    earlier = [f"{each.role}: {each.text}" for each in messages[:asked] if each.text]
    if earlier and converses(question):
        return _made(request, "\n\n".join((EARLIER, *earlier, NOW, question.question)))
    return question


def name_of(system: str, corpora: tuple[str, ...], model: str = "") -> str:
    """The name of a model."""
    return ":".join((system, "+".join(corpora), model)).rstrip(":")


def listed() -> list[dict[str, Any]]:
    """The models that there are, with the default language model: each system with each corpus, if it searches one."""
    names = [name for name, _ in zip(_names(), range(MOST_LISTED), strict=False)]
    return [described(name) for name in names]


def check_name(name: str) -> None:
    """Raises UnknownNameError where a name has a system, a corpus or a language model that there isn't."""
    system, corpora, model = _parts(name)
    known = [each for each, _ in askable_systems()]
    if system not in known:
        raise UnknownNameError(nearest.unknown("system", system, known))
    for corpus in corpora:
        if corpus not in corpus_names():
            raise UnknownNameError(nearest.unknown("corpus", corpus, corpus_names()))
    if model is not None:
        find_granted_model(model)


def described(name: str) -> dict[str, Any]:
    """A model as OpenAI's API describes it."""
    return {"id": name, "object": "model", "created": 0, "owned_by": "cotrail"}


def _names() -> Iterator[str]:
    corpora = corpus_names()
    for system, searches in askable_systems():
        yield from (name_of(system, (corpus,)) for corpus in corpora) if searches else (system,)


def _made(request: AnyRequest, question: str) -> AskRequest:
    system, corpora, model = _parts(request.model)
    values = {
        "question": question,
        "system": system,
        "corpora": corpora,
        "model": model,
        "temperature": request.temperature,
        "seed": request.seed,
        "question_budget": _budget(model),
    }
    try:
        return convert({name: value for name, value in values.items() if value is not None}, AskRequest)
    except ValidationError as error:
        raise InputError(f"{error}; correct it") from error


def _parts(name: str) -> tuple[str, tuple[str, ...], str | None]:
    """The system, the corpora and the language model that a name has."""
    system, _, rest = name.partition(":")
    corpora, _, model = rest.partition(":")
    return system or DEFAULT_SYSTEM, tuple(filter(None, corpora.split("+"))), model or None


def _budget(model: str | None) -> Budget:
    """What a question may cost where its model has a price: OpenAI's requests have no field for it."""
    prices = prices_of({MODEL: find_granted_model(model or settings().model)})
    return Budget(money=settings().openai_money) if prices.get(MODEL) else NO_BUDGET
