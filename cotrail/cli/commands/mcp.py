"""`cotrail mcp`: a server of the Model Context Protocol, by which agents search corpora and ask questions."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Annotated, Any, TypeVar

import anyio.to_thread
import msgspec
from msgspec.structs import asdict
from pydantic import Field

from cotrail import __version__
from cotrail.cli.commands.serve_corpus import listening
from cotrail.cli.request_options import option
from cotrail.cli.terminal.output import console
from cotrail.common.optional_packages import installed_with
from cotrail.errors import CotrailError, ForbiddenError, InputError, UnauthenticatedError
from cotrail.services.access.grants import meant
from cotrail.services.access.tokens import recognized
from cotrail.services.actor import Scope, acting
from cotrail.services.library import corpora
from cotrail.services.operations.operation import Operation, is_remote
from cotrail.services.results import asking, questions
from cotrail.services.results.answering import End
from cotrail.services.runs.requests import make_ask_request
from cotrail.services.runs.resolving import with_corpus

with installed_with("mcp"):
    from mcp.server import MCPServer
    from mcp.server.auth.middleware.auth_context import get_access_token
    from mcp.server.auth.provider import AccessToken
    from mcp.server.auth.settings import AuthSettings
    from mcp.server.mcpserver.exceptions import ToolError

T = TypeVar("T")
Documents = list[dict[str, Any]]

ABOUT = "Searches paragraphs, and answers questions of several hops by reasoning and retrieval in turns."


def mcp(
    *, port: Annotated[int | None, option("mcp.port")] = None, host: Annotated[str, option("mcp.host")] = "127.0.0.1"
) -> None:
    """Serve the tools `search`, `get_document`, `ask` and `trace` to agents, by the Model Context Protocol.

    Without --port over standard input and output, as agents start it; with it over streamable HTTP at `/mcp`, for those
    who have a token of the service. Example, in an agent's configuration: `{"command": "cotrail", "args": ["mcp"]}`
    """
    if is_remote():
        corpora.list_corpora()  # a server that is away, or refuses the token, is named here and not at the first search
    else:
        from cotrail.workers import celery_app  # noqa: F401 - messages go out through it
    if port is None:
        with suppress(KeyboardInterrupt):
            server().run("stdio")
        return
    if is_remote():
        raise InputError("over HTTP the tools work on the store of this machine: leave out --port, or --server")
    listening(host, port).close()  # a port that is taken is named here, in one line
    url = f"http://{host}:{port}"
    console(stderr=True).print(f"Serving at {url}/mcp until Ctrl-C, to tokens of `cotrail token`.", soft_wrap=True)
    # Tokens are the service's own, so that no other server issues any.
    auth = AuthSettings(issuer_url=url, resource_server_url=url, validate_token_resource=False)
    with suppress(KeyboardInterrupt):
        server(token_verifier=_Tokens(), auth=auth).run("streamable-http", host=host, port=port)


class _Tokens:
    """Knows the service's tokens."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """Who has this token; None where nobody has it."""
        try:
            who = await anyio.to_thread.run_sync(recognized, token)
        except UnauthenticatedError:
            return None
        return AccessToken(token=token, client_id=who.name, scopes=[str(each) for each in who.scopes])


async def _work(operation: Operation[Any, Any], work: Callable[[], T]) -> T:
    """Work in a thread, in the name of the one whose token was given, if any; agents read what errors say."""
    given = get_access_token()

    def named() -> T:
        with _acting(None if given is None else given.token, operation.scope):
            return work()

    try:
        return await anyio.to_thread.run_sync(named)
    except CotrailError as error:
        raise ToolError(str(error)) from error


@contextmanager
def _acting(token: str | None, scope: Scope) -> Iterator[None]:
    if token is None:
        yield
        return
    who = recognized(token)
    if not who.may(scope):
        raise ForbiddenError(f"this needs a token with the scope {scope}")
    with acting(who):
        yield


def server(**options: Any) -> "MCPServer[Any]":
    """The server with its tools; options: those of authentication."""
    made: MCPServer[Any] = MCPServer("cotrail", instructions=ABOUT, version=__version__, log_level="WARNING", **options)

    @made.tool()
    async def search(query: str, corpus: str = "", k: Annotated[int, Field(ge=1, le=1000)] = 5) -> Documents:
        """Find the paragraphs of a corpus that suit a query best. corpus: the only one there is where it is empty."""
        return await _work(corpora.search_corpus, partial(_search, query, corpus, k))

    @made.tool()
    async def get_document(docid: str, corpus: str = "") -> dict[str, Any]:
        """Read a paragraph of a corpus by its id, as `search` gives it."""
        return await _work(corpora.show_paragraph, lambda: asdict(corpora.show_paragraph(_corpus(corpus), docid)))

    @made.tool()
    async def ask(question: str, corpus: str = "", system: str = "ircot") -> dict[str, Any]:
        """Answer a question by reasoning and retrieval in turns; the answer has its chain and its paragraphs.

        system: one of `cotrail systems`. The run and the question that it names can be looked at with `trace`.
        """
        return await _work(asking.ask, partial(_ask, question, corpus, system))

    @made.tool()
    async def trace(run: str, question: int | str = 1) -> dict[str, Any]:
        """Show each step of a question, with what it found or wrote. question: its number in the run, or its id."""
        return await _work(questions.show_trace, lambda: msgspec.to_builtins(questions.show_trace(run, str(question))))

    return made


def _corpus(named: str) -> str:
    if named:
        return named
    names = meant([each.corpus for each in corpora.list_corpora()])
    if len(names) != 1:
        raise InputError(f"name one as `corpus`; there are: {', '.join(names) or 'none'}")
    return names[0]


def _search(query: str, corpus: str, k: int) -> Documents:
    found = corpora.search_corpus(_corpus(corpus), query, k)
    return [
        {"docid": each.id, "title": each.title, "text": each.text, "score": each.score} for each in found.paragraphs
    ]


def _ask(question: str, corpus: str, system: str) -> dict[str, Any]:
    values = {"question": question, "system": system} | ({"corpus": corpus} if corpus else {})
    request = make_ask_request(values, {})
    ended = [each for each in asking.ask(request if is_remote() else with_corpus(request)) if isinstance(each, End)]
    traced = msgspec.to_builtins(ended[0].trace) if ended else {}
    kept = ("run", "question_id", "status", "answer", "sentences", "reason")
    return {name: traced.get(name) for name in kept}
