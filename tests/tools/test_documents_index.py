import asyncio
import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_documents import pdf

from hira.core.errors import ToolError
from hira.evaluation import run
from hira.tools.documents import Index, browse_documents, search_documents
from hira.tools.documents.document import MOST, Document, Part, cut, words_in
from hira.tools.documents.pieces import list_terms
from hira.tools.documents.store import Store
from hira.tools.documents.walk import walk
from hira.tools.file_kinds import how_to_see
from hira.trainers import assembly, records
from hira.trainers.curation import pipeline

LIBRARY = Path(__file__).parent.parent / "data" / "library"

QUESTIONS = [
    ("When was the lighthouse at Skerry Point built?", "lighthouses.md", "1871"),
    ("How long does sourdough starter take to double in a cold kitchen?", "bread.md", "ten hours"),
    ("Where is the tidal range largest?", "tides.txt", "Bay of Fundy"),
    ("How much is the ferry from Dunmore to Gull Rock?", "ferries.csv", "Fare: 12.50"),
    ("votes on the early Sunday boat", "notes/council.md", "five votes to four"),
    ("treatment against varroa mites", "notes/beekeeping.md", "formic acid"),
]


@pytest.fixture
def folder(tmp_path):
    shutil.copytree(LIBRARY, tmp_path / "library")
    return tmp_path / "library"


def older(path: Path) -> None:
    """As if the file had been written long ago, so that its time can be trusted."""
    os.utime(path, (1_600_000_000, 1_600_000_000))


async def found(index: Index, question: str) -> list[str]:
    return [hit.name for hit in await index.search(question)]


def test_passages_are_cut_at_paragraphs_and_keep_the_headings_above_them():
    text = "# A\n\nintro\n\n## B\n\n" + "\n\n".join(f"word{at} " * 50 for at in range(6)) + "\n\n## C\n\nlast"
    pieces = cut(Document("a", (Part(text),)))
    assert [piece.heading for piece in pieces] == ["A", "A › B", "A › B", "A › C"]
    assert pieces[0].full == "A\nintro"
    assert [words_in(piece.text) for piece in pieces] == [1, 200, 100, 1]


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["word ", "word. ", "x" * 3000, "\n", "\n\n", "# h\n", "| a | b |\n", "中文字。", "```\n", "\t"]
        ),
        max_size=400,
    )
)
def test_no_text_is_lost_and_no_passage_is_much_too_long(tokens):
    text = "".join(tokens)
    pieces = cut(Document("a", (Part(text),)))
    assert all(words_in(piece.text) <= 2 * MOST for piece in pieces)
    kept = "".join("".join(f"{piece.heading} {piece.text}".split()) for piece in pieces)
    for needed in ("word", "x", "中", "|"):
        assert kept.count(needed) >= text.count(needed)


def test_words_of_a_question_are_quoted_and_operators_are_words():
    assert list_terms('AND OR NEAR( " *') == ['"NEAR"']
    assert list_terms("or not") == ['"or"', '"not"']
    assert list_terms("what is the COVID-19 rate of 1,250,000") == [
        *('"COVID-19"', '"COVID"', '"19"', '"rate"', '"1,250,000"', '"1250000"')
    ]
    assert list_terms("***") == []


async def test_a_word_that_most_passages_of_a_large_index_have_decides_only_if_there_is_no_other(tmp_path):
    entries = [f"# Entry {number}\n\nThe ledger has a line." for number in range(10_001)]
    entries[5_000] = "# Entry 5000\n\nThe ledger mentions a walrus."
    (tmp_path / "ledger.md").write_text("\n\n".join(entries))
    index = Index([tmp_path])
    assert [hit.piece.heading for hit in await index.search("the ledger with the walrus")] == ["Entry 5000"]
    assert len(await index.search("ledger")) == 10


async def test_the_passage_that_answers_a_question_comes_first(folder):
    (folder / "plain.txt").write_text("The sum is 1250000 in all.")
    index = Index([folder])
    for question, name, answer in QUESTIONS:
        hits = await index.search(question)
        assert (hits[0].name, answer in hits[0].piece.full) == (name, True)
    for number in ("1,250,000", "1250000"):
        assert set(await found(index, number)) == {"plain.txt", "notes/council.md"}


