"""The tools of runs: what they share (an index, search services) and what each has alone (a folder, files, Python)."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hira.errors import UsageError
from hira.events import Events, Notice
from hira.settings import SEARCH_KEYS, Settings
from hira.tools import Tool, Toolbox
from hira.tools.documents import Index, browse_documents, search_documents
from hira.tools.documents.walk import walk
from hira.tools.files import files_tool
from hira.tools.media import media_reader
from hira.tools.python import open_python, refusal

TELL_EVERY = 2.0


@dataclass(slots=True)
class Workbench:
    """What runs share. `notices` are told once, in the first run."""

    settings: Settings
    index: Index | None
    search: Tool | None
    browse: Tool | None
    extra: tuple[Tool, ...]
    stack: AsyncExitStack
    notices: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def toolbox(self, run: str, files: Sequence[Path], events: Events) -> AsyncIterator[Toolbox]:
        """The tools of one run; its work folder is removed with everything in it when the context is left."""
        if self.index:
            await self.index.refresh(_progress(events))
            self.notices += self.index.warnings
            if not await self.index.names():
                raise UsageError("the documents hold no text", where=_named(self.index.paths), fix="name others")
        while self.notices:
            events(Notice(self.notices.pop(0)))
        with tempfile.TemporaryDirectory(prefix=f"hira-{run}-", ignore_cleanup_errors=True) as folder:
            mode = self.settings.sandbox
            readable = tuple(path.expanduser().resolve() for path in (*self.settings.docs, *files))
            yield Toolbox(
                search=self.search,
                browse=self.browse,
                files=files_tool(files) if files else None,
                python=None if refusal(mode) else open_python(Path(folder), readable=readable, sandbox=mode),
                media=media_reader((*readable, Path(folder))),
                extra=self.extra,
            )

    async def aclose(self) -> None:
        await self.stack.aclose()


async def workbench(settings: Settings, extra: Sequence[Tool] = ()) -> Workbench:
    """Lay out the tools. Raises `UsageError` for documents that are missing or hold nothing to read."""
    stack = AsyncExitStack()
    index = None
    if settings.docs:
        if not await asyncio.to_thread(lambda: walk(settings.docs).files):
            fix = "name a folder that holds documents"
            raise UsageError("no readable documents were found", where=_named(settings.docs), fix=fix)
        index = Index(settings.docs, settings.cache)
        stack.callback(index.close)
    notices = [*settings.withheld, *([why] if (why := refusal(settings.sandbox)) else [])]
    search = search_documents(index) if index else None
    browse = browse_documents(index) if index else None
    return Workbench(settings, index, search, browse, tuple(extra), stack, notices)


def web_searches(settings: Settings) -> tuple[str, ...]:
    """The web searches to ask: the one that is named, else, unless there are documents, the first with a key."""
    if settings.search:
        return tuple(name.strip() for name in settings.search.split(",") if name.strip())
    if settings.docs:
        return ()
    keyed = next((name for name in SEARCH_KEYS if name in settings.search_keys), "")
    return (keyed,) if keyed else ("searxng",) if settings.searxng_url else ()


def _named(paths: Sequence[Path]) -> str:
    return "in " + ", ".join(map(str, paths))


def _progress(events: Events) -> Callable[[int, int], None]:
    """Tells now and then how far the reading of documents is; called in the index's thread."""
    loop = asyncio.get_running_loop()
    last = time.monotonic()

    def told(done: int, total: int) -> None:
        nonlocal last
        if time.monotonic() - last >= TELL_EVERY:
            last = time.monotonic()
            loop.call_soon_threadsafe(events, Notice(f"reading documents: {done} of {total}"))

    return told
