"""Port of the limits that a provider sets to an account: how many requests and tokens a minute."""

from contextlib import AbstractContextManager
from typing import Literal, Protocol

from msgspec import Struct

Dimension = Literal["requests", "input_tokens", "output_tokens", "tokens"]
"""What providers limit; `tokens` are those read and written together."""

DIMENSIONS: tuple[Dimension, ...] = ("requests", "input_tokens", "output_tokens", "tokens")

OUTDATED = -1.0
"""What `RateLimiter.leave` returns for a reservation that doesn't hold any more."""


class Limits(Struct, frozen=True, kw_only=True):
    """What may be used in a minute; 0 where nothing is known."""

    requests: float = 0.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0
    tokens: float = 0.0

    @property
    def values(self) -> tuple[float, ...]:
        """The limits in the order of `DIMENSIONS`."""
        return (self.requests, self.input_tokens, self.output_tokens, self.tokens)

    def within(self, other: "Limits") -> "Limits":
        """The lower of both limits in each dimension."""
        lower = (min(filter(None, pair), default=0.0) for pair in zip(self.values, other.values, strict=True))
        return Limits(**dict(zip(DIMENSIONS, lower, strict=True)))


class Need(Struct, frozen=True, kw_only=True):
    """What a request takes, or, where it is settled, how much more that was than reserved: maybe less than 0."""

    requests: float = 1.0
    input_tokens: float = 0.0
    output_tokens: float = 0.0

    @property
    def values(self) -> tuple[float, ...]:
        """The amounts in the order of `DIMENSIONS`."""
        return (self.requests, self.input_tokens, self.output_tokens, self.input_tokens + self.output_tokens)


class RateLimiter(Protocol):
    """Shares out what accounts may use, among all that use them; pool: an account's share of one model."""

    def asking(self) -> AbstractContextManager[None]:
        """A block in which a thread does nothing but wait: for its turn, and for the answer."""

    def reserve(self, pool: str, need: Need, limits: Limits, longest: float) -> float:
        """Reserves what a request takes; returns in how many seconds it may be sent.

        Nothing is reserved where that is more than `longest` seconds.
        """

    def line_up(self, pool: str, need: Need, limits: Limits) -> float:
        """Returns in how many seconds a request for which nothing was reserved is to come again.

        Those that wait are spread over time as they will be sent.
        """

    def leave(self, pool: str, plan: int, limits: Limits) -> float:
        """Returns 0 where a request whose time has come may be sent, else for how many seconds it has to wait still.

        Some come late, and the next mustn't follow them too closely. plan: by which it was reserved; where that doesn't
        hold any more, OUTDATED is returned, and it has to be reserved again.
        """

    def settle(self, pool: str, more: Need, limits: Limits) -> None:
        """Corrects the reservation of a request that was answered, once it is known what it took."""

    def tell(self, pool: str, limits: Limits, age: float) -> None:
        """Has all know what the provider tells; the lower of these limits and the caller's own count.

        age: how many seconds ago the request was sent whose response had them. Answers overtake each other: that to the
        latest request counts.
        """

    def refused(self, pool: str, seconds: float | None) -> None:
        """Has all requests wait, as one was refused; seconds: how long, None where the provider doesn't say."""

    def plan(self, pool: str) -> int:
        """A number that changes where reservations don't hold any more: a waiting request has to reserve again."""

    def pause(self, pool: str) -> float:
        """The seconds for which the provider is to be left alone."""
