"""Pages of the web: fetched within limits, from no private address, as robots.txt allows, and read as text.

A host's name is looked up once for each request, every address that it has is checked, and the connection goes to one
of these, so that neither a redirect nor a second look-up leads elsewhere. Text is extracted in a process of its own,
which is killed in time: there are pages that a parser takes hours for.
"""

import asyncio
import re
import socket
import sys
import time
import zlib
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Network, ip_address
from urllib.robotparser import RobotFileParser

import httpx2
import msgspec
from msgspec import Struct

from cotrail import __version__
from cotrail.common.printable_text import storable
from cotrail.common.server_addresses import trusted_authorities
from cotrail.engines.retrieval.search_server import WebSearch
from cotrail.errors import StepError, TransientStepError

AGENT = "cotrail"
"""The name that robots.txt files know this program by."""

KINDS = ("text/html", "application/xhtml+xml", "text/plain")
"""What is read."""

MOST_REDIRECTS = 5

ROBOTS_BYTES, ROBOTS_SECONDS, MOST_ROBOTS = 500 * 1024, 24 * 3600.0, 1_000
"""As much of a robots.txt as is read and how long it counts, as in RFC 9309; sites whose rules are kept."""

AT_ONCE = 8
"""Pages that are read at once."""

LONGEST_ADDRESS = 2_000

_ADDRESS = re.compile(r"https?://[^\s<>\"'`]+", re.IGNORECASE)
_OF_NAT64 = IPv6Network("64:ff9b::/96")
_TUNNELS = IPv6Network("2002::/16")
_AZURE = IPv4Address("168.63.129.16")
"""The public address at which Azure serves its own machines."""


def normal(address: str, base: str = "") -> str:
    """An address in the form in which equal ones are equal, without its fragment; empty where no page can have it."""
    try:
        url = httpx2.URL(base).join(address.strip()).copy_with(fragment=None)
    except (httpx2.InvalidURL, ValueError):
        return ""
    is_page = url.scheme in ("http", "https") and url.host and not url.userinfo
    return str(url) if is_page and len(str(url)) <= LONGEST_ADDRESS else ""


def address_in(title: str) -> str:
    """The last address in a title; empty where it has none."""
    return normal((_ADDRESS.findall(title) or [""])[-1])


def is_public(text: str) -> bool:
    """Whether an IP address is one of the internet: not this machine's, a private network's or a cloud's own."""
    address = ip_address(text.partition("%")[0])
    if address in _OF_NAT64:
        address = IPv4Address(int(address) & 0xFFFFFFFF)
    return address.is_global and not address.is_multicast and address != _AZURE and address not in _TUNNELS


class Page(Struct, frozen=True):
    """A page as it is read; problem: why it can't be, behind "it can't be read: "."""

    title: str = ""
    text: str = ""
    problem: str = ""


class Pages:
    """Reads pages, in one thread's event loop."""

    def __init__(self, server: WebSearch) -> None:
        self._server = server
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._robots: dict[str, tuple[float, RobotFileParser]] = {}

    async def read(self, address: str) -> Page:
        """The page at an address of the form of `normal`; raises TransientStepError where no name can be looked up."""
        async with self._turns:
            try:
                async with asyncio.timeout(self._server.timeout_seconds):
                    return await self._read(httpx2.URL(address))
            except TimeoutError:
                return Page(problem=f"it took longer than {self._server.timeout_seconds:g} s")
            except StepError as error:
                return Page(problem=str(error))

    async def _read(self, url: httpx2.URL) -> Page:
        most = self._server.page_bytes
        response, content = await self._followed(url, most, obeys=True)
        kind = response.headers.get("Content-Type", KINDS[0]).partition(";")[0].strip().lower()
        if not response.is_success:
            raise StepError(f"its server answered {response.status_code}")
        if kind not in KINDS:
            raise StepError(f"it is {kind[:80]!r}, and neither HTML nor plain text")
        if len(content) > most:
            raise StepError(f"it is larger than {most:,} bytes")
        page = await _extracted(content, kind, response.charset_encoding or "")
        text = storable(page.text).strip()[: self._server.page_characters]
        if not text:
            raise StepError("it has no text that can be read without running its scripts")
        return Page(title=page.title, text=text)

    async def _followed(self, url: httpx2.URL, most: int, *, obeys: bool) -> tuple[httpx2.Response, bytes]:
        """What is found where redirects lead; obeys: whether only to where robots.txt allows it."""
        for _ in range(MOST_REDIRECTS + 1):
            if obeys and not await self._allows(url):
                raise StepError("its site's robots.txt doesn't allow it")
            response, content = await _fetch(url, most, private=self._server.private_addresses)
            if not response.has_redirect_location:
                return response, content
            target = normal(response.headers["Location"], str(url))
            if not target:
                raise StepError("it redirects to what is no address of a page")
            url = httpx2.URL(target)
        raise StepError(f"it redirects more than {MOST_REDIRECTS} times")

    async def _allows(self, url: httpx2.URL) -> bool:
        """Whether a site's robots.txt lets a page be read; by RFC 9309 all if there is none, nothing if it is away."""
        site = f"{url.scheme}://{url.netloc.decode()}"
        until, rules = self._robots.get(site, (0.0, RobotFileParser()))
        if until < time.monotonic():
            rules = RobotFileParser()
            try:
                response, content = await self._followed(httpx2.URL(f"{site}/robots.txt"), ROBOTS_BYTES, obeys=False)
            except StepError:
                return False
            if response.is_server_error:
                return False
            text = content[:ROBOTS_BYTES].decode("utf-8", "replace") if response.is_success else ""
            rules.parse(text.splitlines())
            if len(self._robots) >= MOST_ROBOTS:
                self._robots.clear()
            self._robots[site] = (time.monotonic() + ROBOTS_SECONDS, rules)
        return rules.can_fetch(AGENT, str(url))


