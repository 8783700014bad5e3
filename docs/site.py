"""Builds the documentation's site from these pages: `pip install '.[docs]' && python docs/site.py`.

Strict: a link or an anchor that leads nowhere, a page that no menu leads to, and a built page that would ask anything
of another host are errors. Nothing is fetched. Links to files outside docs/ lead to the repository that this clone came
from; where that is unknown, their paths are named.
"""

# ruff: noqa: INP001 - a program of its own, in no package

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from links import find_repository

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
OUTSIDE = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s]+|decisions)\)")
FENCE = re.compile(r"^(```\w*) [^\n`]+$", re.MULTILINE)
LOADED = re.compile(r"""<(?:script|img|iframe|source|audio|video|embed)\b[^>]*?\ssrc=["']?(?:https?:)?//"""
                    r"""|<link\b(?=[^>]*\brel=["']?(?:stylesheet|preconnect|icon|preload|modulepreload))[^>]*?href=["']?(?:https?:)?//"""
                    r"""|url\(["']?(?:https?:)?//|@import\s+["'](?:https?:)?//""")  # fmt: skip


def prepare_page(page: Path, text: str, repository: str) -> str:
    """The page as the site has it: without the marks of the tests, with links that work there, and with its hero."""

    def lead_outside(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        if link[2] != "decisions" and target.is_relative_to(DOCS):
            return link[0]
        label, path = link[1].replace("\\_", "_"), target.relative_to(ROOT).as_posix()
        if repository:
            return f"[{label}]({repository}/{'tree' if target.is_dir() else 'blob'}/HEAD/{path})"
        return f"`{path}`" if label.strip("`") in (path, Path(path).name) else f"{label} (`{path}`)"

    if not repository:
        text = text.replace(" · [Repository](../README.md)", "")
    text = re.sub(r"(?s)^# hira\n\n<!-- hero -->(.*?)<!-- end of hero -->", _hero, text)
    return OUTSIDE.sub(lead_outside, FENCE.sub(r"\1", text))


def _hero(match: re.Match[str]) -> str:
    inner = match[1].strip().replace(" · ", " ")
    return f'---\nhide: [toc]\n---\n\n<div class="hero" markdown>\n\n# hira\n\n{inner}\n\n</div>'


def copy_pages(to: Path, repository: str) -> None:
    for path in sorted(DOCS.rglob("*")):
        if path.suffix in (".md", ".png", ".svg", ".js", ".css"):
            target = to / path.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".md":
                text = prepare_page(path, path.read_text(encoding="utf-8"), repository)
                target.write_text(text, encoding="utf-8")
            else:
                shutil.copyfile(path, target)
    shutil.copyfile(ROOT / "hira" / "core" / "palette.css", to / "palette.css")


def build_site(out: Path) -> None:
    """Build into `out`. Raises `SystemExit` with what is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        repository = find_repository()
        copy_pages(work / "docs", repository)
        settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
        if repository:  # a link and not `repo_url`, for which the theme would ask the repository's host for its stars
            settings = f"{settings.rstrip()}\n  - Repository: {json.dumps(repository)}\n"
        (work / "mkdocs.yml").write_text(settings.replace("paths: [.]", f"paths: [{ROOT}]"), encoding="utf-8")
        if lost := [path.name for path in (work / "docs").rglob("*.md")
                    if path.relative_to(work / "docs").as_posix() not in settings]:  # fmt: skip
            raise SystemExit(f"no menu of mkdocs.yml leads to {', '.join(lost)}")
        command = [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "-f", str(work / "mkdocs.yml")]
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        if done.returncode:
            raise SystemExit(f"{done.stdout}\n{done.stderr}")
        asking = [f"{page.name}: {found[0][:120]}" for page in (work / "site").rglob("*")
                  if page.suffix in (".html", ".css")
                  for found in [LOADED.search(page.read_text(encoding="utf-8"))] if found]  # fmt: skip
        if asking:
            raise SystemExit("the site would ask other hosts:\n" + "\n".join(asking))
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(work / "site", out)


def main() -> None:
    flags = argparse.ArgumentParser(description="Build the documentation's site.")
    flags.add_argument("-o", "--output", default="site", help="output folder, replaced if it exists (site)")
    out = Path(flags.parse_args().output).resolve()
    build_site(out)
    sys.stdout.write(f"{out}/index.html: {len(list(out.rglob('*.html')))} pages\n")


if __name__ == "__main__":
    main()
