"""People who sign in: sent to the provider, recognized as they come back, and given a session.

What has to be known of a sign-in under way is sealed and kept by the browser that began it, so that any process may
end it, and no other browser can. A session is a token of a person, whose secret that browser keeps too.

An OpenID Connect provider: where it sends a browser to sign in, and what it says of the person who comes back.
"""

import asyncio
import hmac
import logging
import os
import re
import secrets
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any, TypeVar

import httpx2
import msgspec
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2 import OAuth2Client
from authlib.oidc.core import CodeIDToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwe import JWERegistry
from joserfc.jwk import KeySet, OctKey
from joserfc.jws import JWSRegistry
from msgspec import Meta, Struct

from cotrail.common.log_formatting import Secrets
from cotrail.common.printable_text import storable
from cotrail.common.server_addresses import http_options
from cotrail.configuration.files import Rule, SignInTable, read_sign_in
from cotrail.configuration.settings import settings
from cotrail.errors import ForbiddenError, InputError, UnauthenticatedError, UnavailableError
from cotrail.services.access import tokens
from cotrail.services.actor import Actor, Scope, acting

logger = logging.getLogger(__name__)

T = TypeVar("T")

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
"""How a provider may sign: only by keys of which it alone has the private half."""

LEEWAY_SECONDS = 60
"""How far the provider's clock may be from this one."""

TIMEOUT_SECONDS = 10.0

METADATA_SECONDS = 300.0
"""How long what a provider says of itself is believed; its keys are asked for each time."""

BASIC = "client_secret_basic"

Endpoint = Annotated[str, Meta(pattern="^https?://")]


class _Metadata(Struct, frozen=True, kw_only=True):
    """What is needed of OpenID Connect Discovery 1.0."""

    issuer: str
    authorization_endpoint: Endpoint
    token_endpoint: Endpoint
    jwks_uri: Endpoint
    token_endpoint_auth_methods_supported: tuple[str, ...] = (BASIC,)

    @property
    def is_safe(self) -> bool:
        """Whether all its addresses are protected as the issuer's own is."""
        every = (self.authorization_endpoint, self.token_endpoint, self.jwks_uri)
        return not self.issuer.startswith("https:") or all(each.startswith("https:") for each in every)


class _Keys(Struct, frozen=True):
    keys: tuple[dict[str, Any], ...]


class Provider:
    """A provider, as the service's own client there; its methods raise UnavailableError where it doesn't answer."""

    def __init__(self, issuer: str, client_id: str, secret: str, ask_for: tuple[str, ...]) -> None:
        self._issuer = issuer
        self._client_id = client_id
        self._secret = secret
        # Bad servers say again in their errors what they were sent.
        self._hidden = Secrets((f"{client_id}:{secret}", secret)).hidden
        self._ask_for = " ".join(ask_for)
        self._metadata: tuple[_Metadata, float] | None = None

    async def address(self, redirect: str, *, state: str, nonce: str, verifier: str) -> str:
        """Where a browser goes to sign in; redirect: where the provider sends it back to."""
        metadata = await self._told()
        client = OAuth2Client(None, self._client_id, scope=self._ask_for, code_challenge_method="S256")
        address, _ = client.create_authorization_url(
            metadata.authorization_endpoint, state, verifier, redirect_uri=redirect, nonce=nonce
        )
        return str(address)

    async def claims(self, code: str, redirect: str, *, nonce: str, verifier: str) -> Mapping[str, Any]:
        """What the provider says of the person for whom it gave this code; raises UnauthenticatedError."""
        metadata = await self._told()
        try:
            async with self._client(metadata) as client:
                answer = await client.fetch_token(
                    metadata.token_endpoint, code=code, redirect_uri=redirect, code_verifier=verifier
                )
        except OAuthError as error:
            logger.warning("the sign-in provider doesn't take a code: %s", self._hidden(str(error.error)))
            raise UnauthenticatedError("the provider doesn't confirm this sign-in; begin it again") from None
        except (httpx2.HTTPError, ValueError) as error:
            raise _unavailable(error) from None
        return await self._verified(str(answer.get("id_token")), nonce)

    async def _verified(self, token: str, nonce: str) -> Mapping[str, Any]:
        keys = await self._fetched((await self._told()).jwks_uri, _Keys)
        options = {
            "iss": {"essential": True, "value": self._issuer},
            "aud": {"essential": True, "value": self._client_id},
        }
        try:
            registry = JWSRegistry(algorithms=[*ALGORITHMS], strict_check_header=False)
            signed = jwt.decode(token, KeySet.import_key_set({"keys": [*keys.keys]}), registry=registry)
            claims = CodeIDToken(signed.claims, signed.header, options, {"nonce": nonce, "client_id": self._client_id})
            claims.validate(leeway=LEEWAY_SECONDS)
        except (JoseError, ValueError) as error:
            logger.warning("an id token of the sign-in provider is refused: %s", type(error).__name__)
            raise UnauthenticatedError("what the provider says of you can't be believed; begin again") from None
        return dict(claims)

    async def _told(self) -> _Metadata:
        """What the provider says of itself."""
        if self._metadata is not None and time.monotonic() < self._metadata[1]:
            return self._metadata[0]
        url = f"{self._issuer.rstrip('/')}/.well-known/openid-configuration"
        fetched = await self._fetched(url, _Metadata)
        if fetched.issuer != self._issuer or not fetched.is_safe:
            raise _unavailable(ValueError("it says that it is another issuer, or has addresses without TLS"))
        self._metadata = fetched, time.monotonic() + METADATA_SECONDS
        return fetched

    async def _fetched(self, url: str, kind: type[T]) -> T:
        try:
            async with httpx2.AsyncClient(**http_options(), timeout=TIMEOUT_SECONDS) as client:
                answer = await client.get(url)
            return msgspec.json.decode(answer.raise_for_status().content, type=kind)
        except (httpx2.HTTPError, msgspec.MsgspecError) as error:
            raise _unavailable(error) from None

    def _client(self, metadata: _Metadata) -> Any:
        methods = metadata.token_endpoint_auth_methods_supported
        return AsyncOAuth2Client(
            self._client_id,
            self._secret,
            token_endpoint_auth_method=BASIC if BASIC in methods else "client_secret_post",
            timeout=TIMEOUT_SECONDS,
            **http_options(),
        )


