"""Rows of `hostile.py` for files, pictures, pages and search services: bounds that hold for the sum, and files that
change while they are read."""

import asyncio
import gzip
import os
import threading
from collections.abc import Callable
from pathlib import Path

from benchmarks.hostile_checks import NotHeld, check, index, outcome
from hira.core.errors import ToolError
from hira.core.sanitize import presentable
from hira.testing.web import FakeWeb, Served
from hira.tools.documents.refresh import Refresh
from hira.tools.documents.store import open_store
from hira.tools.documents.walk import find_changes, walk
from hira.tools.fetch import identification
from hira.tools.media import media_reader
from hira.tools.opening import ReadingChild
from hira.tools.pages import extract
from hira.tools.search import open_backend, open_client
from tests.tools.made_documents import docx, paragraph, read_passages, slow_pdf, xlsx


def exchange(put: Callable[[Path], object]) -> Callable[[Path], str]:
    def attack(folder: Path) -> str:
        docs = folder / "docs"
        docs.mkdir()
        for name in ("a.md", "b.md"):
            (docs / name).write_text("The lighthouse keeper is Ansa Veld.")

        def exchange_file(_: int, __: int) -> None:
            (docs / "b.md").unlink()
            put(docs / "b.md")

        names, warnings = index(docs, exchange_file)
        check(names == ["a.md"], f"it read {names}")
        return f"told: {warnings[0][:60]}"

    return attack


def sparse(folder: Path) -> str:
    for number in range(20):
        with (folder / f"{number}.txt").open("wb") as file:
            file.truncate((199 << 20) if number else (1 << 40))
    names, warnings = index(folder)
    check(not names and len(warnings) == 20, f"it read {names}")
    return f"told: {warnings[-1][:60]}"


def dated(folder: Path) -> str:
    (folder / "a.md").write_text("The lighthouse keeper is Ansa Veld.")
    os.utime(folder / "a.md", (10_413_792_000, 10_413_792_000))
    check(index(folder)[0] == ["a.md"], "it was not read")
    return "read"


def slow(folder: Path) -> str:
    for number in range(20):
        slow_pdf(folder / f"{number}.pdf")
    docx(folder / "last.docx", paragraph("Still read."))
    store = open_store(None)
    changes, unread = find_changes(walk([folder]).files, {}, {})
    with ReadingChild() as child:
        Refresh(store, child, [folder], unread, threading.Event(), spare=10.0).read(changes, None)
    names = store.select("SELECT name FROM files")
    check(names == [("last.docx",)] and len(unread.unfit) == 20, f"it read {names}")
    return f"told: {unread.describe()[0][:60]}"


def repeated(folder: Path) -> str:
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[" + b"3 0 R " * 300_000 + b"]/Count 300000>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 9 9]>>",
    ]
    body = b"".join(b"%d 0 obj\n%b\nendobj\n" % (number, one) for number, one in enumerate(objects, 1))
    (folder / "a.pdf").write_bytes(b"%PDF-1.4\n" + body + b"trailer<</Size 4/Root 1 0 R>>\n")
    return outcome(lambda: f"{len(read_passages(folder / 'a.pdf').text)} characters")


def shared(folder: Path) -> str:
    cells = "".join(f'<row r="{at}"><c r="A{at}" t="s"><v>0</v></c></row>' for at in range(1, 100_000))
    try:
        read_passages(xlsx(folder / "a.xlsx", {"S": cells}, texts=["word " * 4_000]))
    except ToolError as error:
        return f"told: {str(error)[:60]}"
    raise NotHeld("2 GB of text were read")


def pixels(folder: Path) -> str:
    from PIL import Image

    Image.new("1", (13_300, 13_300)).save(folder / "a.png")
    told: list[str] = []

    def look() -> None:
        try:
            media_reader([folder])("a.png")
        except ToolError as error:
            told.append(str(error))

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(len(told) == 4, "they were decoded")
    return f"told: {told[0][:60]}"


def packed(_: Path) -> str:
    async def search() -> str:
        body = gzip.compress(b" " * 300_000_000, 6)
        page = Served(body, "application/json", headers={"Content-Encoding": "gzip"})
        with FakeWeb({"/search": page}) as web:
            async with open_client(identification()) as client:
                try:
                    await open_backend("searxng", client, base_url=web.url).search("Kama", 5)
                except ToolError as error:
                    return f"told: {error}"
        raise NotHeld("300 MB were unpacked")

    return asyncio.run(search())


def tagged(_: Path) -> str:
    return f"read: {len(extract('<div class=a>' * 380_000 + 'words').text)} characters"


def sourced(_: Path) -> str:
    return f"shown: {len(presentable('<a ' + 'src' * 1_600_000, ()))} characters"


ATTACKS: dict[tuple[str, str], Callable[[Path], str]] = {
    ("files", "a file exchanged for a link"): exchange(lambda path: path.symlink_to("/etc/passwd")),
    ("files", "a file exchanged for a pipe"): exchange(os.mkfifo),
    ("files", "a file exchanged for a link to a device"): exchange(lambda path: path.symlink_to("/dev/zero")),
    ("files", "a PDF with a page 300,000 times"): repeated,
    ("files", "20 sparse files up to 1 TB"): sparse,
    ("files", "a file dated 2300"): dated,
    ("files", "20 files of 10 kB that need 20 s each"): slow,
    ("files", "a shared text in 100,000 cells"): shared,
    ("files", "4 pictures of 177 million pixels"): pixels,
    ("pages", "5 MB of tags"): tagged,
    ("pages", "5 MB of src in an answer"): sourced,
    ("search", "300 MB in a packed answer"): packed,
}