async def test_a_new_a_changed_and_a_removed_file_are_noticed(folder, tmp_path):
    for path in folder.rglob("*.*"):
        older(path)
    index = Index([folder], tmp_path / "cache")
    counts: list[tuple[int, int]] = []
    await index.refresh(lambda done, total: counts.append((done, total)))
    assert counts[-1] == (7, 7)

    (folder / "new.txt").write_text("A walrus was seen.")
    (folder / "bread.md").write_text("Nothing but marzipan.")
    (folder / "tides.txt").unlink()
    counts.clear()
    await index.refresh(lambda done, total: counts.append((done, total)))
    assert counts == [(1, 2), (2, 2)]
    assert await found(index, "walrus") == ["new.txt"]
    assert await found(index, "marzipan") == ["bread.md"]
    assert "bread.md" not in await found(index, "sourdough dough starter")
    assert await found(index, "neap") == []
    assert "tides.txt" not in await index.names()
    index.close()
    for path in folder.rglob("*.*"):
        older(path)
    again = Index([folder], tmp_path / "cache")
    await again.refresh()
    counts.clear()
    await again.refresh(lambda done, total: counts.append((done, total)))
    assert counts == []
    assert await found(again, "walrus") == ["new.txt"]


async def test_what_cannot_be_read_is_a_warning_and_the_rest_is_found(folder):
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (folder / "broken.xlsx").write_bytes(b"PK nothing")
    (folder / "a.bin").write_bytes(bytes(range(256)))
    (folder / "b.bin").write_bytes(bytes(range(256)))
    (folder / "photo.jpg").write_bytes(b"\xff\xd8")
    pdf(folder / "scan.pdf", ["", ""])
    index = Index([folder])
    await index.refresh()
    assert len(index.warnings) == 4
    assert "broken.pdf is damaged" in index.warnings[0]
    assert "broken.xlsx is damaged" in index.warnings[1]
    assert index.warnings[2] == "2 files hold no text and cannot be searched: a.bin, b.bin"
    assert index.warnings[3] == f"scan.pdf: no text in page 1, page 2; {how_to_see('scan.pdf')}"
    assert await found(index, "varroa") == ["notes/beekeeping.md"]


async def test_hidden_folders_dependencies_and_links_in_circles_or_out_of_the_folder_are_left_out(folder, tmp_path):
    for name in (".git", "node_modules", "__pycache__", "env"):
        (folder / name).mkdir()
        (folder / name / "walrus.txt").write_text("walrus")
    (folder / "env" / "pyvenv.cfg").write_text("")
    for path in (folder / ".secret", folder / "~$open.docx", tmp_path / "private.txt"):
        path.write_text("walrus")
    (folder / "notes" / "loop").symlink_to(folder)
    (folder / "again.md").symlink_to(folder / "bread.md")
    (folder / "innocent.txt").symlink_to(tmp_path / "private.txt")
    index = Index([folder])
    assert await found(index, "walrus") == []
    assert len(await index.names()) == 7
    assert index.warnings == [f"{folder / 'innocent.txt'} links outside the documents; to read its target, name it"]


UNPRIVILEGED = """
import os
from pathlib import Path
from hira.tools.documents.walk import walk
if os.geteuid() == 0:
    os.setuid(65534)
try:
    os.readlink("/proc/1/cwd")
except PermissionError:
    print("\\n".join(walk([Path("/proc/1")]).warnings))
"""


@pytest.mark.skipif(not Path("/proc/1/cwd").is_symlink(), reason="only Linux has links that cannot be read")
def test_a_link_that_cannot_be_read_is_a_warning():
    done = subprocess.run([sys.executable, "-c", UNPRIVILEGED], capture_output=True, text=True, check=True)
    if not done.stdout:
        pytest.skip("this user may read the link")
    assert "/proc/1/cwd cannot be read: Permission denied" in done.stdout.splitlines()


