"""Names of classes as parts of addresses."""


def slug(name: str) -> str:
    """The words of an error's name, e.g. `unknown-name` of `UnknownNameError`."""
    words = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name.removesuffix("Error"))
    return words.removeprefix("-")
