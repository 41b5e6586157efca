"""Questions of your own, in any form of file (`cotrail.common.json_files.records`), a record each.

Only the question itself is required. `answers` (strings) and `gold` are optional; a gold paragraph is an id in the
corpus or `{"title", "text"}`. Further optional fields: `pinned`, the passage that the question is about; `kinds`, by
name, the sorts that it is counted among, or `kind`, a single one; `distractors`, paragraphs that a demonstration shows
next to the gold ones; `hops`, their number; `chain`, the sentences that lead to the answer; `metadata`, anything, which
is read past.

Fields may have other names: usual ones (`NAMES`) are recognised, and a map says which others mean what. Of HotpotQA's,
2WikiMultihopQA's, MuSiQue's and SQuAD's records the paragraphs that hold the answer are gold. Any other fields are read
past, except those whose names are probably misspelt.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from cotrail.common.json_files import columns, decode, records
from cotrail.common.refusals import refusal, shown
from cotrail.common.tables import TABLES, form_of
from cotrail.core.questions import UNNAMED, GoldParagraph, Question, named
from cotrail.data.datasets import spec
from cotrail.data.datasets.hub_rows import in_context, row_paragraphs
from cotrail.errors import DatasetError

MOST_LISTED = 5
"""Maximum missing ids that an error names."""

ParagraphReference = str | GoldParagraph
"""A paragraph, given by its id in the corpus or by its content."""


class JsonlQuestion(Struct, frozen=True, forbid_unknown_fields=True):
    """A question under cotrail's own names."""

    id: str
    question: str
    answers: tuple[str, ...] = ()
    gold: tuple[ParagraphReference, ...] = ()
    pinned: ParagraphReference | None = None
    kind: str = ""
    kinds: Mapping[str, str] = {}
    distractors: tuple[ParagraphReference, ...] = ()
    hops: int | None = None
    chain: tuple[str, ...] = ()
    metadata: Any = None


NAMES = {
    "question": ("question", "query", "prompt"),
    "answers": ("answers", "answer", "golden_answers", "gold_answers", "gold_answer"),
    "id": ("id", "_id", "qid", "question_id", "query_id"),
}
"""The usual names of fields, in any case; the first that a record has is read."""

FIELDS = tuple(dict.fromkeys((*NAMES, *JsonlQuestion.__struct_fields__)))

LISTS = ("answers", "gold", "distractors", "chain")
"""The fields that hold several values, which a cell of a table has between `|`, or as a JSON list."""

CONTEXT = ("context", "supporting_facts", "paragraphs")
"""The fields that hold paragraphs in datasets of questions with their contexts."""

ALIKE = 0.75
"""How similar a name is to one of cotrail's own, from 0 to 1, to be taken for a misspelt one."""


def names_in(keys: Collection[str], fields: Mapping[str, str], place: str) -> dict[str, str]:
    """The names in a file of the fields that it has, by cotrail's own; fields: those that a map says.

    DatasetError: the map is wrong, a name is probably misspelt, or none is the question's; it lists all that are.
    """
    _check_map(keys, fields, place)
    free = {key.casefold(): key for key in keys if key not in fields.values()}
    usual = {field: next((free[each] for each in NAMES.get(field, (field,)) if each in free), "") for field in FIELDS}
    names = {field: fields.get(field, usual[field]) for field in FIELDS if field in fields or usual[field]}
    absent = [field for field in FIELDS if field not in names and field != "id"]
    others = () if fields else [key for key in keys if key not in names.values()]
    if wrong := misspelt(others, absent):
        raise DatasetError(
            f"{place}: there is no key {wrong}; correct or remove what is misspelt, or say what the fields are with a "
            "map, as `--map question=FIELD`"
        )
    if "question" not in names:
        raise DatasetError(
            f"{place}: no field is named `{'` or `'.join(NAMES['question'])}`; there are: {listed(keys)}; name "
            "the one that is the question with `--map question=FIELD`, or add a first line that names the columns"
        )
    return names


