"""HTTP requests to a provider's batch API: small ones, an upload, and a download that is read by lines."""

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from http import HTTPStatus
from typing import IO, Annotated, Any, BinaryIO, TypeVar, cast

import httpx2
import msgspec
from msgspec import Meta, Raw, Struct
from msgspec.structs import replace

from cotrail.common.log_formatting import Secrets
from cotrail.common.server_addresses import http_options
from cotrail.common.text_files import MAX_FILE_BYTES, MAX_RECORD_BYTES, numbered_lines, shown_size
from cotrail.core.ports.batches import BatchAnswer, Unanswered
from cotrail.engines.language_models.endpoint import Endpoint
from cotrail.engines.language_models.served.client import CONNECT_SECONDS, LONGEST_MESSAGE, key_of
from cotrail.engines.language_models.served.pacing import pause_asked
from cotrail.engines.language_models.served.refusals import reported_in, step_error
from cotrail.errors import BatchLostError, InputError, TransientStepError, UnavailableError


class Response(Struct, frozen=True):
    """A response within a line."""

    status_code: int = 0
    body: Raw = Raw(b"null")


class LineFailure(Struct, frozen=True):
    """Why a line has no response."""

    code: str | None = None
    message: str | None = None


class ResultLine(Struct, frozen=True):
    """A line in the form that OpenAI's and Mistral's files have."""

    custom_id: str = ""
    response: Response | None = None
    error: LineFailure | str | None = None


def read_line(endpoint: Endpoint, line: bytes) -> BatchAnswer | Unanswered:
    """What became of a line of OpenAI's or Mistral's."""
    read = decoded(line, ResultLine, ResultLine())
    if read.response is not None:
        return answered(endpoint, read.custom_id, read.response.status_code, read.response.body)
    error = read.error
    return Unanswered(read.custom_id, str(error.message or error.code if isinstance(error, LineFailure) else error))


def decoded(line: bytes, type_: Any, otherwise: Any) -> Any:
    """A line as that type; otherwise: what a line that can't be read counts as, which is one that nobody asked for."""
    try:
        return msgspec.json.decode(line, type=type_)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return otherwise


def answered(endpoint: Endpoint, line: str, status: int, body: Raw) -> BatchAnswer | Unanswered:
    """What became of a line that the provider answered with a status: one that passes may be asked again."""
    content = bytes(body)
    if 200 <= status < 300:
        return BatchAnswer(line, 200, content.decode())
    reported = reported_in(content)
    if isinstance(step_error(endpoint, status, reported), UnavailableError | TransientStepError):
        return Unanswered(line, f"{status}: {reported.message}")
    return BatchAnswer(line, status, content.decode())


IN_MEMORY = 2**24
"""Bytes of a download that are held in memory; what is more goes to a temporary file."""

KEY = "cotrail"
"""The field of a batch's metadata that holds its key."""

PAGE, MOST_PAGES = 100, 1000
"""Batches of a page of the list, and how many pages are looked through."""

ProviderId = Annotated[str, Meta(pattern=r"^[\w.:-]{1,200}$")]
"""An id that a provider gave; it becomes part of addresses."""

AnswerT = TypeVar("AnswerT")


class Created(Struct, frozen=True):
    """What was made."""

    id: ProviderId


