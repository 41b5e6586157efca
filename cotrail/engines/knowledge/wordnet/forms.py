"""Base forms of a text's words, as morphy(7WN) finds them, and their synsets."""

from collections import defaultdict
from collections.abc import Sequence

from cotrail.engines.knowledge.database import Database
from cotrail.engines.knowledge.wordnet.speech import speech_of

ENDINGS = {
    1: ("s:", "ses:s", "ves:f", "xes:x", "zes:z", "ches:ch", "shes:sh", "men:man", "ies:y"),
    2: ("s:", "ies:y", "es:e", "es:", "ed:e", "ed:", "ing:e", "ing:"),
    3: ("er:", "est:", "er:e", "est:e"),
    4: (),
}
"""Inflectional endings and their replacements, by part of speech."""

_IRREGULAR = "SELECT form, speech, base FROM irregular WHERE form IN (SELECT value FROM json_each(?))"
_SENSES = "SELECT lemma, synset FROM senses WHERE lemma IN (SELECT value FROM json_each(?))"

Senses = dict[str, set[int]]
"""The synsets of each base form."""


def senses(database: Database, terms: Sequence[str]) -> dict[str, Senses]:
    """The senses of those terms that WordNet has. A form counts only as the part of speech of its ending."""
    forms = _forms(database, terms)
    synsets: dict[tuple[str, int], set[int]] = defaultdict(set)
    for lemma, synset in database.rows(_SENSES, sorted({base for bases in forms.values() for base in bases})):
        synsets[lemma, speech_of(synset)].add(synset)
    senses_by_term: dict[str, Senses] = {}
    for (term, speech), bases in forms.items():
        for base in bases:
            if (base, speech) in synsets:
                senses_by_term.setdefault(term, {}).setdefault(base, set()).update(synsets[base, speech])
    return senses_by_term


def _forms(database: Database, terms: Sequence[str]) -> dict[tuple[str, int], set[str]]:
    """The possible base forms of each term, by part of speech; an irregular form isn't inflected regularly as well."""
    irregular: dict[tuple[str, int], set[str]] = defaultdict(set)
    for form, speech, base in database.rows(_IRREGULAR, list(terms)):
        irregular[form, speech].add(base)
    return {
        (term, speech): {term} | (irregular[term, speech] or _regular(term, endings))
        for term in terms
        for speech, endings in ENDINGS.items()
    }


def _regular(term: str, endings: Sequence[str]) -> set[str]:
    pairs = (ending.split(":") for ending in endings)
    return {term.removesuffix(old) + new for old, new in pairs if term.endswith(old)}
