"""People who sign in: sent to the provider, recognized as they come back, and given a session.

What has to be known of a sign-in under way is sealed and kept by the browser that began it, so that any process may
end it, and no other browser can. A session is a token of a person, whose secret that browser keeps too.
"""

import asyncio
import hmac
import os
import re
import secrets
import time
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwe import JWERegistry
from joserfc.jwk import OctKey
from msgspec import Struct

from cotrail.common.storable_text import storable
from cotrail.configuration.service import Rule, SignInTable, read_sign_in
from cotrail.configuration.settings import settings
from cotrail.errors import ForbiddenError, InputError, UnauthenticatedError
from cotrail.services.access import tokens
from cotrail.services.access.actor import Actor, Scope, acting
from cotrail.services.access.openid import Provider

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
        return Begun(address=address, sealed=self._sealed(flow))

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
        email = _verified_email(claims)
        rule = self._table.rule_for(email, claims)
        if rule is None:
            who = email or "you, whose e-mail the provider hasn't verified"
            raise ForbiddenError(f"no rule of this service lets in {who}; ask its administrator")
        name = storable(email or f"sub:{claims['sub']}")[:LONGEST_NAME]
        made = await asyncio.to_thread(self._session_of, name, rule)
        return Session(secret=made.secret, seconds=round(self._table.hours * 3600), path=flow.path)

    def _session_of(self, person: str, rule: Rule) -> tokens.NewToken:
        with acting(_AS_SIGN_IN):
            return tokens.create(
                "session",
                [Scope(rule.scope)],
                project=rule.project,
                lifetime=timedelta(hours=self._table.hours),
                person=person,
            )

    def _sealed(self, flow: _Flow) -> str:
        claims = {**msgspec.structs.asdict(flow), "exp": int(time.time()) + FLOW_SECONDS}
        return jwt.encode(_SEALED, claims, self._key, registry=JWERegistry())

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


def _verified_email(claims: Mapping[str, Any]) -> str | None:
    email = claims.get("email")
    return email if isinstance(email, str) and "@" in email and claims.get("email_verified") is True else None


def _not_begun() -> UnauthenticatedError:
    return UnauthenticatedError("this sign-in wasn't begun in this browser, or too long ago; begin again")
