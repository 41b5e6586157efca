"""Canonical JSON: equal values give equal bytes."""

import msgspec


def canonical(value: object) -> bytes:
    """Encode a value as JSON with sorted keys, no spaces, UTF-8."""
    return msgspec.json.encode(value, order="sorted")
