"""The key of a server, as most take it."""


def bearer(key: str) -> dict[str, str]:
    """The header that holds a key; none where there is none."""
    return {"Authorization": f"Bearer {key}"} if key else {}