def misspelt(keys: Iterable[str], absent: Sequence[str]) -> str:
    """Those keys that are probably one of the absent names, with these; empty where none is."""
    near = {key: get_close_matches(key, absent, 1, ALIKE) for key in keys}
    return ", ".join(f"`{key}` (did you mean {meant[0]}?)" for key, meant in near.items() if meant)


def _check_map(keys: Collection[str], fields: Mapping[str, str], place: str) -> None:
    others = [shown(field) for field in fields if field not in FIELDS]
    unknown = [f"cotrail reads no field {' and no '.join(others)} (but {', '.join(FIELDS)})"] if others else []
    missing = [shown(name) for name in fields.values() if name not in keys]
    if missing:
        unknown.append(f"the file has no field {' and no '.join(missing)} (there are: {listed(keys)})")
    if unknown:
        raise DatasetError(f"{place}: the map is wrong: {'; '.join(unknown)}; write each as `--map answers=FIELD`")


def listed(keys: Collection[str]) -> str:
    """The keys, the first twenty where there are more."""
    return ", ".join(list(map(str, keys))[:20]) + (", ..." if len(keys) > 20 else "")


def described(path: Path, fields: Mapping[str, str]) -> str:
    """How a file is read, e.g. `read as CSV; question=query, answers=gold_answer; ignored: source`."""
    keys = columns(path, DatasetError)
    names = names_in(keys, fields, str(path))
    ignored = [key for key in keys if key not in (*names.values(), *CONTEXT) or key == names.get("metadata")]
    pairs = ", ".join(f"{field}={name}" for field, name in names.items() if field != "metadata")
    unscored = "" if "answers" in names else "; no answers, so nothing is scored (`--map answers=FIELD`)"
    return (
        f"read as {form_of(path, DatasetError)}; {pairs}{f'; ignored: {listed(ignored)}' if ignored else ''}{unscored}"
    )


def read(
    path: Path, lookup: spec.ParagraphLookup | None, fields: Mapping[str, str] | None = None
) -> Iterator[spec.QuestionRecord]:
    """Read the questions of a file; fields: the names that it has for cotrail's own, where they aren't usual ones."""
    cells = form_of(path, DatasetError) in TABLES
    for number, (place, raw) in enumerate(records(path, DatasetError)):
        record = decode(raw, dict[str, Any], place, DatasetError)
        there = {field: name for field, name in (fields or {}).items() if number == 0 or name in record}
        names = names_in(record, there, place)
        values = {field: record[name] for field, name in names.items()}
        values = _from_cells(values) if cells else values
        line = _line(values, place)
        _check(line, place)
        gold, distractors = (line.gold, line.distractors) if "gold" in names else _in_context(record, line, place)
        question = Question(
            id=line.id,
            text=line.question,
            answers=line.answers,
            gold=_resolved(gold, lookup, place),
            pinned=_resolved((line.pinned,), lookup, place)[0] if line.pinned else None,
            kinds=_kinds(line, place),
        )
        others = _resolved(distractors, lookup, place)
        annotated = spec.AnnotatedQuestion(question=question, distractors=others, chain=line.chain)
        yield spec.QuestionRecord(place=place, raw=msgspec.json.encode(values) if cells else raw, annotated=annotated)