async def _looked_up(url: httpx2.URL, *, private: bool) -> str:
    """An IP address of a URL's host, all of which are public unless private ones are allowed."""
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(url.raw_host.decode(), None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        if isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN:
            raise TransientStepError(f"no name server answers for {url.host}; see whether there is a network") from None
        raise StepError("its host isn't known") from None
    addresses = [str(each[4][0]) for each in found]
    if not private and not all(map(is_public, addresses)):
        raise StepError("it is at a private address, which only private_addresses = true in search.toml allows")
    return addresses[0]


async def _fetch(url: httpx2.URL, most: int, *, private: bool) -> tuple[httpx2.Response, bytes]:
    """What a server answers, up to one byte more than `most`; redirects aren't followed."""
    at_address = url.copy_with(host=await _looked_up(url, private=private))
    headers = {"Host": url.netloc.decode(), "User-Agent": f"{AGENT}/{__version__}", "Accept-Encoding": "gzip"}
    # A client of its own, so that no cookie of one site at an address is sent to another there; `read` has the limit.
    client = httpx2.AsyncClient(verify=trusted_authorities(), trust_env=False, timeout=None)
    named = {"sni_hostname": url.raw_host.decode()}
    try:
        async with client, client.stream("GET", at_address, headers=headers, extensions=named) as response:
            return response, b"" if response.has_redirect_location else await _content(response, most)
    except (httpx2.HTTPError, OSError, ValueError) as error:
        raise StepError(f"it can't be fetched ({f'{type(error).__name__} {error}'.strip()[:200]})") from None


async def _content(response: httpx2.Response, most: int) -> bytes:
    """The content, of which no more is unpacked than is returned."""
    encoding = response.headers.get("Content-Encoding", "identity").lower()
    if encoding not in ("identity", "gzip"):
        raise StepError(f"it is packed as {encoding[:40]!r}, though gzip was asked for")
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16) if encoding == "gzip" else None
    content = bytearray()
    async for piece in response.aiter_raw():
        room = most + 1 - len(content)
        try:
            content += unpacker.decompress(piece, room) if unpacker else piece[:room]
        except zlib.error:
            raise StepError("its gzip can't be unpacked") from None
        if len(content) > most:
            break
    return bytes(content)


async def _extracted(content: bytes, kind: str, charset: str) -> Page:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", __name__, kind, charset),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        written, _ = await process.communicate(content)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise StepError("its HTML can't be read")
    return msgspec.json.decode(written, type=Page)


def extract(content: bytes, kind: str, charset: str) -> Page:
    """The title and the text of a page, in the process that is made for it."""
    import trafilatura

    document: bytes | str = content
    with suppress(LookupError):
        document = content.decode(charset, "replace") if charset else content
    if kind == "text/plain":
        return Page(text=document if isinstance(document, str) else document.decode("utf-8", "replace"))
    tree = trafilatura.load_html(document)
    if tree is None:
        return Page()
    return Page(title=tree.findtext(".//title") or "", text=trafilatura.extract(tree, include_comments=False) or "")


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(extract(sys.stdin.buffer.read(), *sys.argv[1:])))
