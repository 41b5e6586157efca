r"""Where models state their answers: behind a sentence's beginning, between tags, in `\boxed{}`."""

BOXED = "\\boxed{"


def behind(text: str, *beginnings: str) -> str | None:
    """What follows the last of these beginnings in its line, without a full stop; None where none of them stands.

    Case doesn't count.
    """
    lowered = text.lower()
    if len(lowered) != len(text):
        lowered = text
    places = [(lowered.rfind(each.lower()), len(each)) for each in beginnings]
    place, length = max(places, default=(-1, 0))
    if place < 0:
        return None
    return text[place + length :].strip().partition("\n")[0].strip().removesuffix(".").rstrip()


def between(text: str, opening: str, closing: str) -> str | None:
    """What stands in the last pair of these tags, or behind an opening one that isn't closed; None without any."""
    _, is_open, inside = text.rpartition(opening)
    return inside.partition(closing)[0].strip() if is_open else None


def boxed(text: str) -> str | None:
    r"""What stands in the last `\boxed{}`, whose brackets may hold others; None where there is none that is closed."""
    start = text.rfind(BOXED)
    if start < 0:
        return None
    depth, inside = 1, start + len(BOXED)
    for place in range(inside, len(text)):
        depth += {"{": 1, "}": -1}.get(text[place], 0)
        if depth == 0:
            return text[inside:place].strip()
    return None


def behind_answer_is(text: str) -> str | None:
    """What follows the last "answer is" of a text in its line, without a full stop; None where it has none."""
    return behind(text, "answer is:", "answer is")


def stated(text: str) -> str:
    """What stands behind the last "answer is" of a text, or, where it has none, all of the text without a full stop."""
    answer = behind_answer_is(text)
    return text.strip().removesuffix(".").rstrip() if answer is None else answer
