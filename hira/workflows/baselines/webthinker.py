"""WebThinker (2504.21776): reasoning that sends an explorer to search and click; as a report, it drafts on the way."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from hira.agents.calls import frame_source
from hira.agents.coordinator import Coordinator
from hira.agents.experts import DeepSearch
from hira.agents.loop import CALLS, Loop, ask_for_text
from hira.agents.planner import hand_out, make_workflow_tool
from hira.agents.run_context import RunContext
from hira.agents.trajectory import Subtask
from hira.core.bm25 import BM25
from hira.core.errors import BadReply, Stop
from hira.core.messages import Filled
from hira.core.policy import Usage
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize
from hira.core.tokens import clip
from hira.evidence import find_cited
from hira.policies.dialects import Call
from hira.policies.dialects.answer import strip_thought
from hira.policies.dialects.report import document
from hira.workflows.baselines.single import REASONER, begin_loop, require_search
from hira.workflows.bound import Sizes

WEBTHINKER = Prompt(__file__, "webthinker")
REPORTS = Prompt(__file__, "webthinker_report")
EXPLORE = Prompt(__file__, "webthinker_remarks", "webthinker_explore")
SECTION = Prompt(__file__, "webthinker_section")
EDIT = Prompt(__file__, "webthinker_edit")
WRITTEN = Prompt(__file__, "webthinker_remarks", "webthinker_written")
UNWRITTEN = Prompt(__file__, "webthinker_remarks", "webthinker_unwritten")
EDITED = Prompt(__file__, "webthinker_remarks", "webthinker_edited")
NO_DRAFT = Prompt(__file__, "webthinker_remarks", "webthinker_no_draft")
WRITER = "writer"
DOCUMENTS = 3
"""The most sources from which one section is written (WebThinker)."""
LONGEST = 3_000
"""Tokens of one of them that the writer is shown; beyond, the middle is cut."""


SEARCH = make_workflow_tool(
    "search",
    "have an explorer search for a query, open pages and follow links for your intent; you get what it found out",
    ["query"],
    "intent",
)
WRITE = make_workflow_tool(
    "write_section", "have a section of the report written, as its task says", ["title", "task"], pure=False
)
CHECK = make_workflow_tool("check_article", "see the outline of what is written by now", [], pure=False)
REWRITE = make_workflow_tool(
    "edit_article", "have the report changed as the instruction says", ["instruction"], pure=False
)


async def send_explorer(coordinator: Coordinator, loop: Loop, call: Call) -> str:
    query, intent = str(call.arguments["query"]), str(call.arguments.get("intent") or "")
    task = EXPLORE.fill(query=sanitize(query), intent=sanitize(intent)) if intent.strip() else query
    issued = [(call, Subtask(str(loop.calls.used), str(task)))]
    dispatch = partial(coordinator.delegate, memory=coordinator.context.rollout.memory)
    ((_, conclusion),) = await hand_out(issued, loop, dispatch, lambda finding: sanitize(finding.conclusion))
    return conclusion


@dataclass(slots=True)
class Article:
    """The draft of a report. It is the run's answer from its first section on, so that no ending loses it."""

    context: RunContext
    question: str
    text: str = ""

    async def perform(self, call: Call, loop: Loop) -> str:
        """Write, check or edit the draft, and return the reply to the role that asked for it."""
        if call.name == CHECK.name:
            return self.outline or NO_DRAFT.fill()
        if call.name == WRITE.name:
            return await self._write(str(call.arguments["title"]), str(call.arguments["task"]), str(loop.calls.used))
        return await self._edit(str(call.arguments["instruction"]), str(loop.calls.used))

    @property
    def outline(self) -> Filled:
        """The headings of the draft."""
        return sanitize("\n".join(line for line in self.text.splitlines() if line.startswith("#")))

    async def _write(self, title: str, task: str, under: str) -> str:
        prompt = SECTION.fill(
            question=sanitize(self.question),
            title=sanitize(title),
            task=sanitize(task),
            outline=self.outline,
            documents=self._documents(f"{title} {task}"),
        )
        section = await self._reply(under, prompt)
        if not section:
            return UNWRITTEN.fill(outline=self.outline)
        headed = section if section.startswith("#") else f"## {title.strip()}\n\n{section}"
        self._take(f"{self.text}\n\n{headed}" if self.text else f"# {self.question}\n\n{headed}")
        return WRITTEN.fill(outline=self.outline)

    async def _edit(self, instruction: str, under: str) -> str:
        if not self.text:
            return NO_DRAFT.fill()
        prompt = EDIT.fill(instruction=sanitize(instruction), article=sanitize(self.text))
        edited = await self._reply(under, prompt, whole=True)
        if not edited:
            return UNWRITTEN.fill(outline=self.outline)
        before = find_cited(self.text)
        self._take(edited)
        gone = [source for source in before if source not in find_cited(self.text)]
        return EDITED.fill(outline=self.outline, gone=", ".join(gone) or "none")

    async def _reply(self, under: str, prompt: Filled, *, whole: bool = False) -> str:
        """Return the writer's text, empty if that fails, or if it must be `whole` and was cut: the draft stays."""
        try:
            completion = await ask_for_text(self.context.conversation(WRITER, under), prompt)
        except (BadReply, Stop):
            return ""
        return "" if whole and completion.finish == "length" else document(strip_thought(completion))

    def _take(self, text: str) -> None:
        self.text = self.context.rollout.answer = text.strip()

    def _documents(self, about: str) -> Filled:
        """Return the sources that are most relevant to the section, as passages with their ids."""
        sources = list(self.context.rollout.sources.read.values())
        best = BM25([f"{source.title} {source.evidence}" for source in sources]).best(about, DOCUMENTS)
        shown = [
            frame_source(source, clip(source.evidence, LONGEST, middle=True))
            for source in (sources[index] for index in best)
        ]
        return Filled("\n\n".join(shown))


@dataclass(frozen=True)
class WebThinker:
    """`searches` of a question at most (the published code: 20), each explored with 10 calls; with `report`, at most so
    many `interactions` of all kinds (the published code: 80), and the answer is the report."""

    roles: ClassVar[frozenset[str]] = frozenset({REASONER, DeepSearch.name, WRITER})
    takes_tools: ClassVar[frozenset[str]] = frozenset()
    approves: ClassVar[bool] = True

    searches: int = 20
    report: bool = False
    interactions: int = 80
    name: str = "webthinker"

    async def run(self, question: str, context: RunContext) -> str:
        require_search(context)
        explorer = Coordinator(context, [DeepSearch()], transfer=False, remember=False)
        article = Article(context, question)
        tools = [SEARCH, WRITE, CHECK, REWRITE] if self.report else [SEARCH]
        limit = self.interactions if self.report else self.searches
        loop = begin_loop(context, REPORTS if self.report else WEBTHINKER, tools, question, limit=limit)

        async def perform(call: Call) -> str:
            return await (
                send_explorer(explorer, loop, call) if call.name == SEARCH.name else article.perform(call, loop)
            )

        step = await loop.run(perform)
        return article.text or step.answer

    def bound(self, sizes: Sizes) -> Mapping[str, Usage]:
        limit = self.interactions if self.report else self.searches
        rows = {
            REASONER: sizes.bound_loop(limit, sizes.reply),
            DeepSearch.name: sizes.bound_loop(CALLS, sizes.result).times(limit),
        }
        if self.report:
            written = Usage(1, sizes.prompt + DOCUMENTS * LONGEST + limit * sizes.reply, limit * sizes.reply)
            rows[WRITER] = written.times(limit)
        return rows
