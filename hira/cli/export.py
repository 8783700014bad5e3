"""Answers as files, which are never half-written: text, Markdown, JSON, documents and bibliographies."""

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from hira.cli.missing import what_is_missing
from hira.cli.output import text
from hira.cli.shell import format_json, visible
from hira.core.errors import HiraError, UsageError
from hira.core.files import replace_file
from hira.evidence import Source
from hira.evidence.citations import locate
from hira.evidence.references import references
from hira.runtime.answer import Answer
from hira.tools.documents.own_files import MARK

Form = Callable[[Answer], str]
_PLAIN: Mapping[str, Form] = {".txt": text}
_PACKAGES = {".docx": ("docx", "python-docx"), ".pdf": ("typst", "typst")}
"""The module and the package that write a kind of file."""
PAGES = (".html", ".htm")
SUFFIXES = (".md", ".json", *PAGES, ".docx", ".pdf", ".bib", ".ris", ".txt")
_ACTING = re.compile(r"([\\`*_{}\[\]<>#|!])")


def markdown(answer: Answer) -> str:
    """Return a page: the question, the answer, its sources and the quoted passages."""
    parts = [f"# {escape_markdown(answer.rollout.question)}", answer.flagged]
    if answer.status in ("unverified", "insufficient_evidence"):
        parts.append(f"*{what_is_missing(answer, searched=True).what}*")
    sources = [f"- [{source.id}] {describe_source(answer, source)}" for source in answer.cited]
    quotes = []
    for citation in answer.citations:
        if citation.quote:
            where = ", ".join(filter(None, (citation.source, escape_markdown(citation.place))))
            quotes.append(f"- [{where}] {citation.flag()}: “{escape_markdown(citation.quote)}”")
    for title, lines in (("Sources", sources), ("Evidence", quotes)):
        if lines:
            parts += [f"## {title}", "\n".join(lines)]
    return "\n\n".join(parts)


def describe_source(answer: Answer, source: Source) -> str:
    """Format a source in Markdown: its title, its location, and where in it the cited passages are."""
    from hira.cli.report_sources import find_url

    place = f"<{find_url(source)}>" if find_url(source) else escape_markdown(locate(source, answer.citations))
    return " — ".join(filter(None, (escape_markdown(source.title), place)))


def escape_markdown(text: str) -> str:
    """Return a text on one line, with no markup of Markdown in it."""
    return _ACTING.sub(r"\\\1", " ".join(text.split()))


def _render(suffix: str, answer: Answer, markdown: Form = markdown) -> str | bytes:
    """Render the answer in a format, from its Markdown or its JSON, with a module that most commands do without."""
    match suffix:
        case ".json":
            return format_json(answer.json())
        case ".html" | ".htm":
            from hira.cli.report_page import make_page, render_markdown

            listed = references(answer.text, answer.rollout.sources.read)
            return make_page(answer.rollout.question, render_markdown(markdown(answer), listed))
        case ".docx":
            from hira.cli.report_word import render_word

            return render_word(markdown(answer))
        case ".pdf":
            from hira.cli.report_pdf import render_pdf

            return render_pdf(markdown(answer))
        case ".bib" | ".ris":
            from hira.cli.report_sources import format_bibtex, format_ris, list_entries

            return "\n\n".join(map(format_bibtex if suffix == ".bib" else format_ris, list_entries(answer)))
    return markdown(answer)


def check_output_path(
    name: str, folder: Path, suffixes: Sequence[str] = SUFFIXES, text: str = "", docs: Iterable[Path] = ()
) -> Path:
    """Return the path of `--output`. Raises `UsageError` for an unknown suffix, a missing package or folder, one that
    cannot be written, one of the documents (`docs`) that hira did not write itself, or a PDF for which no font has the
    letters of the `text`, before any work starts."""
    path = (folder / name).absolute()
    if path.suffix.lower() not in suffixes:
        raise UsageError(f"--output {name}: unknown kind of file {path.suffix!r}", fix=f"use {', '.join(suffixes)}")
    module, package = _PACKAGES.get(path.suffix.lower(), ("", ""))
    if module and find_spec(module) is None:
        raise UsageError(f"--output {name} needs {package}", fix="pip install 'hira[export]'")
    if not path.parent.is_dir():
        raise UsageError(f"--output {name}: there is no folder {path.parent}", fix="create it, or name another")
    if (taken := path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK):
        kind = "a folder" if path.is_dir() else "not a regular file"
        what = f"it is {kind}" if taken else f"you may not write to the folder {path.parent}"
        raise UsageError(f"--output {name}: {what}", fix="name another file")
    if path.exists() and any(path.resolve().is_relative_to(doc.resolve()) for doc in docs) and not _is_own(path):
        raise UsageError(f"--output {name}: it is one of the documents", fix="name another file")
    if path.suffix.lower() == ".pdf":
        from hira.cli.report_pdf import render_pdf

        render_pdf(escape_markdown(text))
    return path


def _is_own(path: Path) -> bool:
    """Return whether hira wrote a file."""
    from hira.tools.documents.reader import read_passages  # most answers have no file yet
    from hira.tools.opening import ReadingChild, open_regular

    try:
        with ReadingChild() as child, open_regular(path) as file:
            return read_passages(child, file).is_own
    except HiraError:
        return False


def write(answer: Answer, path: Path, markdown: Form = markdown, forms: Mapping[str, Form] = _PLAIN) -> None:
    """Write the answer in the format of the file's suffix, with its function in `forms` or from the Markdown. Without
    text, write nothing."""
    if answer.text:
        suffix = path.suffix.lower()
        content = forms[suffix](answer) if suffix in forms else _render(suffix, answer, markdown)
        mark = f"\n{MARK}\n" if suffix == ".md" else ""
        write_file(path, content if isinstance(content, bytes) else f"{visible(content)}\n{mark}")


def write_file(path: Path, content: str | bytes) -> None:
    """Replace the contents of a file as `replace_file` does. Raises `UsageError` where it cannot be written."""
    try:
        replace_file(path, [content if isinstance(content, bytes) else content.encode()])
    except OSError as error:
        fix = "make room or name another file; `hira show last` prints the answer of the last recorded run"
        raise UsageError(f"the file could not be written: {error}", where=f"to {path}", fix=fix) from None