@pytest.mark.parametrize(
    "names",
    [(run.PLAN, run.RECORDS), (pipeline.PLAN, pipeline.DECISIONS), (assembly.BEGUN, records.ROLLOUTS)],
    ids=["evaluation", "curation", "training"],
)
def test_folders_of_records_are_left_out_unless_they_are_named(tmp_path, names):
    (tmp_path / "run").mkdir()
    for name in names:
        (tmp_path / "run" / name).write_text('{"question": "How high is the tower?", "answer": "31 metres"}\n')
    (tmp_path / "a.txt").write_text("The tower is high.\n")
    listing = walk([tmp_path])
    assert [*listing.files] == ["a.txt"]
    assert listing.warnings == [
        f"{tmp_path / 'run'} is left out: it contains records of hira; to read it, name its path"
    ]
    assert {*walk([tmp_path / "run"]).files} == {*names}


def test_what_is_excluded_is_left_out_also_where_something_in_it_is_named(folder):
    (folder / "private").mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / "private" / name).write_text("walrus")
    named = [folder / "bread.md", folder / "private", folder / "private" / "a.txt"]
    assert [*walk(named, [folder / "private"]).files] == ["bread.md"]
    assert [*walk(named, [folder / "private" / "a.txt"]).files] == ["bread.md", "private/b.txt"]


async def test_files_that_usually_hold_keys_are_left_out_and_told_unless_they_are_named_themselves(folder):
    keys = ["hira.toml", ".env", "prod.env", "id_rsa", "server.PEM", "credentials", ".netrc", ".npmrc", ".pypirc"]
    for name in keys:
        (folder / "notes" / name).write_text("api_key = quitesecret")
    (folder / "looks harmless.txt").symlink_to(folder / "notes" / "hira.toml")
    (folder / "credentials of a speaker.md").write_text("She studied in Bern.")
    index = Index([folder])
    assert await found(index, "quitesecret") == []
    assert await found(index, "studied in Bern") == ["credentials of a speaker.md"]
    (told,) = index.warnings
    assert told.startswith("left out because files with such names hold keys: ")
    assert all(name in told for name in keys)
    assert await found(Index([folder / "notes" / "hira.toml"]), "quitesecret") == ["hira.toml"]


async def test_an_index_is_for_its_owner_alone_is_made_anew_if_damaged_and_in_memory_if_it_cannot_be_kept(
    folder, tmp_path
):
    cache = tmp_path / "cache"
    for _ in range(2):
        index = Index([folder], cache)
        assert await found(index, "varroa") == ["notes/beekeeping.md"]
        assert index.warnings == []
        index.close()
        (file,) = cache.glob("*.sqlite")
        assert (file.stat().st_mode & 0o777, cache.stat().st_mode & 0o777) == (0o600, 0o700)
        file.write_bytes(b"this is no database at all" * 100)
    (tmp_path / "file").write_text("a file where the folder should be")
    index = Index([folder], tmp_path / "file")
    assert await found(index, "varroa") == ["notes/beekeeping.md"]
    (warning,) = index.warnings
    assert "kept in memory" in warning


async def test_two_processes_may_make_and_use_one_index_at_once(tmp_path):
    folder, cache = tmp_path / "docs", tmp_path / "cache"
    folder.mkdir()
    for at in range(60):
        (folder / f"{at}.txt").write_text(f"walrus number{at} " + "filler words " * 200)
        older(folder / f"{at}.txt")
    program = (
        "import asyncio, sys\nfrom pathlib import Path\nfrom hira.tools.documents import Index\n"
        "async def main():\n"
        "    index = Index([Path(sys.argv[1])], Path(sys.argv[2]))\n"
        "    await index.refresh()\n"
        "    hits = [len(await index.search(f'number{at}')) for at in range(60)]\n"
        "    print(len(await index.names()), set(hits), index.warnings)\n"
        "asyncio.run(main())"
    )
    line = [sys.executable, "-c", program, str(folder), str(cache)]
    both = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for one in both:
        out, problems = one.communicate(timeout=60)
        assert (out, problems) == ("60 {1} []\n", "")
    (file,) = cache.glob("*.sqlite")
    store = Store(file)
    assert store.select("SELECT count(*) FROM passages") == [(120,)]
    store.close()


