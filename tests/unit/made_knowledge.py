"""Small files in the formats of WordNet, ConceptNet and Wikidata, about made-up or real things."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]

# WordNet: synsets by a name, each with its words and its pointers (symbol, the other's name, both words' numbers).

Pointer = tuple[str, str, str]
_ENTITY = "n entity"


def write_wordnet(
    folder: Path, synsets: Mapping[str, tuple[Sequence[str], Sequence[Pointer]]], irregular: str = ""
) -> Path:
    """The database files of these synsets; a name begins with the letter of its part of speech."""
    folder.mkdir(parents=True, exist_ok=True)
    offsets = {name: f"{number:08}" for number, name in enumerate(synsets, start=1740)}
    letters = {"noun": "n", "verb": "v", "adj": "as", "adv": "r"}
    for speech, own in letters.items():
        lines = ["  1 This software and database is being provided to you  "]
        for name, (words, pointers) in synsets.items():
            if name[0] in own:
                written = " ".join(f"{word} 0" for word in words)
                told = " ".join(f"{symbol} {offsets[other]} {other[0]} {ends}" for symbol, other, ends in pointers)
                lines.append(
                    f"{offsets[name]} 03 {name[0]} {len(words):02x} {written} {len(pointers):03} {told} | gloss  "
                )
        (folder / f"data.{speech}").write_text("\n".join(lines) + "\n")
        (folder / f"{speech}.exc").write_text(irregular if speech == "noun" else "")
    return folder


def animals(folder: Path) -> Path:
    """Collies and retrievers are dogs, cats are not; an animal has a tail; hot and cold."""
    above = "0000"
    return write_wordnet(
        folder,
        {
            "n animal": (["animal", "beast"], []),
            "n dog": (["dog", "domestic_dog"], [("@", "n animal", above)]),
            "n cat": (["cat"], [("@", "n animal", above)]),
            "n collie": (["collie"], [("@", "n dog", above)]),
            "n retriever": (["Golden_Retriever"], [("@", "n dog", above)]),
            "n lassie": (["Lassie"], [("@i", "n collie", above)]),
            "n tail": (["tail"], [("#p", "n animal", above)]),
            "n goose": (["goose"], [("@", "n animal", above)]),
            "v dog": (["dog", "chase"], []),
            "a hot": (["hot(p)", "heated"], [("!", "a cold", "0101")]),
            "a cold": (["cold"], [("!", "a hot", "0101")]),
        },
        "geese goose\n",
    )


# ConceptNet.


def assertion(relation: str, start: str, end: str, weight: float = 1.0, language: str = "en") -> str:
    """A line of the assertions file."""
    ends = [f"/c/{language}/{end}" for end in (start, end)]
    details = {"dataset": "/d/made", "license": "cc:by/4.0", "sources": [{"contributor": "/s/made"}], "weight": weight}
    return "\t".join([f"/a/[/r/{relation}/,{ends[0]}/,{ends[1]}/]", f"/r/{relation}", *ends, json.dumps(details)])


# Wikidata.


def time(year: int, precision: int = 9) -> Json:
    """A value: a year, negative before Christ."""
    written = f"{'-' if year < 0 else '+'}{abs(year):04}-05-26T00:00:00Z"
    value = {"time": written, "timezone": 0, "precision": precision, "calendarmodel": "http://x/entity/Q1985727"}
    return {"snaktype": "value", "datatype": "time", "datavalue": {"type": "time", "value": value}}


def item_value(item: str) -> Json:
    """A value: another item."""
    value = {"entity-type": "item", "numeric-id": int(item[1:]), "id": item}
    return {
        "snaktype": "value",
        "datatype": "wikibase-item",
        "datavalue": {"type": "wikibase-entityid", "value": value},
    }


def plain_value(type_: str, value: object, datatype: str = "string") -> Json:
    """A value of any other type."""
    return {"snaktype": "value", "datatype": datatype, "datavalue": {"type": type_, "value": value}}


def claim(value: Json, *, rank: str = "normal", **qualifiers: Json) -> Json:
    """A statement's JSON; qualifiers by their properties."""
    return {
        "mainsnak": value,
        "type": "statement",
        "rank": rank,
        "qualifiers": {name: [snak] for name, snak in qualifiers.items()} or [],
    }


