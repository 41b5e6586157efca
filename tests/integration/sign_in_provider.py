"""A small OpenID Connect provider, whose id tokens can be made wrong."""

import base64
import hashlib
import hmac
import json
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT = "cotrail"
SECRET = "a-secret-that-the-provider-gave"


@dataclass
class Provider:
    """What it says of whoever signs in, and what is wrong with that.

    claims: replace those of a good id token, None takes one away; algorithm: of the signature; key: None for its own;
    echoes: whether it refuses each code, and says again how the service showed who it is.
    """

    url: str
    claims: dict[str, Any] = field(default_factory=dict)
    algorithm: str = "RS256"
    key: RSAKey | None = None
    issuer: str | None = None
    echoes: bool = False
    codes: dict[str, dict[str, str]] = field(default_factory=dict)
    own_key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, auto_kid=True))

    def authorize(self, address: str) -> tuple[str, str]:
        """Have a person sign in, whose browser was sent to this address; the code and the state it comes back with."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.url}/authorize?")
        assert (asked["client_id"], asked["response_type"]) == (CLIENT, "code")
        assert asked["code_challenge_method"] == "S256"
        code = secrets.token_urlsafe(8)
        self.codes[code] = asked
        return code, asked["state"]

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer or self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
        }

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Answer a request for a token; each code counts once."""
        expected = base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if authorization != f"Basic {expected}":
            return 401, {"error": "invalid_client"}
        if self.echoes:
            return 400, {"error": f"{authorization} {CLIENT}:{SECRET}", "error_description": SECRET}
        asked = self.codes.pop(form["code"], None)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        matches = asked is not None and asked["code_challenge"] == challenge.decode().rstrip("=")
        if asked is None or not matches or asked["redirect_uri"] != form["redirect_uri"]:
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": "an-access-token", "token_type": "Bearer", "id_token": self._token(asked["nonce"])}

    def _token(self, nonce: str) -> str:
        now = int(time.time())
        good = {"iss": self.url, "aud": CLIENT, "sub": "42", "iat": now, "exp": now + 300, "nonce": nonce}
        good |= {"email": "ada@example.org", "email_verified": True}
        claims = {name: value for name, value in (good | self.claims).items() if value is not None}
        header = {"alg": self.algorithm, "kid": self.own_key.kid}
        if self.algorithm in ("none", "HS256"):
            return self._forged(header, claims)
        return jwt.encode(header, claims, self.key or self.own_key)

    def _forged(self, header: dict[str, Any], claims: dict[str, Any]) -> str:
        """A token that anybody can make: without a signature, or signed by the public key as if it were a secret."""
        content = b".".join(_encoded(json.dumps(each).encode()) for each in (header, claims))
        mac = hmac.digest(self.own_key.as_pem(private=False), content, "sha256")
        return b".".join((content, b"" if self.algorithm == "none" else _encoded(mac))).decode()


def _encoded(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")


@contextmanager
def providing() -> Iterator[Provider]:
    """A provider that answers on a port of its own."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path == "/.well-known/openid-configuration":
                self._answer(200, provider.metadata())
            else:
                self._answer(200, {"keys": [provider.own_key.as_dict(private=False)]})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(body).items()}
            self._answer(*provider.exchange(form, self.headers.get("Authorization", "")))

        def log_message(self, *_: Any) -> None:
            pass

        def _answer(self, status: int, document: dict[str, Any]) -> None:
            content = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    with ThreadingHTTPServer(("127.0.0.1", 0), Answering) as server:
        provider = Provider(f"http://127.0.0.1:{server.server_port}")
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