async def test_a_folder_that_changes_while_it_is_indexed_is_told_of_and_right_after_the_next_question(tmp_path):
    folder = tmp_path / "docs"
    (folder / "late").mkdir(parents=True)
    for name in ("a", "gone", "late/moved", "late/rewritten", "late/zlast"):
        (folder / f"{name}.txt").write_text(f"The walrus of {name.replace('/', ' ')}.")
        older(folder / f"{name}.txt")

    def change(done: int, total: int) -> None:
        if done == 1:
            (folder / "gone.txt").unlink()
            (folder / "late" / "moved.txt").rename(folder / "came.txt")
            (folder / "late" / "rewritten.txt").write_text("The seal of rewritten.")
            (folder / "new.txt").write_text("The walrus of new.")

    index = Index([folder], tmp_path / "cache")
    await index.refresh(change)
    assert [line.partition(" does")[0].rpartition("/")[2] for line in index.warnings] == ["gone.txt", "moved.txt"]
    assert await found(index, "seal") == ["late/rewritten.txt"]
    await index.refresh()
    assert index.warnings == []
    assert sorted(await found(index, "walrus")) == ["a.txt", "came.txt", "late/zlast.txt", "new.txt"]


async def test_a_folder_that_is_removed_while_it_is_indexed_leaves_the_others(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "note.txt").write_text(f"The walrus of {name}.")
    index = Index([tmp_path])

    def replace_folder(done: int, total: int) -> None:
        if done == 1:
            shutil.rmtree(tmp_path / "b")
            (tmp_path / "b").write_text("no folder any more")

    await index.refresh(replace_folder)
    assert sorted(await found(index, "walrus")) == ["a/note.txt", "c/note.txt"]
    await index.refresh()
    assert await found(index, "folder any more") == ["b"]


@pytest.mark.heavy
async def test_a_book_of_five_thousand_pages_with_printed_numbers_is_read_within_the_limits_of_a_question(tmp_path):
    pages = [f"The walrus number{number} eats fish every day." for number in range(5_000)]
    pdf(tmp_path / "book.pdf", pages, labels="0 << /S /r >> 10 << /S /D >>")
    index = Index([tmp_path])
    await index.refresh()
    assert index.warnings == []
    for number, place in ((2, "p. iii (page 3 of the file)"), (4_998, "p. 4989 (page 4999 of the file)")):
        (hit, *_) = await index.search(f"number{number}")
        assert hit.piece.locate(hit.title) == place


async def test_each_part_of_a_row_of_two_hundred_columns_names_its_row(tmp_path):
    rows = [["station", *(f"measure{at}" for at in range(200))]]
    rows += [[f"Alta{row}", *(f"{row}{at:03}" for at in range(200))] for row in range(2, 32)]
    (tmp_path / "wide.csv").write_text("\n".join(",".join(row) for row in rows))
    index = Index([tmp_path])
    best = (await index.search("measure137 of the station Alta17"))[0].piece
    assert "station: Alta17 |" in best.text
    assert "measure137: 17137" in best.text
    assert best.span == "row 17"
    document = await index.open("wide.csv")
    text = "\n".join(piece.text for piece in document.pieces)
    assert all(f"measure{at}: {row}{at:03}" in text for row in range(2, 32) for at in range(200))


async def test_indexing_leaves_the_loop_free_and_stops_when_it_is_cancelled(tmp_path):
    for at in range(300):
        (tmp_path / f"{at}.txt").write_text("words of a text " * 2000)
    index = Index([tmp_path])
    started = threading.Event()
    done: list[int] = []

    def progress(count: int, total: int) -> None:
        started.set()
        done.append(count)

    running = asyncio.ensure_future(index.refresh(progress))
    while not started.is_set():
        await asyncio.sleep(0.001)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    index.close()
    assert len(done) < 300


async def test_the_search_tool_returns_passages_with_their_files_as_sources():
    observation = await search_documents(Index([LIBRARY]), top=3).call({"query": "neap tides"})
    passage = observation.passages[0]
    assert (passage.source.location, passage.source.title, passage.source.kind) == ("tides.txt", "tides", "file")
    assert "neap tides" in passage.source.text
    nothing = await search_documents(Index([LIBRARY])).call({"query": "zeppelin"})
    assert (nothing.text, nothing.passages) == ("nothing found for 'zeppelin' in 7 documents", ())


