"""What people get wrong: each is refused in few plain words, which say what is wrong, where, and what to do.

Nothing is written, and there is no traceback. What needs a database is in tests/integration/test_bad_runs.py.
"""

import re
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from cotrail.cli.main import main
from cotrail.configuration.settings import settings
from tests.cases import each_case
from tests.unit.commands import DEMONSTRATION

LONGEST = 700
"""Characters of a message: three lines of a wide terminal, and a path."""

JARGON = ("Traceback", "Expected `", "`int`", "`str`", "Errno", "codec", "ydantic", "NoneType", "Input should", "$.")
"""Words of Python and of libraries, which say nothing to people."""

FILES: dict[str, bytes | str] = {
    "c.jsonl": '{"id": "1", "title": "Ink", "text": "Ink stains paper."}\n',
    "q.jsonl": '{"id": "q1", "question": "What stains paper?", "answers": ["ink"], "gold": ["1"]}\n',
    "d.txt": DEMONSTRATION,
    "empty": "",
    "blank.jsonl": "\n\n",
    "list.json": '[{"id": "q1", "question": "a"}]',
    "x.csv": "id,title,text\n1,a,b\n",
    "x.log": "some words\n",
    "x.yaml": "- id: 1\n",
    "x.bin": b"\x00\x01\x02\xff" * 100,
    "x.parquet": b"PAR1" + b"\0" * 50,
    "x.xlsx": b"PK\x03\x04" + b"\0" * 40,
    "x.gz": b"\x1f\x8b\x08\0" + b"\1" * 30,
    "x.pdf": b"%PDF-1.4\n",
    "x.html": "<!DOCTYPE html><html>",
    "x.tsv": "a\tb\n1\t2\n",
    "latin.jsonl": '{"id": "1", "text": "caf\xe9"}\n'.encode("latin-1"),
    "latin.md": "caf\xe9\n".encode("latin-1"),
    "utf16.jsonl": '{"id": "1"}'.encode("utf-16"),
    "twice.jsonl": '{"id":"1","text":"a"}\n{"id":"1","text":"b"}\n',
    "cut.jsonl": '{"id": "1", "text": "a"}\n{"id": "2", "te',
    "number.jsonl": '{"id": true, "text": "x"}\n',
    "idless.jsonl": '{"title": "x"}\n',
    "quotes.jsonl": "{'id': '1', 'text': 'x'}\n",
    "unknown.jsonl": '{"id":"1","txt":"x"}\n',
    "nul.jsonl": '{"id":"1","text":"a\\u0000b"}\n',
    "huge.jsonl": '{"id":"1","text":"' + "a" * 1_000_001 + '"}\n',
    "string.jsonl": '"hello"\n',
    "answers.jsonl": '{"id": "q1", "question": "a", "answers": {"a": 1}}\n',
    "blankq.jsonl": '{"id": "1", "question": " "}\n',
    "misspelt.jsonl": '{"id": "1", "questoin": "x"}\n',
    "gold.jsonl": '{"id": "1", "question": "x", "gold": ["zz"]}\n',
    "goldtext.jsonl": '{"id": "1", "question": "x", "gold": "1"}\n',
    "kinds.jsonl": '{"id": "1", "question": "x", "kinds": ["a"]}\n',
    "twiceq.jsonl": '{"id": "1", "question": "a"}\n{"id": "1", "question": "b"}\n',
    "control.jsonl": '{"id": "a\\u001b[31m", "question": "a"}\n',
    "plain.txt": "Q: x\nA: y\n",
    "headless.txt": '# METADATA: {"qid": "d"}\nA: y\n',
    "qid.txt": "# METADATA: {qid: d}\nQ: x\nA: y\n",
    "chains.jsonl": '{"id": 1, "chains": []}\n',
    "folder/picture.png": b"\x89PNG",
    "protocol.toml": 'protocol = "irco"\nname = "e"\n',
    "named.toml": 'name = "e 1"\n[datasets.hotpotqa]\nquestions = "q"\ncorpus = "c"\ndemonstrations = "d"\n',
    "dataless.toml": 'name = "e"\n',
    "keyed.toml": 'name = "e"\nsead = 3\n[datasets.hotpotqa]\nquestions = "q"\ncorpus = "c"\ndemonstrations = "d"\n',
}

