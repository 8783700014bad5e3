"""`hira report`: a report on a topic, with numbered references to its sources."""

import asyncio
import html
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import quote

from hira.api import Hira
from hira.cli import export
from hira.cli.ask import find_attached_files, finish_run, read_question, show
from hira.cli.assignments import check_options
from hira.cli.dry_run import print_bound
from hira.cli.options import AskOptions
from hira.cli.report_page import make_page, render_markdown
from hira.cli.report_sources import find_url
from hira.cli.shell import Shell
from hira.core.errors import count_of
from hira.evidence import Verdict, flag_claims
from hira.evidence.citations import find_page, find_places
from hira.evidence.references import HEADINGS, Reference, is_chinese, number_references, references
from hira.runtime.answer import Answer
from hira.tools.documents.walk import find_document

_OPEN, _CLOSE = "\ue000", "\ue001"
"""Around a number while the text is rendered. No text that is shown may hold them."""
_JOINED = "\u2060"
"""Keeps a number on the line of the word before it."""
_MARK = re.compile(f"[ \\t]*{_OPEN}(\\d+){_CLOSE}")


def as_markdown(answer: Answer) -> str:
    """Format the report with numbers in place of ids, and with the list of references at its end."""
    chinese, read = is_chinese(answer.rollout.question), answer.rollout.sources.read
    text = flag_claims(answer.text, answer.citations, chinese=chinese)
    parts = [add_title(answer, number_references(text, read))]
    lines = [
        f"{reference.number}. {export.describe_source(answer, reference.source)}"
        f"{_format_verdicts(answer, reference, chinese=chinese)}"
        for reference in references(answer.text, read)
    ]
    if lines:
        parts += [f"## {HEADINGS[chinese]}", "\n".join(lines)]
    return "\n\n".join(parts)


def as_html(answer: Answer, link: Callable[[str], str] = lambda _: "") -> str:
    """Format the report as one page. Texts of models and sources are plain text in it, without their markup, pictures
    or scripts, and its links lead only to sources of the run. `link` returns the address of a document, relative to the
    page, or nothing."""
    record, many = answer.rollout, len(answer.citations)
    chinese, listed = is_chinese(record.question), references(answer.text, record.sources.read)
    shape = f"{_OPEN}{{}}{_CLOSE}"
    bare = re.sub(f"[{_OPEN}{_CLOSE}]", "", flag_claims(answer.text, answer.citations, chinese=chinese))
    body = render_markdown(add_title(answer, number_references(bare, record.sources.read, shape)), listed)
    body = _MARK.sub(rf'{_JOINED}<sup><a href="#ref-\1">[\1]</a></sup>', body)
    checks = f"已核对 {many} 处引用" if chinese else f"{count_of(many, 'citation')} checked"
    origin = f"{record.today} · {record.workflow} · {answer.model} · {answer.status} · {checks}"
    shown = f"""<article>
{body}
</article>
<section>
<h2>{HEADINGS[chinese] if listed else ""}</h2>
<ol>
{"".join(_item(answer, citation, link, chinese=chinese) for citation in listed)}
</ol>
</section>
<footer>{html.escape(origin)}</footer>"""
    return make_page(record.question, shown)


def add_title(answer: Answer, text: str) -> str:
    """The text under a title: its own, else the topic."""
    return text if text.lstrip().startswith("# ") else f"# {export.escape_markdown(answer.rollout.question)}\n\n{text}"


def _item(answer: Answer, reference: Reference, link: Callable[[str], str], *, chinese: bool) -> str:
    source = reference.source
    title = html.escape(" ".join(source.title.split()))
    url = find_url(source) or (link(source.location) if source.kind == "file" else "")
    places = []
    for place in find_places(source.id, answer.citations):  # an address can name a page of a document, no other place
        page = find_page(place)
        places.append(_link(f"{url}#page={page}" if url and page else "", place))
    where = ", ".join(filter(None, [_link(url, source.location), "; ".join(places)]))
    verdicts = _format_verdicts(answer, reference, chinese=chinese)
    return f'<li id="ref-{reference.number}">{title} {where}<em>{verdicts}</em></li>'


def _link(url: str, text: str) -> str:
    shown = html.escape(text)
    if not url:
        return f"<span>{shown}</span>"
    return f'<a href="{html.escape(url)}" rel="noopener noreferrer nofollow">{shown}</a>'


def _link_document(paths: Sequence[Path], folder: Path, name: str) -> str:
    """Return the address of a document relative to a page in this folder, empty if the document is gone."""
    file = find_document(paths, name)
    return quote(Path(os.path.relpath(file, os.path.realpath(folder))).as_posix()) if file else ""


def _format_verdicts(answer: Answer, reference: Reference, *, chinese: bool) -> str:
    """Count the verdicts of the statements that cite a source: " (3 supported, 1 unsupported)"."""
    counts = Counter(citation.verdict for citation in answer.citations if citation.source == reference.source.id)
    lines = [f"{counts[verdict]} {verdict.label(chinese=chinese)}" for verdict in reversed(Verdict) if counts[verdict]]
    return f" ({', '.join(lines)})" if lines else ""


DEFAULT = "mams"


def report(options: AskOptions, shell: Shell) -> int:
    """Write the report. Its workflow is MaMs whatever the settings name for questions."""
    settings = shell.load_settings({"workflow": DEFAULT, **options.settings})
    check_options(options.set, [settings.workflow])
    topic = read_question(options.question, shell, "topic", "report")
    files = find_attached_files(options, shell)
    if options.dry_run:
        return print_bound(options, settings, shell)
    documents, path = (*settings.docs, *files), None
    if options.output:
        path = export.check_output_path(options.output, shell.folder, text=topic, docs=documents)
    hira = Hira(settings=settings)
    begin = partial(hira.chat().stream, topic, files=files)
    run = asyncio.run(show(hira, begin, options, shell))
    return finish_run(hira, run, ReportOutput(options, shell, path, settings.docs))


@dataclass(frozen=True, slots=True)
class ReportOutput:
    """The output of a report, with links to the documents in a page."""

    options: AskOptions
    shell: Shell
    path: Path | None = None
    docs: Sequence[Path] = ()

    def tell(self, answer: Answer) -> None:
        """Print the report as Markdown, or as JSON; of one that went to a file a line on stderr says so."""
        if self.options.json:
            self.shell.say_json(answer.json())
        elif answer.text and not self.options.output:
            self.shell.say(as_markdown(answer))
        elif answer.text and not self.options.quiet:
            many = len(references(answer.text, answer.rollout.sources.read))
            self.shell.remark(f"{self.options.output} is written, with {count_of(many, 'reference')}")

    def write(self, answer: Answer) -> None:
        """Write the report in the format of the file's suffix. Without text, write nothing."""
        if self.path:
            page: export.Form = partial(as_html, link=partial(_link_document, self.docs, self.path.parent))
            export.write(answer, self.path, as_markdown, {".txt": as_markdown, **dict.fromkeys(export.PAGES, page)})
