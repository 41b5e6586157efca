"""Types of fields as msgspec inspects them: what they consist of, and the choices that they leave."""

from collections.abc import Iterator

from msgspec import inspect


def parts(declared: inspect.Type) -> Iterator[inspect.Type]:
    """The types that a type consists of: without its metadata, each of a union."""
    match declared:
        case inspect.Metadata(type=inner):
            yield from parts(inner)
        case inspect.UnionType(types=types):
            for each in types:
                yield from parts(each)
        case _:
            yield declared


def choices(declared: inspect.Type) -> tuple[str, ...]:
    """All values of a literal or an enumeration; none of another type."""
    match declared:
        case inspect.LiteralType(values=values):
            return tuple(str(value) for value in values)
        case inspect.EnumType(cls=members):
            return tuple(str(member.value) for member in members)
    return ()