INK = ("submit", "--system", "ircot", "--dataset", "jsonl", "--corpus", "ink", "--model", "scripted")
RUN = 'system = "ircot"\ndataset = "jsonl"\nquestions = "q.jsonl"\ncorpus = "ink"\nmodel = "scripted"\n'
SERVED = '[models.m]\nengine = "openai"\nurl = "http://h/v1"\nmodel = "m"\ncontext = 9\n'
ACCEPTED = '{"id": "1", "title": "...", "text": "..."} as JSON Lines, CSV, a tab-separated table (.tsv)'
COUNT = "must be a whole number from 1 to 2,147,483,647, e.g. `4`, not"
PARAGRAPHS = "must be a whole number from 1 to 10,000, e.g. `4`, not"


class Bad(Struct, frozen=True, kw_only=True):
    """An input, and what its message has to say.

    run: the content of a run file; models, search: that of models.toml and search.toml; variables: of the environment.
    """

    arguments: tuple[str, ...] = ()
    said: tuple[str, ...]
    code: int = 2
    run: str | None = None
    models: str | None = None
    search: str | None = None
    variables: dict[str, str] = {}


def submitted(option: str, value: str, *said: str) -> Bad:
    questions = () if option == "--questions" else ("--questions", "q.jsonl")
    return Bad(arguments=(*INK, *questions, option, value), said=said)


def index(path: str, *said: str) -> Bad:
    return Bad(arguments=("index", path, "--name", "x"), said=said)


def run_file(lines: str, *said: str, base: str = RUN) -> Bad:
    return Bad(arguments=("submit", "run.toml"), run=base + lines, said=said)


def models(table: str, *said: str, model: str = "m") -> Bad:
    return Bad(
        arguments=("submit", "--system", "ircot", "--dataset", "jsonl", "--questions", "q.jsonl", "--corpus", "ink"),
        models=table,
        variables={"COTRAIL_MODEL": model},
        said=("models.toml", *said),
    )


def variable(name: str, value: str, *said: str) -> Bad:
    return Bad(arguments=("runs",), variables={name: value}, said=(name, *said))


def command(line: str, *said: str) -> Bad:
    return Bad(arguments=tuple(line.split()), said=said)


