"""The documentation's site is built from docs/, strictly, and asks nothing of anybody when it is read."""

import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import browser, missing

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("zensical")
    pytest.importorskip("mkdocstrings")
    out = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, str(DOCS / "site.py"), "--output", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stdout + done.stderr
    return out


def test_every_page_is_built_and_reached_from_the_first_one(site: Path) -> None:
    first = (site / "index.html").read_text(encoding="utf-8")
    linked = {name.removeprefix("./") for name in re.findall(r'href="?([\w/.-]+\.html)', first)}
    pages = {page.relative_to(DOCS).with_suffix(".html").as_posix() for page in DOCS.rglob("*.md")}
    assert all((site / page).is_file() for page in pages)
    assert pages - {"index.html"} <= linked


def test_the_reference_is_made_of_the_docstrings(site: Path) -> None:
    text = re.sub(r"<[^>]+>", "", (site / "api.html").read_text(encoding="utf-8"))
    for told in (
        "Asks questions. Arguments that you leave out",
        "Everything that one run works with",
        "ScriptedPolicy",
        "OutOfBudget",
    ):
        assert told in text, told
    assert ":::" not in text


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_browser_loads_nothing_from_elsewhere(site: Path, tmp_path: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    here = f"http://127.0.0.1:{server.server_port}/"
    try:
        with browser(tmp_path / "profile") as driven:
            for page in ("index.html", "api.html", "serve.html"):
                driven.send("POST", "/url", {"url": f"{here}{page}"})
                loaded = driven.run("return performance.getEntriesByType('resource').map(one => one.name)")
                assert loaded
                assert not [name for name in loaded if not name.startswith((here, "data:", "blob:"))]
                assert driven.run("return document.querySelector('h1').textContent")
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.skipif(bool(missing()), reason=missing())
def test_a_page_opened_from_a_file_says_that_search_needs_http(site: Path, tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as driven:
        driven.open(site / "index.html")
        note = driven.run("return document.getElementById('opened-from-file')?.textContent")
    assert "Search needs HTTP" in note


def test_no_page_advertises_the_generator(site: Path) -> None:
    assert not [page.name for page in site.rglob("*.html") if "zensical.org" in page.read_text(encoding="utf-8")]
