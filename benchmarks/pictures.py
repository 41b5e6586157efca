"""The pictures of the README and of docs/viewer.md, taken of a run: `python -m benchmarks.pictures [RUN [QUESTION]]`.

The stack has to be up, with such a run: `cotrail demo --keep` makes one. Pages are drawn by Chromium, which has to be
installed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from io import BytesIO, StringIO
from pathlib import Path

from PIL import Image
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from cotrail.configuration.settings import settings

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
COTRAIL = (sys.executable, "-m", "cotrail.cli.main")
COLUMNS = 100
"""The width of what a command prints to another program."""

WIDTH = 1280
"""Of a page's picture, in pixels."""

PAGES: Mapping[str, tuple[str, int]] = {
    "question": ("/runs/{run}/questions/{question}", 1500),
    "run": ("/runs/{run}", 1040),
}
"""Pages of the viewer, with the heights of their pictures."""

COLORS = 128


def main(run: str = "latest", question: str = "4") -> None:
    """Take all pictures."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "trace.svg").write_text(trace(run, question), "utf-8")
    service = f"http://{settings().api_host}:{settings().api_port}"
    for name, (path, height) in PAGES.items():
        address = service + path.format(run=run, question=question)
        (PICTURES / f"{name}.png").write_bytes(screenshot(address, height))


def trace(run: str, question: str) -> str:
    """What `cotrail trace` prints on a terminal, as an SVG that needs no font from elsewhere."""
    colored = {**os.environ, "FORCE_COLOR": "1"}
    printed = subprocess.run([*COTRAIL, "trace", run, question], env=colored, stdout=subprocess.PIPE, check=True)
    screen = Console(record=True, width=COLUMNS, file=StringIO())
    screen.print(Text.from_ansi(printed.stdout.decode()))
    plain = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    title = f"cotrail trace latest {question}"
    return screen.export_svg(title=title, code_format=plain, unique_id="trace")


def screenshot(address: str, height: int) -> bytes:
    """The top of a page as a browser shows it, as a PNG with few colours."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("Chromium isn't installed: apt-get install chromium")
    # Chromium's sandbox doesn't work for root or in a container; the pages are cotrail's own.
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},{height}"]
    packed = BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        taken = Path(folder, "page.png")
        command = [browser, *options, f"--screenshot={taken}", address]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
        Image.open(taken).convert("RGB").quantize(COLORS).save(packed, "PNG", optimize=True)
    return packed.getvalue()


if __name__ == "__main__":
    main(*sys.argv[1:])
