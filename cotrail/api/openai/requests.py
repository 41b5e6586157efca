"""Requests of OpenAI's API, as far as they mean something to a reasoning system.

Fields that aren't here are ignored, as servers with this API do: what is generated is bounded by the system's settings
and not by `max_tokens`, and sampled by `temperature` and `seed` alone. Those that ask for another thing are refused.
"""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from litestar import Request, Response
from litestar.exceptions import HTTPException
from msgspec import Struct, ValidationError, convert, field

from cotrail.api import problems
from cotrail.common import nearest
from cotrail.configuration.settings import settings
from cotrail.core.binding import MODEL
from cotrail.core.budgets import NO_BUDGET, Budget
from cotrail.errors import CotrailError, InputError, UnknownNameError
from cotrail.services.access.grants import find_granted_model
from cotrail.services.runs.requests import DEFAULT_SYSTEM, AskRequest
from cotrail.services.runs.resolving import askable_systems, converses, corpus_names, prices_of

NO_ANSWER = HTTPStatus.UNPROCESSABLE_ENTITY
"""The status where a question has no answer. Workers have tried it again as often as makes sense, and clients ask again
after each error of the server, some without an end."""

TYPES = {
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
}


def error_body(message: str, status: int, code: str | None = None, param: str | None = None) -> dict[str, Any]:
    """An error; its type follows from the status of the answer."""
    kind = TYPES.get(HTTPStatus(status), "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def of_error(request: Request[Any, Any, Any], error: CotrailError) -> Response[dict[str, Any]]:
    """The answer where a request is refused or failed."""
    problem = problems.of_error(request, error)
    details, status = problem.content, problem.status_code or HTTPStatus.INTERNAL_SERVER_ERROR
    code = "model_not_found" if isinstance(error, UnknownNameError) else details.title.replace(" ", "_")
    if isinstance(error, InputError) and not isinstance(error, UnknownNameError):
        status = HTTPStatus.BAD_REQUEST
    body = error_body(details.detail, status, code)
    return Response(body, status_code=status, headers={**problem.headers, "x-request-id": details.request_id})


def of_http(request: Request[Any, Any, Any], error: HTTPException) -> Response[dict[str, Any]]:
    """The answer where a request can't be read."""
    problem = problems.of_http(request, error)
    status = problem.status_code or HTTPStatus.BAD_REQUEST
    return Response(error_body(problem.content.detail, status), status_code=status)


PROBABILITIES = "message.output_text.logprobs"
"""What `include` of a response may name that no answer has; other things in it are ignored."""

NO_TOOLS = "`{}` of a request can't be called: systems have tools of their own; leave them out"

FREE_CHOICES = (None, "none", "auto")
"""What `tool_choice` may say where no tools are given."""

NO_PROBABILITIES = "there are no log probabilities of answers; leave `{}` out"


class Part(Struct):
    """A part of a message's content."""

    type: str
    text: str | None = None


class Message(Struct):
    """A message; `type` tells messages from other items of a response's input."""

    content: str | list[Part] | None = None
    role: str = ""
    type: str = "message"

    @property
    def text(self) -> str:
        """Its text; raises InputError where it holds something else."""
        if not isinstance(self.content, list):
            return self.content or ""
        if other := next((part.type for part in self.content if part.text is None), None):
            raise InputError(f"a message has a part of type {other!r}; cotrail reads text alone")
        return "".join(part.text or "" for part in self.content)


class StreamOptions(Struct):
    """include_usage: whether the usage comes in a last chunk of its own."""

    include_usage: bool = False


class Format(Struct):
    """The form in which the answer is wanted."""

    type: str = "text"


class TextOptions(Struct):
    """The same of a response."""

    format: Format = field(default_factory=Format)


class AnyRequest(Struct, kw_only=True):
    """What both kinds of requests have."""

    model: str
    stream: bool = False
    temperature: float | None = None
    seed: int | None = None
    tools: list[Any] | None = None
    tool_choice: str | dict[str, Any] | None = None

    def check(self) -> None:
        """Raises InputError where it asks for what no system gives; ignoring it would give another thing."""
        if self.tools:
            raise InputError(NO_TOOLS.format("tools"))
        if self.tool_choice not in FREE_CHOICES:
            raise InputError(NO_TOOLS.format("tool_choice"))


class ChatRequest(AnyRequest, kw_only=True):
    """A request for a chat completion."""

    messages: list[Message]
    stream_options: StreamOptions | None = None
    n: int | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    response_format: Format | None = None
    functions: list[Any] | None = None
    function_call: str | dict[str, Any] | None = None
    modalities: list[str] | None = None
    audio: dict[str, Any] | None = None
    web_search_options: dict[str, Any] | None = None
    logit_bias: dict[str, float] | None = None

    def check(self) -> None:
        super().check()
        _check_format(self.response_format)
        if self.n not in (None, 1):
            raise InputError("`n` is 1: each answer is a question of its own; ask again for another")
        if self.logprobs or self.top_logprobs:
            raise InputError(NO_PROBABILITIES.format("logprobs` and `top_logprobs"))
        if self.functions or self.function_call not in FREE_CHOICES:
            raise InputError(NO_TOOLS.format("functions` and `function_call"))
        if set(self.modalities or ()) - {"text"} or self.audio is not None:
            raise InputError("answers are text; leave `modalities` and `audio` out")
        if self.web_search_options is not None:
            raise InputError("systems search their corpora, not the web; leave `web_search_options` out")
        if self.logit_bias:
            raise InputError("`logit_bias` isn't known to the models of all steps; leave it out")


class ResponseRequest(AnyRequest, kw_only=True):
    """A request for a response."""

    input: str | list[Message]
    instructions: str | None = None
    background: bool | None = None
    previous_response_id: str | None = None
    conversation: str | dict[str, Any] | None = None
    prompt: dict[str, Any] | None = None
    text: TextOptions | None = None
    include: list[str] | None = None
    top_logprobs: int | None = None

    def check(self) -> None:
        super().check()
        _check_format(self.text.format if self.text else None)
        if self.top_logprobs or PROBABILITIES in (self.include or ()):
            raise InputError(NO_PROBABILITIES.format(f"top_logprobs` and `{PROBABILITIES}"))
        if self.previous_response_id or self.conversation:
            raise InputError("responses don't go on from earlier ones: send the earlier turns in `input`")
        if self.prompt:
            raise InputError("no prompts are stored here; write what `prompt` says in `instructions` and `input`")
        if other := next((each.type for each in self._items if each.type not in ("message", "reasoning")), None):
            raise InputError(f"`input` has an item of type {other!r}; cotrail reads messages alone")

    @property
    def messages(self) -> list[Message]:
        """Its messages, the instructions first; reasoning is left out."""
        given = [Message(role="user", content=self.input)] if isinstance(self.input, str) else self._items
        details = [Message(role="system", content=self.instructions)] if self.instructions else []
        return details + [each for each in given if each.type == "message"]

    @property
    def _items(self) -> list[Message]:
        return [] if isinstance(self.input, str) else self.input


def _check_format(wanted: Format | None) -> None:
    if wanted and wanted.type != "text":
        raise InputError(f"answers are plain text, and none can be held to a {wanted.type}; leave the format out")


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
