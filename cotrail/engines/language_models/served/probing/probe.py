"""Requests to a server whose table isn't known yet, and what came of each."""

import time
from collections.abc import Callable, Mapping
from http import HTTPStatus

from msgspec import Struct

from cotrail import errors
from cotrail.common.humanize import duration
from cotrail.common.printable_text import cut
from cotrail.core.money import Usage
from cotrail.core.ports.language_model import GenerationRequest
from cotrail.core.ports.rate_limiter import Limits
from cotrail.core.results import Generated
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.model import ServedModel
from cotrail.engines.language_models.served.pacing import told_limits
from cotrail.engines.language_models.served.protocols.wire_protocols import PROTOCOLS
from cotrail.engines.language_models.served.refusals import Reported, refused_field
from cotrail.engines.language_models.served.tokenizer import Dialect
from cotrail.engines.rate_limits import ProcessLimiter

MOST_REQUESTS = 48
"""The most requests that a model is sent; twenty are usual."""

LONGEST_PAUSE = 120.0
"""Seconds that a busy server is waited for before a request, at most."""

PAUSES = 3
"""How often a request is waited for."""

SHOWN = 160
"""Characters of a server's message that are shown."""

_NOTHING = Reported("")


class Outcome(Struct, frozen=True, kw_only=True):
    """What came of a request.

    result: None where it wasn't answered. status: of the refusal, 0 where there was none; reported: what it says.
    problem: why there is no result. dialect: the server's extensions, as far as they are known.
    """

    result: Generated | None = None
    status: int = 0
    reported: Reported = _NOTHING
    problem: str = ""
    dialect: Dialect = "openai"

    @property
    def why(self) -> str:
        """Why there is no result, in short."""
        said = f"{self.status}: {self.reported.message}" if self.status else self.problem
        return cut(said, SHOWN)


class Probe:
    """Sends requests to one server, and keeps what they took and what its headers tell; see `Witness`.

    name: of the model; tell: takes a line on each request.
    requests: how many were sent; usage: the tokens of those that were answered; limits: a minute, 0 where untold.
    """

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self.requests = 0
        self.usage = Usage()
        self.limits = Limits()
        self.served_by = ""
        self._name = name
        self._tell = tell
        self._limiter = ProcessLimiter()
        self._status, self._reported = 0, _NOTHING

    def ask(self, what: str, endpoint: Endpoint, request: GenerationRequest) -> Outcome:
        """Sends a request as the model of this table would; what: what it is to find out.

        Raises InputError where the key is refused, the account is used up, nothing answers, or too much was asked.
        """
        if self.requests == MOST_REQUESTS:
            raise errors.InputError(
                f"{endpoint.url} was sent {MOST_REQUESTS} requests, and it still isn't clear what it takes"
            )
        self.requests += 1
        self._status, self._reported = 0, _NOTHING
        outcome = self._patiently(what, endpoint, request)
        self._tell(f"{self.requests}. {what}: {_in_words(outcome)}")
        return outcome

    def answered(self, headers: Mapping[str, str]) -> None:
        self.limits = Limits(
            **{
                name: max(getattr(self.limits, name), value)
                for name, value in zip(Limits.__struct_fields__, told_limits(headers).values, strict=True)
            }
        )

    def refused(self, status: int, reported: Reported) -> None:
        self._status, self._reported = status, reported

    def _patiently(self, what: str, endpoint: Endpoint, request: GenerationRequest) -> Outcome:
        for _ in range(PAUSES):
            try:
                return self._outcome(endpoint, request)
            except errors.BusyError as error:
                if not error.seconds or error.seconds > LONGEST_PAUSE:
                    raise errors.InputError(f"{error}; ask again later") from error
                self._tell(f"{self.requests}. {what}: {error}; waiting for {duration(error.seconds)}")
                time.sleep(error.seconds)
        raise errors.InputError(f"{endpoint.url} has no room for further requests; ask again later")

    def _outcome(self, endpoint: Endpoint, request: GenerationRequest) -> Outcome:
        """What came of a request; raises BusyError, and as `ask` does."""
        try:
            model = ServedModel(endpoint, self._name, PROTOCOLS[endpoint.api], self._limiter, self)
            result = model.generate(request)
        except errors.QuotaError as error:
            raise errors.InputError(
                f"{self._refusal(endpoint)}; the account is used up: add to it, then ask again"
            ) from error
        except errors.BusyError:
            raise
        except errors.UnavailableError as error:
            raise errors.InputError(
                f"{error}; check the url in its table, and that the server runs, then ask again"
            ) from error
        except (errors.BlockedError, errors.StepError, errors.TransientStepError) as error:
            if isinstance(error, errors.BlockedError) and self._is_about_the_key:
                raise errors.InputError(f"{self._refusal(endpoint)}; {_key_wanted(endpoint)}") from error
            return Outcome(status=self._status, reported=self._reported, problem=str(error))
        self._count(result)
        return Outcome(result=result, dialect=model.dialect)

    @property
    def _is_about_the_key(self) -> bool:
        reported = self._reported
        if self._status == HTTPStatus.BAD_REQUEST:
            return reported.is_about_the_key
        refused = self._status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
        return refused and not refused_field(reported.param, reported.message)

    def _count(self, result: Generated) -> None:
        self.served_by = result.served_by or self.served_by
        self.usage += Usage(
            calls=1,
            input_tokens=result.prompt_tokens,
            cached_tokens=result.cached_prompt_tokens,
            cache_written_tokens=result.cache_written_tokens,
            output_tokens=result.generated_tokens,
            thought_tokens=result.thought_tokens,
            estimated=int(result.estimated),
        )

    def _refusal(self, endpoint: Endpoint) -> str:
        return f"{endpoint.url} answered {self._status}: {cut(self._reported.message, SHOWN)}"


def _key_wanted(endpoint: Endpoint) -> str:
    if endpoint.key_variable is None:
        return "name the environment variable that holds its key as key_variable in its table"
    return f"set the environment variable {endpoint.key_variable} to a key that it takes"


def _in_words(outcome: Outcome) -> str:
    result = outcome.result
    if result is None:
        return outcome.why
    thought = f", {result.thought_tokens:,} of them thoughts" if result.thought_tokens else ""
    return f"answered, {result.prompt_tokens:,} tokens read, {result.generated_tokens:,} written{thought}"