CASES = (
    # Corpora
    *(index(name, name, ACCEPTED, "Markdown (.md)") for name in ("x.log", "x.yaml", "string.jsonl")),
    index("x.bin", "x.bin seems to be binary data", ACCEPTED),
    index("x.parquet", "x.parquet is damaged", "get it again"),
    index("x.xlsx", "seems to be a zip archive (as .xlsx and .docx are, too)", ACCEPTED),
    index("x.gz", "x.gz: the packed file is broken", "get it again"),
    index("x.pdf", "x.pdf: this PDF can't be read"),
    index("x.html", "no paragraphs in x.html"),
    index("x.tsv", "x.tsv, line 2: there is no field `text` or `contents`", "(but a, b); rename the text's"),
    index("empty", "no paragraphs in empty"),
    index("blank.jsonl", "no paragraphs in blank.jsonl"),
    index("latin.jsonl", "latin.jsonl, line 1", "isn't text in UTF-8 (it has the byte 0xe9)", "save the file as UTF-8"),
    index("latin.md", "latin.md, line 1: not UTF-8 text; save the file as UTF-8"),
    index("utf16.jsonl", "is text in UTF-16; convert it to UTF-8: iconv -f UTF-16"),
    index("twice.jsonl", "twice.jsonl, line 2: the id '1' names another paragraph before; give it another"),
    index("cut.jsonl", "cut.jsonl, line 2: this isn't valid JSON", "truncated"),
    index("number.jsonl", "number.jsonl, line 1: `id` must be text in quotation marks or a whole number", "not true"),
    index("idless.jsonl", "idless.jsonl, line 1: there is no field `text`"),
    index("quotes.jsonl", "quotes.jsonl, line 1: this isn't valid JSON"),
    index("unknown.jsonl", "unknown.jsonl, line 1: there is no key `txt` (did you mean text?)"),
    index("nul.jsonl", "nul.jsonl, line 1", "a NUL character"),
    index("huge.jsonl", "huge.jsonl, line 1: the text has 1,000,001 characters, and 1,000,000 is the most"),
    index("nope.jsonl", "nope.jsonl can't be read (No such file or directory); check the path"),
    index("folder", "folder is a folder without a document (.md, .markdown, .txt", "or a file of records"),
    index("q.jsonl", "q.jsonl seems to hold questions in cotrail's own form", "give a file of paragraphs"),
    command("index c.jsonl", "--name is missing, as in `cotrail index corpus.jsonl --name mine`"),
    command("index --name x", "PATH is missing, as in `cotrail index corpus.jsonl --name mine`"),
    command("index c.jsonl --name ../x", "a corpus can't be named '../x': use letters, digits"),
    command("index c.jsonl --nam x", "no option '--nam' (did you mean --name?)"),
    # Questions
    submitted("--questions", "x.csv", "x.csv seems to hold paragraphs of a corpus", "give another file"),
    submitted("--questions", "x.log", "x.log begins with", "give a CSV, TSV, JSON, JSON Lines or Parquet file"),
    submitted("--questions", "answers.jsonl", "answers.jsonl, line 1: `answers` must be a list", 'not {"a":1}'),
    submitted("--questions", "blankq.jsonl", "blankq.jsonl, line 1: the question is empty"),
    submitted("--questions", "misspelt.jsonl", "line 1: there is no key `questoin` (did you mean question?)"),
    submitted("--questions", "gold.jsonl", 'line 1: the corpus has no paragraph "zz"; give ids of this corpus'),
    submitted("--questions", "goldtext.jsonl", "line 1: `gold` must be a list", 'e.g. `["1"]`, not "1"'),
    submitted("--questions", "kinds.jsonl", "line 1: `kinds` must be an object `{...}`, not"),
    submitted("--questions", "twiceq.jsonl", "twiceq.jsonl, line 2: a question before has the id '1' too"),
    submitted("--questions", "control.jsonl", "line 1: the id ", "holds a line break or another control character"),
    submitted("--questions", "empty", "empty holds no questions"),
    submitted("--questions", "x.bin", "x.bin seems to be binary data"),
    submitted("--questions", "x.gz", "x.gz: the packed file is broken", "get it again"),
    submitted("--questions", "c.jsonl", "c.jsonl seems to hold paragraphs of a corpus"),
    submitted("--questions", "folder", "folder is a folder without data-*.arrow"),
    submitted("--questions", "", "`questions` is empty; name a file"),
    submitted("--dataset", "squad", "there is no dataset 'squad' (did you mean jsonl?); `cotrail datasets` lists them"),
    submitted("--dataset", "hotpotqa", "name the dataset 'jsonl' instead of 'hotpotqa'"),
    submitted("--official", "q.jsonl", "leave out q.jsonl as its official one"),
    # Options
    submitted("--limit", "0", f"--limit: `limit` {COUNT} 0"),
    submitted("--limit", "many", "--limit must be a whole number, e.g. 4, not 'many'", "cotrail submit --help"),
    submitted("--limit", "1e400", "--limit must be a whole number, e.g. 4, not '1e400'"),
    submitted("--temperature", "hot", "--temperature must be a number, e.g. 4, not 'hot'"),
    submitted("--temperature", "nan", "`temperature` must be a number from 0 to 10, e.g. `4`, not nan"),
    submitted("--temperature", "99", "`temperature` must be a number from 0 to 10", "not 99.0"),
    submitted("--retrieval-count", "-3", f"--retrieval-count: `retrieval_count` {PARAGRAPHS} -3"),
    submitted("--seed", "1099511627776", "`seed` must be a whole number from 0 to 2,147,483,647"),
    submitted("--priority", "1000000000000", "`priority` must be a whole number from -2,147,483,647"),
    submitted("--reader", "coot", "`reader` can't be 'coot' (did you mean cot?); there are: cot, direct, none"),
    submitted("--rules", "papers", "`rules` can't be 'papers' (did you mean paper?)"),
    submitted("--profile", "slow", "`profile` can't be 'slow'; there are: deterministic, fast"),
    submitted("--system", "ircott", "there is no system 'ircott' (did you mean ircot?)"),
    submitted("--corpus", "nope", "there is no corpus 'nope'; there are: ink; `cotrail index` makes one"),
    submitted("--model", "gpt-4o", "no model 'gpt-4o'", "models.toml", "[models.gpt-4o]\n", 'api = "chat"'),
    submitted("--model", "a.gguf", "no model 'a.gguf'", '[models."a.gguf"]\nengine = "llamacpp"\npath = "a.gguf"'),
    submitted("--demonstrations", "plain.txt", "plain.txt, line 1: a demonstration begins with a line `# METADATA:"),
    submitted("--demonstrations", "headless.txt", "headless.txt, line 1: demonstration d has no line `Q: ...`"),
    submitted("--demonstrations", "qid.txt", 'qid.txt, line 1: `# METADATA: {"qid": "..."}` expected'),
    submitted("--demonstrations", "empty", "empty is empty: it needs at least one demonstration"),
    submitted("--demonstrations", "x.bin", "x.bin, line 1: not UTF-8 text"),
    submitted("--sets", "released", "`sets` says which of the demonstrations are shown, and there are none"),
    submitted("--set-number", "2", "a set_number needs sets"),
    submitted("--prompt", "d.txt", "the system takes no prompt"),
    submitted("--embedder", "x", "the system ircot needs no embedder: name none"),
    submitted("--extractor", "x", "needs no extractor: name none"),
    submitted("--name", "latest", "'latest' can't be a run's name"),
    submitted("--tag", "x" * 300, "can't be a run's tag: it begins with a letter or digit, has at most 100 characters"),
    submitted("--until", "width(answer_f2) < 0.05", "there is no metric 'answer_f2' (did you mean answer_f1?)"),
    submitted("--until", "f1 < 0.05", "'f1 < 0.05' is no rule: write width(METRIC) < NUMBER"),
    submitted("--until", "width(rouge_l) < 0.05", "none of its questions has rouge_l"),
    submitted("--demonstation", "x", "no option '--demonstation' (did you mean --demonstrations?)"),
    Bad(
        arguments=(*INK, "--system", "rethinking", "--task", "temporal", "--questions", "q.jsonl"),
        said=("wikidata isn't built yet", "corpus of your own", 'knowledge = ["corpus"]'),
    ),
    # Run files
    command("submit", "no system given; name it with --system or in the run file"),
    command("submit nope.toml", "nope.toml can't be read (No such file or directory)"),
    command("submit q.jsonl", "q.jsonl can't be a run file, which is TOML", "behind --questions"),
    command("submit x.bin", "x.bin, line 1: not UTF-8 text; check that it is a TOML file"),
    command("submit d.txt", "d.txt isn't TOML", "(at line 2", '`key = "text"`'),
    run_file('retrieval_count = "four"\n', f'run.toml: `retrieval_count` {PARAGRAPHS} "four"'),
    run_file("retreival_count = 3\n", "run.toml: there is no key 'retreival_count' (did you mean retrieval_count?)"),
    run_file("colour = 3\n", "run.toml: there is no key 'colour'; there are 45, such as system", "submit --help"),
    run_file("limit = 1e400\n", f"run.toml: `limit` {COUNT} inf"),
    run_file('tags = "a"\n', "run.toml: `tags` must be a list", 'e.g. `["a"]`, not "a"'),
    run_file("name = 3\n", 'run.toml: `name` must be text in quotation marks, e.g. `"3"`, not 3'),
    run_file("settings = 3\n", "run.toml: `settings` must be an object `{...}`, not 3"),
    run_file("x = \n", "run.toml isn't TOML", "(at line 6"),
    run_file(
        "[settings]\nmax_sentencs = 3\n", "settings of ircot: there is no key `max_sentencs` (did you mean max_sen"
    ),
    run_file(
        '[settings]\nmax_sentences = "8"\n', "`max_sentences` must be a whole number from 1 to 2,147,483,647, e.g. `8`"
    ),
    run_file("[settings.retrieval]\nretrieval_count = 0\n", "`retrieval.retrieval_count` must be a whole number"),
    run_file('[settings]\nsplitter = "a b"\n', "`splitter` must be `rules`, or the name of a spaCy pipeline"),
    run_file('[settings.reading]\nreader = "coot"\n', "`reading.reader` can't be 'coot' (did you mean cot?)"),
    run_file("", "no system given", base=""),
    run_file('systm = "ircot"\n', "run.toml: there is no key 'systm' (did you mean system?)", base=""),
    # Lists of models, and settings of search
    models(
        '[models.m]\nengine = "llama"\npath = "x"\n', "the model m", "`engine` can't be 'llama' (did you mean llamacpp"
    ),
    models('[models.m]\npath = "x"\n', "the key `engine` is missing; there are: llamacpp"),
    models(SERVED.replace("9", '"16k"'), '`context` must be a whole number, 1 or more, e.g. `8192`, not "16k"'),
    models(SERVED.replace("http://h/v1", "gpu1:8000"), "it must begin with http:// or https://"),
    models(SERVED + 'api = "caht"\n', "`api` can't be 'caht' (did you mean chat?)"),
    models(SERVED + 'key_variable = "sk-abc"\n', "`key_variable` must be the name of an environment variable"),
    models("[model.m]\n", "there is no key `model` (did you mean models?)"),
    models("models = 3\n", "`models` must be an object `{...}`, not 3"),
    models("x\n", "isn't TOML", "(at line 1"),
    models(
        '[models.smollm2-135m]\nengine = "llamacpp"\npath = "x"\n',
        "smollm2-135m is the name of a built-in model",
        model="smollm2-135m",
    ),
    Bad(
        arguments=("corpora",),
        search="shards = 1\n",
        variables={"COTRAIL_SEARCH_URL": "http://127.0.0.1:1"},
        said=("search.toml", "there is no key `shards`; there are: index, corpora"),
    ),
    # Variables
    variable("COTRAIL_LEASE_SECONDS", "abc", "it is no number; correct it or unset it"),
    variable("COTRAIL_LEASE_SECONDS", "-1", "greater than 0"),
    variable("COTRAIL_GENERATION_SLOTS", "1.5", "it is no whole number"),
    variable("COTRAIL_DATABASE_URL", "mysql://x", "it must begin with postgresql://"),
    variable("COTRAIL_BROKER_URL", "amqp://x", "redis://:password@host:6379/0"),
    variable("COTRAIL_DEADLINES", "reason=3", '{"reason": 7200}'),
    variable("COTRAIL_SEARCH_SNIFF", "maybe", "neither true nor false"),
    Bad(arguments=("stack",), variables={"COTRAIL_HOME": "q.jsonl"}, said=("q.jsonl is a file; name a folder",)),
    # Other commands
    command("compare", "is missing", "cotrail compare ircot-8b one-step-8b"),
    command("sumbit", "did you mean submit?"),
    command("zzzz", "there is no command 'zzzz'; see `cotrail --help`"),
    command("\x1b[31m", "there is no command '\\\\x1b[31m'"),
    command("runs x", "x is one argument too many"),
    command("runs --limit 0", "--limit must be a whole number, 1 or more, e.g. 4, not '0'"),
    command("prune --older-than 1e400", "--older-than must be a number from 0 to 36,600, e.g. 4, not '1e400'"),
    command("prune --older-than nan", "--older-than must be a number from 0 to 36,600"),
    command("prioritize x high", "NUMBER must be a whole number, e.g. 4, not 'high'"),
    command("show", "RUN is missing"),
    command("models gpt-4o", "there is no model 'gpt-4o'", "[models.gpt-4o]\n"),
    command("systems ircott", "did you mean ircot?"),
    command("datasets squad", "there is no dataset 'squad'"),
    command("corpora nope", "there is no corpus 'nope'; there are: ink"),
    command("logs x", "there is no process 'x'; there are: "),
    command("worker x", "ROLE can't be 'x'; there are: generation"),
    command("knowledge build wiki x", "there is no knowledge source 'wiki' (did you mean wikidata?)"),
    command("knowledge build conceptnet q.jsonl", "q.jsonl, line 1: not an assertion of ConceptNet"),
    command("data build squad x --output y", "there is no corpus to build for 'squad'"),
    command("data build musique q.jsonl --output y", "q.jsonl seems to hold questions in cotrail's own form"),
    command("data sample jsonl q.jsonl --output y", "there are only 1; draw fewer"),
    command("demonstrations build --dataset squad --questions q.jsonl --output y", "there is no dataset 'squad'"),
    command("experiment run protocol.toml", "`protocol` can't be 'irco' (did you mean ircot?)"),
    command("experiment run named.toml", "`name` must be a name of letters", 'e.g. `"main-results"`, not "e 1"'),
    command("experiment run dataless.toml", "dataless.toml: the key `datasets` is missing"),
    command("experiment run keyed.toml", "keyed.toml: there is no key `sead` (did you mean seed?)"),
    command("rethink chains.jsonl", 'chains.jsonl, line 1: `id` must be text in quotation marks, e.g. `"1"`'),
    command("rethink x.csv", "x.csv, line 1: this isn't valid JSON"),
    command("rethink chains.jsonl --function 9", "--function can't be '9'; there are: 1, 2, 3"),
    command("sample q.jsonl", "the folder q.jsonl can't be made (File exists); name another one"),
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files, and a home in it with a model and the corpus `ink`."""
    place = tmp_path_factory.mktemp("bad")
    for name, content in FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (place / "home").mkdir()
    (place / "home" / "script.json").write_text('{"name": "s", "questions": {}, "default": {"answer": "x"}}')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COTRAIL_HOME", str(place / "home"))
        patch.setattr(sys, "argv", ["cotrail", "index", str(place / "c.jsonl"), "--name", "ink"])
        settings.cache_clear()
        with pytest.raises(SystemExit):
            main()
    settings.cache_clear()
    return place


@each_case("bad", CASES, ids=lambda bad: f"{' '.join(bad.arguments)[:60]} {bad.run or bad.models or ''}"[:90])
def test_a_bad_input_is_refused_in_plain_words(bad: Bad, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual = '[models.scripted]\nengine = "scripted"\npath = "script.json"\n'
    (place / "home" / "models.toml").write_text(bad.models or usual)
    (place / "home" / "search.toml").write_text(bad.search or "")
    (place / "run.toml").write_text(bad.run or "")
    before = written(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        patch.setenv("COTRAIL_HOME", "home")
        for name, value in bad.variables.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["cotrail", *bad.arguments])
        settings.cache_clear()
        with pytest.raises(SystemExit) as ended:
            main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (bad.code, "")
    for words in bad.said:
        assert words in printed.err
    message, _, others = printed.err.partition("\n")
    assert len(message) < LONGEST
    assert re.fullmatch(r"(See https://\S+\.md(#\S+)?\n)?(\[models\.(.|\n)*)?", others), others
    assert not [word for word in JARGON if word in printed.err]
    assert written(place) == before


def written(place: Path) -> dict[str, int]:
    """Every file with its size."""
    return {str(path): path.stat().st_size for path in place.rglob("*") if path.is_file()}


def test_there_are_many_cases() -> None:
    assert len(CASES) > 130
