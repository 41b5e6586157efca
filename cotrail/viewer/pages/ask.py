"""A question that is asked alone: its form, and those that were asked before."""

from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from cotrail.errors import InputError, RefusedError
from cotrail.services.actor import Scope
from cotrail.services.results import asking
from cotrail.services.runs import requests
from cotrail.viewer.links import link
from cotrail.viewer.page import GoTo, Shown, action, page

ON_A_PAGE = 20

REFRESHED = 3
"""Seconds after which the list of questions is read again while one of them is being answered."""


class AskForm(Struct, frozen=True, kw_only=True):
    """What stands in the form, as it was typed; its fields are those of an `AskRequest`."""

    question: str = ""
    system: str = ""
    corpus: str = ""
    model: str = ""
    retrieval_count: str = ""
    max_sentences: str = ""
    temperature: str = ""
    seed: str = ""


_NUMBERS = {"retrieval_count": int, "max_sentences": int, "temperature": float, "seed": int}


@page("/ask")
def form(question: str = "", system: str = "", corpus: str = "", model: str = "", after: str | None = None) -> Shown:
    """The form, filled in as the address says; after: the run behind which the list of questions goes on."""
    return _shown(AskForm(question=question, system=system, corpus=corpus, model=model), after=after)


@action("/ask", Scope.SUBMIT)
def begin(form: AskForm) -> Shown | GoTo:
    """Begin to answer a question, and go to it; where it is refused, the form shows why, with all that was typed."""
    try:
        asked = asking.begin_asking(requests.make_ask_request({"question": "", **dict(_given(form))}))
    except (InputError, RefusedError) as error:
        return _shown(form, refused=str(error))
    return GoTo(link("runs", asked.run, "questions", asked.question))


def _given(form: AskForm) -> Iterator[tuple[str, Any]]:
    """The fields that were filled in, with numbers as such; what is none is left to be refused by name."""
    for name, text in asdict(form).items():
        if not text:
            continue
        try:
            yield name, _NUMBERS.get(name, str)(text)
        except ValueError:
            yield name, text


def _shown(form: AskForm, *, refused: str = "", after: str | None = None) -> Shown:
    asked = asking.show_asked(ON_A_PAGE, after)
    values = {"form": form, "refused": refused, "choices": asking.ask_choices(), "asked": asked, "after": after}
    under_way = any(each.status == "open" for each in asked.questions)
    return Shown(template="ask.html", section="ask", values=values, every=REFRESHED if under_way and not refused else 0)
