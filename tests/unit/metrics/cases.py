"""Predictions and answers from a seeded generator, with everything that the evaluation scripts treat specially."""

import json
from random import Random

from msgspec import Struct

Content = tuple[str, str]
"""Title and text of a paragraph."""

NAMES = (
    "Ines Korvin", "St. John's", "Łódź", "Straße", "İstanbul", "Gödel", "naïve café", "Ångström", "東京", "Ελλάς",
    "Москва", "O\u2019Neill", "“Quoted”", "&amp;c", "Rock &amp; Roll", "sÃ£o Paulo", "doesnâ€™t", "\ufb01sh", "José",
    "\uff26\uff55\uff4c\uff4c", "U.S.A.", "Mary-Jane", "the Beatles", "A Tale of Two Cities", "An Ode", "Theatre",
    "M.D.", "red fox", "red", "fox", "AC/DC", "rock'n'roll", "a b", "a c", "b c d", "x-y-z", "[sic]", "Paris, France",
    'say "no"', "Vitamin A", "cafe\u0301", "no\u00a0break",
)  # fmt: skip
NUMBERS = (
    "5", "5.0", "05", "five", "53 years", "53", "1,000", "1000", "-3", "3", "1e3", ".5", "0.5", "½", "٣", "1_000",
    "nan", "NaN", "inf", "infinity", "$5", "5%", "1.5.", "5.", "1864-1811", "100 BC", "12,500 BC", "1.450,00", "²", "0",
)  # fmt: skip
DATES = (
    "October 20, 1952", "20 October 1952", "1952-10-20", "20/10/1952", "April 19, 1954", "19 April", "1954",
    "the 1950s",
)  # fmt: skip
VERDICTS = ("yes", "no", "noanswer", "Yes", "No.", "NO", "no answer", "yes, it is", "No answer!", "not", "true")
BLANKS = ("", " ", "  ", ".", "...", "the", "The a an", "-", "\t", "\n", '"', "''", "[]", "[", "]", ",", "\u200b")

CHAINS = (
    "So the answer is: {}.", "So the answer is {}", "The answer is: {}", "the answer is:{}", "Answer is: {}.",
    "It was {}. So the answer is: {}.", '"So the answer is: {}."', "Thus {}.\nSo the answer is: {}.", "{} .", "{} ",
)  # fmt: skip


class WordCase(Struct, frozen=True):
    """A prediction, and the accepted forms of the answer."""

    prediction: str
    answers: tuple[str, ...]


class SpanCase(Struct, frozen=True):
    """A prediction, and an answer of one or several spans."""

    prediction: str
    answer: tuple[str, ...]


class SupportCase(Struct, frozen=True):
    """The collected and the gold paragraphs, and an answer of one or several spans."""

    collected: tuple[Content, ...]
    gold: tuple[Content, ...]
    answer: tuple[str, ...]


def word_cases(seed: int, count: int) -> list[WordCase]:
    chance = Random(seed)
    return [_word_case(chance) for _ in range(count)]


def span_cases(seed: int, count: int) -> list[SpanCase]:
    chance = Random(seed)
    return [_span_case(chance) for _ in range(count)]


def support_cases(seed: int, count: int) -> list[SupportCase]:
    chance = Random(seed)
    return [_support_case(chance) for _ in range(count)]


def _word_case(chance: Random) -> WordCase:
    answers = tuple(_phrase(chance) for _ in range(chance.choice((1, 1, 1, 2, 3, 5))))
    return WordCase(_prediction(chance, chance.choice(answers)), answers)


def _span_case(chance: Random) -> SpanCase:
    if chance.random() < 0.4:
        phrase = _phrase(chance)
        return SpanCase(_prediction(chance, phrase), (phrase,))
    answer = tuple(_span(chance) for _ in range(chance.choice((2, 2, 3, 3, 4, 5, 9, 12))))
    return SpanCase(_list(chance, answer), answer)


def _support_case(chance: Random) -> SupportCase:
    pool = [(_span(chance), _span(chance)) for _ in range(chance.randint(1, 4))]
    pool.append((pool[0][0], _phrase(chance)))
    gold = tuple(chance.choice(pool) for _ in range(chance.choice((1, 2, 2, 3))))
    collected = [chance.choice(pool) for _ in range(chance.randint(0, 3))] + list(gold[: chance.randint(0, 3)])
    chance.shuffle(collected)
    texts = [_phrase(chance), *(text for _, text in collected)]
    answer = tuple(_altered(chance, chance.choice(texts)) for _ in range(chance.choice((1, 1, 1, 2, 3))))
    return SupportCase(
        tuple((_spaced(chance, title), _spaced(chance, text)) for title, text in collected), gold, answer
    )


def _phrase(chance: Random) -> str:
    kind = chance.random()
    if kind < 0.07:
        return chance.choice(BLANKS)
    if kind < 0.17:
        return chance.choice(VERDICTS)
    return " ".join(_words(chance, chance.choice((1, 1, 1, 2, 2, 3, 6))))


def _span(chance: Random) -> str:
    return " ".join(_words(chance, chance.choice((1, 1, 1, 2, 3))))


def _words(chance: Random, count: int) -> list[str]:
    return [chance.choice(chance.choice((NAMES, NAMES, NUMBERS, DATES))) for _ in range(count)]


def _prediction(chance: Random, answer: str) -> str:
    kind = chance.random()
    if kind < 0.2:
        return _phrase(chance)
    if kind < 0.35:
        return chance.choice(CHAINS).format(*[_altered(chance, answer)] * 2)
    if kind < 0.45:
        return _list(chance, (answer,))
    return _altered(chance, answer)


def _list(chance: Random, spans: tuple[str, ...]) -> str:
    """Spans as a model may write them: whole or in part, altered, in another order, in JSON or nearly."""
    kept = [_altered(chance, span) for span in spans if chance.random() < 0.8]
    kept += [_span(chance) for _ in range(chance.choice((0, 0, 1, 3)))]
    chance.shuffle(kept)
    joined = ", ".join(kept)
    forms = (
        json.dumps(kept),
        json.dumps(kept, ensure_ascii=False),
        f"[{joined}]",
        f"[{joined}",
        f" {joined}] ",
        joined,
    )
    return chance.choice(forms)


def _altered(chance: Random, answer: str) -> str:
    words = answer.split(" ")
    place = chance.randrange(len(words))
    others = [*words[:place], chance.choice(("the", "red", "5", "and", "")), *words[place:]]
    return chance.choice(
        (
            answer,
            answer,
            answer.upper(),
            answer.lower(),
            f"The {answer}",
            f"{answer}.",
            f'"{answer}"',
            f"  {answer}\n",
            "-".join(words),
            " ".join(reversed(words)),
            " ".join(words[:place] + words[place + 1 :]),
            " ".join(others),
            " ".join([*words, words[place]]),
        )
    )


def _spaced(chance: Random, text: str) -> str:
    if chance.random() < 0.6:
        return text
    forms = (f" {text} ", text.replace(" ", "  "), text.upper(), text.replace(" ", ""), text + ".", text + "\n")
    return chance.choice(forms)
