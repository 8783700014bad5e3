"""Makes the pictures of docs/pictures from real runs: `python docs/pictures.py`, with chromium and chromedriver there.

The pages are asked of `offline`, so that anyone gets the same pictures, by a headless browser from a real server, a
real trace and a real evaluation. The terminal is drawn by rich's own SVG; `--terminal MODEL` draws it alone.
"""

# ruff: noqa: INP001 - a program of its own, in no package

import argparse
import asyncio
import io
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
from rich.console import Console
from rich.text import Text

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "serve"))
sys.path.insert(0, str(ROOT / "tests" / "tools"))

from browser import Browser, browser  # noqa: E402 - found by the lines above
from made_documents import pdf  # noqa: E402 - likewise
from serving import Served, served  # noqa: E402 - likewise

from hira import Hira, Settings  # noqa: E402 - likewise
from hira.cli import main as command  # noqa: E402 - likewise
from hira.cli.live import RunTree  # noqa: E402 - likewise
from hira.cli.output import text  # noqa: E402 - likewise
from hira.cli.shell import open_shell  # noqa: E402 - likewise
from hira.testing import Endpoint  # noqa: E402 - likewise

PICTURES = ROOT / "docs" / "pictures"
MINI = ROOT / "hira" / "evaluation" / "mini" / "docs"
QUESTION = "Which ferry did the mayor of Brenn command?"
TERMINALS: dict[str, tuple[str, dict[str, Any]]] = {
    "terminal": ("Who built the lighthouse of Sule?", {}),
    "terminal_unverified": (
        "Where did the builder of the lighthouse of Sule study?",
        {"workflow": "rag", "verify": "lexical"},
    ),
}
"""The questions, and their settings, whose runs are drawn: an answer that holds, and a wrong one."""
MOST = 1_500_000
DESKTOP, PHONE = (1280, 860), (390, 844)


def terminal(model: str, name: str) -> None:
    """The tree of a run as it stands at its end, and the answer below it."""
    question, flags = TERMINALS[name]
    console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True)

    async def watched() -> str:
        with RunTree(replace(open_shell(), stderr=io.StringIO())) as view:
            async with Hira(model, docs=MINI, temperature=0, **flags) as hira:
                run = hira.stream(question)
                await run.work(view)
            view.console = console
            named = "".join(f" --{flag} {value}" for flag, value in flags.items())
            console.print(Text(f'$ hira ask "{question}" --docs islands{named} -m {model}', style="bold"))
            console.print(view.draw())
            return text(run.answer)

    console.print(Text(f"\n{asyncio.run(watched())}"))
    drawn = console.export_svg(title="hira ask")
    (PICTURES / f"{name}.svg").write_text(re.sub(r"@font-face\s*\{[^}]*\}", "", drawn), encoding="utf-8")


def until(driven: Browser, script: str, what: Callable[[object], bool] = bool) -> None:
    deadline = time.monotonic() + 30
    while not what(driven.run(script)):
        if time.monotonic() > deadline:
            raise SystemExit(f"the page never came to: {script}")
        time.sleep(0.05)


def shot(driven: Browser, name: str, size: tuple[int, int] = DESKTOP, scheme: str = "light") -> None:
    driven.size(*size)
    driven.prefer(scheme)
    time.sleep(0.6)  # for what moves into its place
    driven.picture(PICTURES / f"{name}.png")


def asked(driven: Browser, server: Served, *, approve: bool = False, workflows: tuple[str, ...] = ()) -> None:
    driven.send("POST", "/url", {"url": f"{server.url}/"})
    until(driven, "return document.querySelectorAll('#workflows input').length > 10")
    for name in workflows:
        driven.run(f"document.querySelector('#workflows input[value={name}]').click()")
    if approve:
        driven.run("document.getElementById('approve').click()")
    script = "document.getElementById('question').value = arguments[0]; document.getElementById('ask').requestSubmit()"
    driven.run(script, QUESTION)


def pages(folder: Path) -> str:
    """Pictures of the live page; returns the name of a run."""
    settings = Settings(model="offline", docs=(MINI,), workflow="hira", journal=folder / "journal.sqlite")
    answered = "return document.querySelectorAll('.answer:not([hidden])').length"
    with browser(folder / "profile") as driven, served(settings) as server:
        driven.size(*DESKTOP)
        asked(driven, server)
        until(driven, answered)
        shot(driven, "page_light")
        shot(driven, "page_dark", scheme="dark")
        driven.run("document.querySelector('.cite')?.click()")
        shot(driven, "page_source")
        driven.press("\ue00c")
        driven.run("document.getElementById('past').click()")  # the list would lie over the run
        shot(driven, "page_phone", PHONE)
        driven.run("document.getElementById('past').click()")
        run = str(httpx.get(f"{server.url}/api/runs").json()["runs"][0]["id"])
        driven.size(*DESKTOP)
        asked(driven, server, approve=True)
        until(driven, "return document.querySelector('.decide textarea')?.value")
        shot(driven, "page_approve", (1280, 480))
        driven.run("document.querySelector('.stop').click()")
        until(driven, answered)
        driven.run("location.hash = ''")
        asked(driven, server, workflows=("rag", "mars"))
        until(driven, answered, lambda count: count == 3)
        driven.run("document.getElementById('past').click()")
        shot(driven, "page_compare", (1200, 720))
    return run