class ProviderRequests:
    """Requests to one endpoint. For one thread.

    headers: of each request. Every method raises what `step_error` does, BatchLostError where there is nothing to get,
    UnavailableError where the provider can't be reached, and TransientStepError where a connection broke or an answer
    can't be read.
    """

    def __init__(self, endpoint: Endpoint, headers: Mapping[str, str]) -> None:
        self.endpoint = endpoint
        self._secrets = Secrets((key_of(endpoint),))
        self._http = httpx2.Client(
            headers={"Accept-Encoding": "identity", **headers},
            **http_options(),
            timeout=httpx2.Timeout(endpoint.timeout_seconds, connect=CONNECT_SECONDS),
            # Requests are minutes apart: a kept connection would be closed by then.
            limits=httpx2.Limits(max_keepalive_connections=0),
            follow_redirects=False,
        )

    def get(self, answer: type[AnswerT], path: str, **query: str | int) -> AnswerT:
        """The answer to a GET, as that type."""
        return self._decoded(answer, self._http.build_request("GET", self.endpoint.url + path, params=query))

    def create(self, path: str, body: Mapping[str, Any]) -> str:
        """The id of what a POST of JSON made."""
        return self._decoded(Created, self._posting(path, body)).id

    def post(self, path: str) -> None:
        """Has the provider do something."""
        for _ in self._answer(self._posting(path, {})):
            pass

    def upload(self, path: str, content: bytes, name: str, **fields: str) -> str:
        """The id of a file that was uploaded with further fields."""
        files = {"file": (name, content, "application/jsonl")}
        request = self._http.build_request("POST", self.endpoint.url + path, files=files, data=fields)
        return self._decoded(Created, request).id

    def lines(self, path: str) -> Iterator[bytes]:
        """The lines of a file, which is downloaded as a whole first."""
        # Not read as it arrives: recording answers takes a while, and the provider might end the connection.
        with tempfile.SpooledTemporaryFile(IN_MEMORY) as file:
            self._download(path, file)
            file.seek(0)
            try:
                yield from (line for _, line in numbered_lines(cast(BinaryIO, file), path, InputError) if line.strip())
            except InputError as error:
                raise TransientStepError(f"{self.endpoint.url}{path} can't be read: {error}") from None

    def _posting(self, path: str, body: Mapping[str, Any]) -> httpx2.Request:
        return self._http.build_request(
            "POST",
            self.endpoint.url + path,
            content=msgspec.json.encode(body),
            headers={"Content-Type": "application/json"},
        )

    def _decoded(self, answer: type[AnswerT], request: httpx2.Request) -> AnswerT:
        content = _beginning(self._answer(request))
        if len(content) > MAX_RECORD_BYTES:
            raise TransientStepError(f"{request.url} wrote more than {shown_size(MAX_RECORD_BYTES)}")
        try:
            return msgspec.json.decode(content, type=answer)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise TransientStepError(f"what {request.url} answered can't be read: {error}") from None

    def _download(self, path: str, file: IO[bytes]) -> None:
        total = 0
        for piece in self._answer(self._http.build_request("GET", self.endpoint.url + path)):
            total += len(piece)
            if total > MAX_FILE_BYTES:
                raise TransientStepError(f"{path} is larger than {shown_size(MAX_FILE_BYTES)}")
            file.write(piece)

    def _answer(self, request: httpx2.Request) -> Iterator[bytes]:
        """The content of a successful response, by pieces."""
        try:
            response = self._http.send(request, stream=True)
            try:
                if not response.is_success:
                    raise self._refusal(response)
                yield from response.iter_bytes()
            finally:
                response.close()
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            # `from None` here and below: the library's errors hold the request, and with it the key.
            raise UnavailableError(f"{request.url} can't be reached: {self._said(str(error))}") from None
        except httpx2.HTTPError as error:
            raise TransientStepError(f"{request.url} broke off: {self._said(str(error))}") from None

    def _refusal(self, response: httpx2.Response) -> Exception:
        reported = reported_in(_beginning(response.iter_bytes()))
        hidden = replace(reported, message=self._said(reported.message))
        # Of a GET alone: there, what the provider once confirmed is gone. A POST to nowhere is a wrong address.
        if response.status_code == HTTPStatus.NOT_FOUND and response.request.method == "GET":
            return BatchLostError(f"{response.request.url} answered 404: {hidden.message}")
        return step_error(self.endpoint, response.status_code, hidden, pause_asked(response.headers))

    def _said(self, message: str) -> str:
        return self._secrets.hidden(message)[:LONGEST_MESSAGE]


def _beginning(pieces: Iterator[bytes]) -> bytes:
    content = bytearray()
    for piece in pieces:
        content += piece
        if len(content) > MAX_RECORD_BYTES:
            break
    return bytes(content)


def read_files(requests: ProviderRequests, files: Iterable[ProviderId | None]) -> Iterator[BatchAnswer | Unanswered]:
    """What became of each line of these files; None stands for one that isn't there."""
    for file in filter(None, files):
        for line in requests.lines(f"/files/{file}/content"):
            yield read_line(requests.endpoint, line)