def _from_cells(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of cells, which are texts: blank ones are absent, a list stands between `|`, the rest may be JSON."""
    texts = {field: text.strip() for field, text in values.items()}
    return {field: _value(field, text) for field, text in texts.items() if text or field in ("id", "question")}


def _value(field: str, text: str) -> Any:
    if field == "hops" and text.isdecimal():
        return int(text)
    if field in LISTS and not text.startswith("["):
        return [part for each in text.split("|") if (part := each.strip())]
    try:
        return msgspec.json.decode(text) if field in (*LISTS, "kinds", "pinned") else text
    except (msgspec.DecodeError, RecursionError):
        return text


def _line(values: dict[str, Any], place: str) -> JsonlQuestion:
    values = {field: value for field, value in values.items() if value is not None or field == "question"}
    if "answers" in values:
        values["answers"] = _answers(values["answers"], place)
    if isinstance(values.get("id"), int | float) and not isinstance(values["id"], bool):
        values["id"] = _answer(values["id"])
    values.setdefault("id", spec.id_of(str(values["question"])))
    try:
        return msgspec.convert(values, JsonlQuestion)
    except msgspec.ValidationError as cause:
        problem = refusal(cause, JsonlQuestion, values)
        raise DatasetError(f"{place}: {problem}; correct the record or take it out") from cause


def _answers(value: Any, place: str) -> Any:
    """Answers as a list: a single one, those of SQuAD's records, or those that are numbers."""
    match value:
        case {"text": list() as texts}:
            return _answers(texts, place)
        case list():
            return [_answer(each) for each in value]
        case str() if value.lstrip().startswith("["):
            raise DatasetError(f'{place}: the answers {shown(value)} are no JSON list; write them as ["one", "other"]')
        case str() if not value.strip():
            return ()
        case str() | int() | float():
            return [_answer(value)]
    return value


def _answer(value: Any) -> Any:
    match value:
        case bool():
            return spec.YES_OR_NO[value]
        case float() if value.is_integer():
            return str(int(value))
        case int() | float():
            return str(value)
    return value


def _in_context(
    record: Mapping[str, Any], line: JsonlQuestion, place: str
) -> tuple[Sequence[ParagraphReference], Sequence[ParagraphReference]]:
    """The paragraphs of the record's context that support the answer, and the others."""
    match record:
        case (
            {"context": _, "supporting_facts": _}
            | {"context": str(), "answers": {"answer_start": _}}
            | {"paragraphs": [{"paragraph_text": _}, *_] | {"paragraph_text": _} | str()}
        ):
            return spec.parted(in_context(record, place, DatasetError))
    return (), line.distractors


def _check(line: JsonlQuestion, place: str) -> None:
    for what, texts in {"answer": line.answers, "sentence of the chain": line.chain}.items():
        for text in texts:
            spec.check_text(text, what, place, DatasetError)
    for paragraph in (*line.gold, line.pinned, *line.distractors):
        if isinstance(paragraph, GoldParagraph):
            spec.check_text(paragraph.text, "text of a paragraph", place, DatasetError)


def _kinds(line: JsonlQuestion, place: str) -> Mapping[str, str]:
    """The kinds of a question, of which a single one needs no name."""
    if line.kind and line.kinds:
        raise DatasetError(f"{place}: there are both kind and kinds; put all of them into kinds")
    if blank := [name for name, kind in line.kinds.items() if not name.strip() or not kind.strip()]:
        raise DatasetError(f"{place}: a name or a kind in kinds is empty ({blank[0]!r}); fill it in or take it out")
    return line.kinds or named(**{UNNAMED: line.kind})


def _resolved(
    references: Iterable[ParagraphReference], lookup: spec.ParagraphLookup | None, place: str
) -> tuple[GoldParagraph, ...]:
    references = tuple(references)
    ids = [item for item in references if isinstance(item, str)]
    if ids and lookup is None:
        raise DatasetError(f"{place}: paragraphs are given by id; name the corpus they are in, or give title and text")
    paragraphs = lookup(ids) if ids and lookup else {}
    if missing := [id_ for id_ in ids if id_ not in paragraphs]:
        first = ", ".join(map(shown, missing[:MOST_LISTED])) + (", ..." if len(missing) > MOST_LISTED else "")
        raise DatasetError(f"{place}: the corpus has no paragraph {first}; give ids of this corpus, or title and text")
    return tuple(
        GoldParagraph(title=paragraphs[item].title, text=paragraphs[item].text, id=item)
        if isinstance(item, str)
        else item
        for item in references
    )


OWN = spec.FileFormat("questions in cotrail's own form", None, frozenset(), one_of=frozenset(NAMES["question"]))

SPEC = spec.dataset(
    "jsonl",
    spec.QuestionForm(format=spec.FORMATS["squad"], read=read, paragraphs=row_paragraphs, paragraphs_key="context"),
    spec.QuestionForm(format=OWN, read=read),
)