def item(
    id_: str,
    label: str | None,
    claims: Mapping[str, Sequence[Json]] | None = None,
    *,
    aliases: Iterable[str] = (),
    links: int = 1,
    language: str = "en",
) -> Json:
    """An item's JSON."""
    return {
        "type": "item",
        "id": id_,
        "labels": {language: {"language": language, "value": label}} if label else [],
        "descriptions": {},
        "aliases": {"en": [{"language": "en", "value": alias} for alias in aliases]} if aliases else [],
        "claims": claims or [],
        "sitelinks": {f"wiki{number}": {"site": f"wiki{number}", "title": label} for number in range(links)},
        "lastrevid": 1,
    }


def property_(id_: str, label: str) -> Json:
    """A property's JSON."""
    return {
        "type": "property",
        "datatype": "time",
        "id": id_,
        "labels": {"en": {"language": "en", "value": label}},
        "aliases": {},
        "claims": {},
    }


def dump(entities: Iterable[Json]) -> str:
    """Entities as in the dumps: one per line inside a list."""
    return "[\n" + ",\n".join(json.dumps(each) for each in entities) + "\n]\n"


def minnesota() -> list[Json]:
    """The governors of Minnesota, Aristotle's years, and further facts that the tests ask for."""
    labels = {
        "P6": "head of government",
        "P39": "position held",
        "P19": "place of birth",
        "P361": "part of",
        "P569": "date of birth",
        "P570": "date of death",
        "P577": "publication date",
        "P580": "start time",
        "P582": "end time",
        "P619": "time of launch",
        "P1082": "population",
        "P1448": "official name",
        "P31": "instance of",
        "P214": "VIAF ID",
    }
    governed: Json = {"P580": time(2003), "P582": time(2011)}
    return [
        item(
            "Q868",
            "Aristotle",
            {
                "P569": [claim(time(-384))],
                "P570": [claim(time(-400), rank="deprecated"), claim(time(-322, 11))],
                "P19": [claim(item_value("Q5"))],
            },
            aliases=["Aristoteles"],
            links=200,
        ),
        item("Q5", "Stagira"),
        item("Q1", "Tim Pawlenty", {"P39": [claim(item_value("Q2"), **governed)]}, links=40),
        item("Q2", "Governor of Minnesota", links=20),
        item(
            "Q3",
            "Minnesota",
            {
                "P6": [
                    claim(item_value("Q1"), **governed),
                    claim(item_value("Q404"), P580=time(2019)),
                    claim(item_value("Q7"), P580=time(2019)),
                ],
                "P1082": [
                    claim(plain_value("quantity", {"amount": "+5303925", "unit": "1"}, "quantity"), P585=time(2010))
                ],
                "P214": [claim(plain_value("string", "123", "external-id"), P580=time(2003))],
                "P1448": [
                    claim(plain_value("monolingualtext", {"text": "L'Étoile", "language": "fr"}), P582=time(1858)),
                    claim(plain_value("monolingualtext", {"text": "Territory", "language": "en"}), P582=time(1858)),
                ],
                "P361": [claim(item_value("Q30"), P580=time(1858))],
            },
            links=180,
        ),
        item("Q7", "Tim Walz", language="mul", links=30),
        item("Q8", "Tim", links=10),
        item("Q30", "United States", links=300),
        item("Q9", "Shanghai Noon", {"P577": [claim(time(2000, 11)), claim(time(2000))]}, links=15),
        item("Q10", "Minnesota", {"P577": [claim(time(1950))]}, links=2),
        item("Q11", "Minnesota", {"P31": [claim(item_value("Q4167410"))], "P577": [claim(time(1901))]}, links=400),
        item("Q12", "laptop", {"P619": [claim(time(1980, 8))]}, links=90),
        item("Q13", "Laptop", {"P577": [claim(time(1999))]}, links=3),
        item("Q14", "Costa Rican Civil War", {"P580": [claim(time(1948))], "P582": [claim(time(1948))]}, links=12),
        {"type": "lexeme", "id": "L1", "lemmas": {}},
        {"entity": "Q99", "redirect": "Q868"},
        *(property_(id_, label) for id_, label in labels.items()),
    ]
