"""`cotrail sample`: the bundled sample as files to start from."""

from pathlib import Path
from typing import Annotated

import cotrail
from cotrail.cli.request_options import Json, argument
from cotrail.cli.terminal.output import console, make_folder, print_json, write_text
from cotrail.errors import InputError

SAMPLE = Path(cotrail.__file__).parent / "sample"
FILES = ("corpus.jsonl", "questions.jsonl", "demonstrations.txt", "short_demonstrations.txt", "run.toml")
FOLDER = Path("cotrail-sample")


def sample(folder: Annotated[Path, argument("sample.folder")] = FOLDER, *, json: Json = False) -> None:
    """Write the bundled sample into a folder, as files to start from: corpus, questions, demonstrations, run file."""
    files = [folder / name for name in FILES]
    if there := [str(file) for file in files if file.exists()]:
        raise InputError(f"{', '.join(there)} would be replaced; name another folder")
    make_folder(folder, "name another one")
    for file in files:
        write_text(file, (SAMPLE / file.name).read_text("utf-8"), "name another folder")
    if json:
        print_json({"files": [str(file) for file in files]})
        return
    screen = console()
    screen.print(f"Written: {', '.join(map(str, files))}", soft_wrap=True)
    screen.print("Next, after `cotrail up`:")
    screen.print(f"  cotrail index {files[0]} --name sample", soft_wrap=True)
    screen.print(f"  cotrail submit {files[-1]} --wait", soft_wrap=True)
