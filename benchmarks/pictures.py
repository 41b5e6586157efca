"""The README's pictures of a trace and of a report, taken of a run: `python -m benchmarks.pictures [RUN [QUESTION]]`.

`cotrail demo --keep` makes such a run. The report is drawn by Chromium, which has to be installed.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from io import BytesIO, StringIO
from pathlib import Path

from PIL import Image
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
COTRAIL = (sys.executable, "-m", "cotrail.cli.main")
COLUMNS = 100
"""The width of what a command prints to another program."""

WIDTH, HEIGHT = 1280, 1040
"""Of the report's picture, in pixels."""

COLORS = 128


def main(run: str = "latest", question: str = "4") -> None:
    """Take both pictures."""
    PICTURES.mkdir(exist_ok=True)
    (PICTURES / "trace.svg").write_text(trace(run, question), "utf-8")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        subprocess.run([*COTRAIL, "report", run, "--html", str(page)], check=True)
        (PICTURES / "report.png").write_bytes(screenshot(page))


def trace(run: str, question: str) -> str:
    """What `cotrail trace` prints on a terminal, as an SVG that needs no font from elsewhere."""
    colored = {**os.environ, "FORCE_COLOR": "1"}
    printed = subprocess.run([*COTRAIL, "trace", run, question], env=colored, stdout=subprocess.PIPE, check=True)
    screen = Console(record=True, width=COLUMNS, file=StringIO())
    screen.print(Text.from_ansi(printed.stdout.decode()))
    plain = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    title = f"cotrail trace latest {question}"
    return screen.export_svg(title=title, code_format=plain, unique_id="trace")


def screenshot(page: Path) -> bytes:
    """The top of the page as a browser shows it, as a PNG with few colours."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("Chromium isn't installed: apt-get install chromium")
    taken = page.with_suffix(".png")
    # Chromium's sandbox doesn't work for root or in a container; the page is cotrail's own.
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={WIDTH},{HEIGHT}"]
    command = [browser, *options, f"--screenshot={taken}", page.as_uri()]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)
    packed = BytesIO()
    Image.open(taken).convert("RGB").quantize(COLORS).save(packed, "PNG", optimize=True)
    return packed.getvalue()


if __name__ == "__main__":
    main(*sys.argv[1:])
