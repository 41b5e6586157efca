"""A finished run of any size, made in the database: nobody answered its questions, but its rows are like real ones.

One question of IRCoT is carried out, and its steps are copied for every other. Paragraphs, questions and what was
found are made up: eighty words a paragraph of a vocabulary in which words are as frequent as in English (Zipf), and in
every fourth one with characters beyond ASCII.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from typing import Any

import msgspec
from msgspec.structs import replace
from sqlalchemy import Connection, Engine, text

from benchmarks.by_hand import carry_out
from benchmarks.contenders.cotrail import submission
from benchmarks.growth import executed
from cotrail.core.questions import Paragraph, Question
from cotrail.models.commands.submission import submit
from cotrail.systems.registry import find_system

RUN, TEMPLATE = "made", "template"
SEARCHES, HITS, COLLECTED = 3, 4, 10
"""Searches of a question, what each finds, and what is collected of that."""

WORDS, VOCABULARY = 80, 20_000
BEYOND_ASCII = ("é", "\u2013", "ö", "ū")
KINDS = ("bridge", "bridge", "bridge", "comparison")
LEVELS = ("easy", "medium", "hard")

_COPY = {
    "paragraphs": "digest, title, text",
    "questions": "run_id, position, key, text, answers, gold, kind, status, answer, sentences, collected, ended_by, "
    "opened, digest, finished_at",
    "paragraph_sets": "step_id, rank, question_id, query, digest, paragraph_id, score",
}
_COPIED = (
    "sequence, kind, fingerprint, request, state, epoch, created_at, sent_at, worker, started_at, finished_at, result, "
    "prompt_tokens, cached_prompt_tokens, generated_tokens, milliseconds, previous, digest"
)
_FILL = (
    f"""
    INSERT INTO steps (run_id, question_id, {_COPIED}) SELECT q.run_id, q.id, s.* FROM questions AS q,
        (SELECT {_COPIED} FROM steps WHERE run_id = :template) AS s WHERE q.run_id = :run ORDER BY q.id, s.sequence
    """,
    """
    INSERT INTO attempts (step_id, epoch, worker, started_at, ended_at, outcome)
        SELECT id, 1, worker, started_at, finished_at, 'finished' FROM steps WHERE run_id = :run
    """,
    "UPDATE runs SET size = (SELECT count(*) FROM questions WHERE run_id = :run), digest = opened WHERE id = :run",
)
_SEARCHES = "SELECT id, question_id FROM steps WHERE run_id = :run AND kind = 'retrieve' ORDER BY question_id, sequence"


def make_run(engine: Engine, questions: int, paragraphs: int, seed: int = 0) -> str:
    """Make a run of so many questions over a corpus of so many paragraphs; returns its id."""
    template = replace(submission(), id=TEMPLATE)
    submit(engine, template, [Question(id="q", text="Where was it built?")], find_system)
    carry_out(engine, executed)
    submit(engine, replace(template, id=RUN, dataset="hotpotqa"), [], find_system)
    chance = random.Random(seed)
    corpus = list(_paragraphs(paragraphs, chance))
    found = [[chance.randrange(paragraphs) for _ in range(COLLECTED)] for _ in range(questions)]
    with engine.begin() as connection:
        # This switches foreign keys off: checking a row takes longer than writing it.
        connection.execute(text("SET LOCAL session_replication_role = 'replica'"))
        _copy(connection, "paragraphs", ((each.digest, each.title, each.text) for each in corpus))
        _copy(connection, "questions", (_question(n, [corpus[m] for m in found[n]], chance) for n in range(questions)))
        for statement in _FILL:
            connection.execute(text(statement), {"run": RUN, "template": TEMPLATE})
        searches = connection.execute(text(_SEARCHES), {"run": RUN}).all()
        _copy(connection, "paragraph_sets", _hits(searches, found, corpus))
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for statement in ("VACUUM ANALYZE", "CHECKPOINT"):
            connection.execute(text(statement))
    return RUN


def _paragraphs(count: int, chance: random.Random) -> Iterator[Paragraph]:
    vocabulary = ["".join(chance.choices("aeiounrtsldkmb", k=chance.randint(2, 9))) for _ in range(VOCABULARY)]
    frequencies = list(accumulate(1 / rank for rank in range(1, VOCABULARY + 1)))
    for number in range(count):
        words = chance.choices(vocabulary, cum_weights=frequencies, k=WORDS)
        if number % 4 == 0:
            words[::20] = (word + beyond for word, beyond in zip(words[::20], BEYOND_ASCII, strict=True))
        name = " ".join(word.capitalize() for word in words[1 if number % 16 else 0 :][:2])
        yield Paragraph(id=f"p{number}", title=f"{name} {number}", text=f"{name} is the {' '.join(words)}.")


def _question(number: int, collected: Sequence[Paragraph], chance: random.Random) -> tuple[Any, ...]:
    """A row of `questions`: one or two gold paragraphs are found, and the answer is right, near it or wrong."""
    words = collected[0].text.split()
    answer = " ".join((words[10], words[11] if number % 3 else "elsewhere"))
    given = chance.choice((answer, answer, f"the {answer} of {words[20]}", words[30], "unknown to all of them"))
    missed = Paragraph(id="", title=f"Missed {number}", text=collected[1].text)
    gold = [{"title": each.title, "text": each.text} for each in (collected[0], chance.choice((collected[5], missed)))]
    sort = {"type": chance.choice(KINDS), "level": chance.choice(LEVELS)}
    ended = ("answer", f"opened-{number}", f"digest-{number}", "2026-01-01")
    chain = ["The bridge was built by one engineer.", f"So the answer is: {given}."]
    lists = (_json([answer]), _json(gold), _json(sort), "finished", given, _json(chain))
    return (RUN, number, f"q{number}", f"Where was builder {number} born?", *lists, _json(_digests(collected)), *ended)


def _hits(searches: Sequence[Any], found: Sequence[Sequence[int]], corpus: Sequence[Paragraph]) -> Iterator[Any]:
    """Rows of `paragraph_sets`: the last search of a question finds two paragraphs again."""
    for number, (step, question) in enumerate(searches):
        of = found[number // SEARCHES]
        for rank in range(HITS):
            paragraph = corpus[of[(number % SEARCHES * HITS + rank) % COLLECTED]]
            yield step, rank + 1, question, "builder", paragraph.digest, paragraph.id, 9.0 - rank


def _digests(collected: Sequence[Paragraph]) -> list[str]:
    return list(dict.fromkeys(each.digest for each in collected))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _copy(connection: Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    cursor: Any = connection.connection.cursor()
    with cursor.copy(f"COPY {table} ({_COPY[table]}) FROM STDIN") as copying:
        for row in rows:
            copying.write_row(row)