def claims(folder: Path) -> None:
    """Pictures of an answer without citations, of which one claim is not in the documents; a script writes it."""
    answer = r"\boxed{The ferry Gull was commanded by Jonna Vik. The mayor of Brenn was Jonna Vik.}"
    (folder / "brenn").mkdir()
    (folder / "brenn" / "gull.md").write_text(
        "# The ferry Gull\n\nThe ferry Gull was commanded by Jonna Vik. She was born in Brenn.\n", encoding="utf-8"
    )
    with Endpoint(lambda _: answer) as endpoint:
        settings = Settings(
            model=endpoint.model, base_url=endpoint.base_url, api_key="k", docs=(folder / "brenn",), verify="lexical",
            journal=folder / "claims.sqlite",
        )  # fmt: skip
        with browser(folder / "profile3") as driven, served(settings) as server:
            body = {"question": QUESTION, "workflow": "rag"}
            run = httpx.post(f"{server.url}/api/runs", json=body).json()["id"]
            driven.size(*DESKTOP)
            driven.send("POST", "/url", {"url": f"{server.url}/#/{run}"})
            until(driven, "return document.querySelector('.claims[open]')?.textContent")
            driven.run("document.getElementById('past').click()")
            shot(driven, "page_claims", (1100, 760))
            shot(driven, "page_claims_phone", PHONE)


def written(folder: Path, run: str) -> None:
    """The page of that run, and the report of an evaluation."""
    trace, out = folder / "trace.html", folder / "eval"
    if command(["trace", run, "-o", str(trace), "--journal", str(folder / "journal.sqlite")]):
        raise SystemExit("no trace was written")
    arguments = ["eval", "mini", "--workflow", "hira,rag", "--model", "offline", "--output", str(out)]
    if command(arguments):
        raise SystemExit("no report was written")
    with browser(folder / "profile2") as driven:
        for path, name in ((trace, "trace"), (next(out.rglob("*.html")), "evaluation")):
            driven.open(path)
            shot(driven, name)


def book(folder: Path) -> None:
    """Pictures of a question over a PDF file of 60 pages: the page number in terminal, page and report."""
    shelf, question = folder / "book", "Who built the bridge of Ostrand?"
    shelf.mkdir()
    lines = [f"Chapter {number} of the chronicle describes the fields of parish {number}." for number in range(1, 61)]
    lines[36] = "The bridge of Ostrand was built by Mira Holt in 1884."
    pdf(shelf / "chronicle.pdf", lines, title="Chronicle of the parishes")
    settings = Settings(model="offline", docs=(shelf,), workflow="rag", journal=folder / "book.sqlite")

    async def answered() -> str:
        async with Hira(settings=settings) as hira:
            return text(await hira.ask(question))

    console = Console(record=True, width=90, file=io.StringIO(), force_terminal=True)
    console.print(Text(f'$ hira ask "{question}" --docs book --workflow rag -m offline -q', style="bold"))
    console.print(Text(f"\n{asyncio.run(answered())}"))
    drawn = console.export_svg(title="hira ask")
    (PICTURES / "terminal_pdf.svg").write_text(re.sub(r"@font-face\s*\{[^}]*\}", "", drawn), encoding="utf-8")
    with browser(folder / "profile4") as driven, served(settings) as server:
        run = httpx.post(f"{server.url}/api/runs", json={"question": question, "workflow": "rag"}).json()["id"]
        driven.send("POST", "/url", {"url": f"{server.url}/#/{run}"})
        until(driven, "return document.querySelectorAll('.answer:not([hidden]) .cite').length")
        driven.run("document.querySelector('.cite').click()")
        shot(driven, "page_pdf", (1100, 640))
        report = folder / "report.html"
        if command(["report", question, "-o", str(report), "--docs", str(shelf), "-m", "offline"]):
            raise SystemExit("no report was written")
        driven.open(report)
        shot(driven, "report_pdf", (1100, 640))


def main() -> None:
    flags = argparse.ArgumentParser(description="Make the pictures of the documentation.")
    flags.add_argument("--terminal", metavar="MODEL", help="only the terminal, asked of this model")
    PICTURES.mkdir(exist_ok=True)
    if model := flags.parse_args().terminal:
        for name in TERMINALS:
            terminal(model, name)
        return
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), pages(Path(folder)))
        claims(Path(folder))
        book(Path(folder))
    sizes = {path.name: path.stat().st_size for path in sorted(PICTURES.iterdir())}
    sys.stdout.write("".join(f"{size / 1000:7.0f} kB  {name}\n" for name, size in sizes.items()))
    if sum(sizes.values()) > MOST:
        raise SystemExit("the pictures are too large together")


if __name__ == "__main__":
    main()
