"""An OpenID Connect provider: where it sends a browser to sign in, and what it says of the person who comes back."""

import logging
import time
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import httpx2
import msgspec
from authlib.integrations.base_client import OAuthError
from authlib.integrations.httpx_client import AsyncOAuth2Client
from authlib.oauth2 import OAuth2Client
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry
from msgspec import Meta, Struct

from cotrail.common.redaction import Secrets
from cotrail.errors import UnauthenticatedError, UnavailableError

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
        told = await self._fetched(url, _Metadata)
        if told.issuer != self._issuer or not told.is_safe:
            raise _unavailable(ValueError("it says that it is another issuer, or has addresses without TLS"))
        self._metadata = told, time.monotonic() + METADATA_SECONDS
        return told

    async def _fetched(self, url: str, kind: type[T]) -> T:
        try:
            async with httpx2.AsyncClient(timeout=TIMEOUT_SECONDS) as client:
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
        )


def _unavailable(error: Exception) -> UnavailableError:
    logger.warning("the sign-in provider doesn't answer as it should: %s", error)
    return UnavailableError("the sign-in provider doesn't answer as it should; try again later")
