"""Numbers, counts and durations as people read them."""


def duration(seconds: float) -> str:
    """e.g. `0.3 ms`, `80 ms`, `4.2 s`, `42 s`, `3 min 05 s`, `2 h 10 min`."""
    if seconds < 0.0005:
        return f"{seconds * 1000:.1g} ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def rate(value: float) -> str:
    """A number a second, with two digits where it is small: `0.024`, `3.1`, `1,204`."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 or not value else f"{value:.2g}"


def size(value: int) -> str:
    """Bytes, with a unit that leaves digits: `812 bytes`, `71 KiB`, `3.4 MiB`."""
    if value < 1024:
        return count(value, "byte")
    return f"{value / 1024:,.0f} KiB" if value < 2**20 else f"{value / 2**20:,.1f} MiB"


def number(value: float | None, digits: int = 3) -> str:
    """A mean, or a dash where there is none."""
    return "-" if value is None else f"{value:.{digits}f}"


def count(value: int, noun: str) -> str:
    """e.g. `1 question`, `1,200 questions`."""
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"