def _unavailable(error: Exception) -> UnavailableError:
    logger.warning("the sign-in provider doesn't answer as it should: %s", error)
    return UnavailableError("the sign-in provider doesn't answer as it should; try again later")


FLOW_SECONDS = 600
"""How long a person may take to sign in at the provider."""

LONGEST_NAME = 200

LONGEST_PATH = 1000

_PATH = re.compile(r"/(?!/)[!-\[\]-~]*")
"""A path of this server: browsers read `//` and `\\` at its beginning as another host, and skip control characters."""

_AS_SIGN_IN = Actor(name="sign-in", project=None, scopes=frozenset())

_SEALED = {"alg": "dir", "enc": "A256GCM"}


class Begun(Struct, frozen=True, kw_only=True):
    """A sign-in that has begun; address: where the browser goes next; sealed: what it keeps for as long."""

    address: str
    sealed: str


class Session(Struct, frozen=True, kw_only=True):
    """A person who is signed in; secret: that of the token; path: where that one wanted to go."""

    secret: str
    seconds: int
    path: str


class _Flow(Struct, frozen=True, kw_only=True):
    """A sign-in under way."""

    state: str
    nonce: str
    verifier: str
    redirect: str
    path: str


class SignIn:
    """How people sign in; its methods raise UnavailableError where the provider doesn't answer."""

    def __init__(self, table: SignInTable, secret: str) -> None:
        self._table = table
        self._provider = Provider(table.issuer, table.client_id, secret, table.ask_for)
        derived = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"cotrail sign-in")
        self._key = OctKey.import_key(derived.derive(secret.encode()))

    async def begin(self, redirect: str, path: str) -> Begun:
        """Begin a sign-in.

        redirect: where the provider sends the browser back to; path: where the person wants to go on this server.
        Raises InputError where that is elsewhere.
        """
        check_path(path)
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        address = await self._provider.address(redirect, state=state, nonce=nonce, verifier=verifier)
        flow = _Flow(state=state, nonce=nonce, verifier=verifier, redirect=redirect, path=path)
        claims = {**msgspec.structs.asdict(flow), "exp": int(time.time()) + FLOW_SECONDS}
        return Begun(address=address, sealed=jwt.encode(_SEALED, claims, self._key, registry=JWERegistry()))

    async def complete(self, sealed: str, state: str, code: str) -> Session:
        """End a sign-in, by what the browser kept and what the provider sent it back with.

        Raises UnauthenticatedError where they don't belong together, or the provider doesn't say who it is;
        ForbiddenError where no rule names the person.
        """
        flow = self._opened(sealed)
        if not hmac.compare_digest(flow.state.encode(), state.encode()):
            raise _not_begun()
        if not code:
            raise UnauthenticatedError("the provider didn't sign you in; begin again")
        claims = await self._provider.claims(code, flow.redirect, nonce=flow.nonce, verifier=flow.verifier)
        given = claims.get("email")
        verified = isinstance(given, str) and "@" in given and claims.get("email_verified") is True
        email = given if verified else None
        rule = self._table.rule_for(email, claims)
        if rule is None:
            who = email or "you, whose e-mail the provider hasn't verified"
            raise ForbiddenError(f"no rule of this service lets in {who}; ask its administrator")
        name = storable(email or f"sub:{claims['sub']}")[:LONGEST_NAME]
        made = await asyncio.to_thread(self._session_of, name, rule)
        return Session(secret=made.secret, seconds=round(self._table.hours * 3600), path=flow.path)

    def _session_of(self, person: str, rule: Rule) -> tokens.NewToken:
        with acting(_AS_SIGN_IN):
            return tokens.make_token(
                "session",
                [Scope(rule.scope)],
                project=rule.project,
                lifetime=timedelta(hours=self._table.hours),
                person=person,
            )

    def _opened(self, sealed: str) -> _Flow:
        try:
            claims = jwt.decode(sealed, self._key, algorithms=[*_SEALED.values()], registry=JWERegistry()).claims
            jwt.JWTClaimsRegistry(exp={"essential": True}).validate(claims)
            return msgspec.convert(claims, _Flow)
        except (JoseError, ValueError):
            raise _not_begun() from None


def check_path(path: str) -> None:
    """Raise InputError where what a browser is to be sent to isn't a path of this server."""
    if len(path) > LONGEST_PATH or not _PATH.fullmatch(path):
        raise InputError("`next` is a path of this server, as /v1/runs")


def configured() -> SignIn | None:
    """How people sign in, None where they can't; raises InputError where what is configured can't be used."""
    table = read_sign_in(settings().home / "service.toml")
    if table is None:
        return None
    secret = os.environ.get(table.secret_variable, "").strip()
    if not secret:
        raise InputError(f"the variable {table.secret_variable} isn't set, which holds the secret for signing in")
    return SignIn(table, secret)


def _not_begun() -> UnauthenticatedError:
    return UnauthenticatedError("this sign-in wasn't begun in this browser, or too long ago; begin again")
