"""Few-shot demonstrations of a run: read from its files, and shown in each form that its system needs."""

from pathlib import Path

from cotrail.core.demonstrations import AnswerForm, Demonstrations
from cotrail.data.demonstrations.files import in_form, read_demonstrations
from cotrail.data.demonstrations.prompts import read_prompts
from cotrail.data.demonstrations.sets import listed_set
from cotrail.errors import DemonstrationError, InputError
from cotrail.services.runs.system_settings import ConfiguredSystem
from cotrail.systems.spec import Needs


def read_shown(path: str | None, sets: str | None, number: int | None) -> Demonstrations:
    """The demonstrations of a file that a run shows: all, or the set of that number; none without a file."""
    if sets is None and number is not None:
        raise InputError("a set_number needs sets; name a file of lists of ids, or `released`")
    if path is None:
        return Demonstrations()
    demonstrations = read_demonstrations(Path(path))
    if sets is None:
        return demonstrations
    try:
        return listed_set(demonstrations, sets, number or 1)
    except DemonstrationError as error:
        raise DemonstrationError(f"{path}: {error}") from error


def make_shots(
    needs: Needs, demonstrations: Demonstrations, titles: Demonstrations
) -> dict[AnswerForm, Demonstrations]:
    """The demonstrations in each form that the system shows, its own, and those that name pages, if there are any."""
    return complete_shots(needs, {form: in_form(demonstrations, form) for form in sorted(needs.forms)}, titles)


def read_words(path: str | None, system: ConfiguredSystem) -> dict[AnswerForm, Demonstrations]:
    """The words of prompts that a run brings in a file or a folder; InputError where its system takes none."""
    if path is None:
        return {}
    if not system.needs.words:
        raise InputError("the system takes no prompt of the run's; leave out `prompt`, or give `demonstrations`")
    return {AnswerForm.PROMPT: read_prompts(Path(path), system.needs.words, system.spec.authors_words)}


def complete_shots(
    needs: Needs, demonstrations: dict[AnswerForm, Demonstrations], titles: Demonstrations
) -> dict[AnswerForm, Demonstrations]:
    """The demonstrations given in each form, with the system's own, and those that name pages, if there are any."""
    shots = demonstrations | dict(needs.brought)
    return shots | {AnswerForm.TITLES: titles} if titles.items else shots