async def test_a_document_is_opened_by_any_spelling_that_can_mean_only_it():
    browse = browse_documents(Index([LIBRARY]))
    for url in ("./notes/council.md", "council.md", "Notes/Council.MD", '"notes/council.md"'):
        assert (await browse.call({"url": url})).passages[0].source.location == "notes/council.md"
    for url in ("/etc/passwd", "../../pyproject.toml", "notes/../../made.py", "file:///etc/passwd", "lighthouse.md"):
        with pytest.raises(ToolError, match="is not one of the documents; did you mean: "):
            await browse.call({"url": url})


async def test_of_a_long_document_the_passages_that_matter_are_shown_in_order(folder):
    pages = [f"Page {at} speaks of nothing in particular, " + "again and again " * 60 for at in range(40)]
    pages[30] = "The walrus weighs 1200 kilograms."
    pdf(folder / "long.pdf", pages)
    index = Index([folder])
    observation = await browse_documents(index).call({"url": "long.pdf", "intent": "weight of the walrus"})
    (passage,) = observation.passages
    assert observation.text.startswith("3 of 40 passages are shown: those nearest to your intent")
    assert passage.text.startswith("[… 29 passages left out …]\n\n[page 30]")
    assert "[page 31]\n\nThe walrus weighs 1200 kilograms." in passage.text
    assert passage.text.endswith("[… 8 passages left out …]")
    assert "left out" not in passage.source.text

    beginning = await browse_documents(index).call({"url": "long.pdf"})
    assert "its beginning" in beginning.text
    assert beginning.passages[0].text.startswith("[page 1]")
    unmatched = await browse_documents(index).call({"url": "long.pdf", "intent": "zeppelin"})
    assert "nothing in it matches your intent" in unmatched.text


async def test_a_warning_is_new_once_also_to_a_later_process_until_it_ceases(folder, tmp_path):
    (folder / "empty.txt").touch()
    taken = []
    for present in (True, True, False, True):
        if present:
            (folder / "empty.txt").touch()
        else:
            (folder / "empty.txt").unlink()
        index = Index([folder], tmp_path / "cache")
        await index.refresh()
        taken.append(await index.take_new_warnings())
        assert len(index.warnings) == present
        index.close()
    assert [len(one) for one in taken] == [1, 0, 0, 1]


def test_indexes_of_older_formats_that_nothing_uses_are_removed(tmp_path: Path) -> None:
    cache, month_ago = tmp_path / "cache", time.time() - 31 * 86_400
    cache.mkdir()
    for name in ("documents-1-a.sqlite", "documents-1-a.sqlite-wal", "documents-1-b.sqlite", "documents-99-a.sqlite"):
        (cache / name).touch()
    for name in ("documents-1-a.sqlite", "documents-99-a.sqlite"):
        os.utime(cache / name, (month_ago, month_ago))
    (tmp_path / "docs").mkdir()
    Index([tmp_path / "docs"], cache).close()
    assert {path.name for path in cache.iterdir() if "-a." in path.name or "-b." in path.name} == {
        "documents-1-b.sqlite",
        "documents-99-a.sqlite",
    }


@pytest.mark.parametrize("question", ["What are these documents about?", "Worum geht es in den Dateien?"])
async def test_a_question_about_the_documents_as_a_whole_finds_their_list_and_how_they_begin(folder, question):
    for year in ("2024", "2025"):
        (folder / f"report-{year}.md").write_text(f"# Report {year}\n\nThe harbour had a good year.", "utf-8")
    listed, *begun = (await search_documents(Index([folder]))(query=question)).passages
    assert {"- bread.md: Sourdough", "- report-2024.md: Report 2024"} <= {
        line.partition(" in ")[0] for line in listed.text.splitlines()
    }
    names = [passage.source.location for passage in begun]
    assert "report-2025.md" in names
    assert "report-2024.md" not in names, "an outdated edition"
    few = (await search_documents(Index([folder]), top=3).call({"query": question})).passages
    assert len(few) == 4


@pytest.mark.parametrize(
    "question",
    ["Which documents describe varroa mites?", "Which documents have to be attached?", "What is a folder?"],
)
async def test_a_question_about_something_in_the_documents_is_searched(folder, question):
    (folder / "visa.md").write_text("The passport and the tax form have to be attached in a folder.", "utf-8")
    seen = await search_documents(Index([folder])).call({"query": question})
    assert seen.passages[0].source.location in ("notes/beekeeping.md", "visa.md")
