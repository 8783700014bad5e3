"""The session, which all runs of one `Hira` in one event loop share, and the run context that it opens for each."""

import asyncio
import json
import logging
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakSet

from hira.agents.run_context import Approve, RoleConfig, RunContext, RunOptions
from hira.agents.trajectory import Rollout
from hira.core.budget import Allowance, Budget, Limits
from hira.core.errors import UsageError
from hira.core.events import RUNS, Event, Events, Notice, Reader, RunEnded, RunStarted, TurnEnded, log_notice
from hira.core.hooks import ApproveTool
from hira.core.policy import Policy, role_of
from hira.core.tool import Context
from hira.journal import Journal, Log
from hira.policies.dialects import DIALECTS, FALLBACKS, NATIVE
from hira.policies.facts import DIALECT
from hira.runtime.registry import dialect_of
from hira.runtime.settings import Settings
from hira.runtime.toolset import QUESTION, Toolset
from hira.tools import dump_toolbox
from hira.workflows import WORKFLOWS, Workflow

if TYPE_CHECKING:
    from hira.agents.history import Earlier
    from hira.agents.output_type import OutputType
    from hira.runtime.telemetry import Telemetry

HANDED: Final = "handed"
"""Replaces objects that the program passed in a run's recorded settings."""
DIALECTS_OF = "dialects"
"""The recorded setting with the dialects in which the roles began, where they were learned."""
APPROVAL = "approval"
"""Stands among what is handed over for a person who is asked about subtasks."""
OF_QUESTION = "docs_of_question"
"""The recorded setting of a run whose question named the documents."""
HOOK = "hook "
"""Begins the name of a hook among what is handed over."""
TOOL_APPROVAL = "approval of tools"
"""The same for a person who is asked about calls of tools."""
CLOSING_SECONDS = 10.0
"""Seconds that work in progress may take to end when a `Hira` is closed."""


def make_closed_error() -> UsageError:
    return UsageError("this Hira is closed", fix="open another, or ask before the end of its `with`")


class RunInProgress(Protocol):
    """A run as its session ends it. `task` works on it, None if none does."""

    id: str
    task: asyncio.Task[Any] | None

    def cut_off(self) -> None: ...
    def list_calls(self) -> list[str]: ...


@dataclass(eq=False, slots=True)
class Runs:
    """The runs that were begun in a session and are still referenced."""

    begun: "WeakSet[RunInProgress]" = field(default_factory=WeakSet)
    is_closed: bool = False

    async def end(self, seconds: float) -> None:
        """Cancel the runs and wait at most `seconds` until they have recorded their end. A warning names the others."""
        self.is_closed = True
        own = asyncio.current_task()
        ending = {run.task: run for run in self.begun if run.task and run.task is not own}
        for run in ending.values():
            run.cut_off()
        _, late = await asyncio.wait(ending, timeout=seconds) if ending else (set(), set())
        if late:
            left = [
                " in ".join([f"run {run.id}", *map(repr, run.list_calls())]) for run in map(ending.__getitem__, late)
            ]
            text = f"closed, though this has not ended {seconds:g} seconds after it was cancelled: {'; '.join(left)}"
            logging.getLogger("hira").warning(text)


@dataclass(frozen=True, slots=True)
class Session:
    """The parts that all runs of one `Hira` in one event loop share: roles, workflow, tools, and their closing."""

    settings: Settings
    roles: Mapping[str, RoleConfig]
    """The configuration of each role; the entry `*` is for all other roles."""
    workflow: Workflow
    toolset: Toolset
    policies_to_close: tuple[Policy, ...]
    options: RunOptions = field(default_factory=RunOptions)
    """The settings that stay the same in every run."""
    journal: Journal | None = None
    """Where the runs are recorded, None for nowhere."""
    telemetry: "Telemetry | None" = None
    handed: tuple[str, ...] = ()
    """The names of the objects that a program passed in, which no settings can restore."""
    shared: Allowance | None = None
    """The budget that the runs share with others."""
    runs: Runs = field(default_factory=Runs)
    _shown: dict[str, Any] = field(default_factory=dict, repr=False)
    """The settings as they are recorded, once they were."""

    @property
    def model(self) -> str:
        """The model of the roles that are not configured by name."""
        return self.roles["*"].policy.model

    @asynccontextmanager
    async def open_context(
        self,
        run: str,
        question: str,
        files: Sequence[Path],
        readers: Sequence[Reader],
        options: RunOptions | None = None,
        log: Log | None = None,
    ) -> AsyncIterator[RunContext]:
        """A run context for one run, with the session's options unless it has its own.

        Its work folder and its processes are gone when the context is left.
        The run is recorded in `log`, and calls that it holds are not made again; without one, nothing is kept.
        """
        options, log = options or self.options, log or self.begin_log(run, is_kept=False)
        notices: list[str] = []
        events = Events(*readers, secrets=self.settings.secrets)
        events.readers.append(
            lambda event: notices.append(event.text) if isinstance(event, Notice) and not event.passing else None
        )
        if log.writer:
            events.readers.append(log.event)
        if RUNS.isEnabledFor(logging.WARNING):
            events.readers.append(partial(log_event, run))
        if self.settings.max_cost is not None:
            events.readers.append(warn_of_missing_prices(events))
        async with AsyncExitStack() as stack:
            if self.telemetry:
                events.readers.append(stack.enter_context(self.telemetry.watching()))
            stack.callback(events.readers.clear)  # who reads may hold the run, and neither would be freed at once
            budget = replace(budget_of(self.settings), shared=self.shared)
            context = Context(options.deps, run, question)
            tools = await stack.enter_async_context(self.toolset.toolbox(context, files, events, budget))
            budget.began = time.monotonic()  # the time for reading documents is not the run's
            record = Rollout(run, question, self.workflow.name, unread=tools.unread, notices=notices)
            record.began = log.began
            for call in log.known.values():
                budget.charge_role(role_of(call.conversation), call.usage)
            if self.journal and log.writer and self.settings.cache_responses:
                # prompts that show ids are to be those of the earlier run
                earlier = await asyncio.to_thread(self.journal.ids, question, log.began)
                given = {*log.sources.values()}
                record.sources.reserved.update(
                    {where: source for where, source in earlier.items() if source not in given}
                )
            record.sources.reserved.update(log.sources)
            if log.writer:
                log.tools(await dump_toolbox(tools))
            roles = in_dialects(self.roles, log.dialects) if log.dialects else self.roles
            if any("," in config.policy.model for config in roles.values()):
                roles = with_fresh_fallbacks(roles)
            if self.shared:
                stack.callback(self.shared.leave, id(budget))
            yield RunContext(roles, record, events, budget, tools, tuple(files), log, options)

    def begin_log(
        self,
        run: str,
        question: str = "",
        files: Sequence[Path] = (),
        earlier: "Earlier | None" = None,
        output: "OutputType | None" = None,
        *,
        is_kept: bool = True,
    ) -> Log:
        """The record of a new run, which is kept if there is a journal, unless `is_kept` is False."""
        # roles begin in another dialect if their models wrote nothing readable in the usual one
        configs = self.roles.items()
        learned = {role: config.facts.get(DIALECT) for role, config in configs if config.otherwise and config.facts.key}
        dialects = {role: name for role, name in learned.items() if name in DIALECTS}
        if self.journal is None or not is_kept:
            return Log(run, dialects=dialects)
        checks = self.options.verifier
        verifier = {"verifier": self.settings.verifier or checks.name} if checks else {}
        of_question = {OF_QUESTION: True} if self.settings.origin("docs") == QUESTION else {}
        record = {"verify": self.options.verify, HANDED: self.handed, **verifier, DIALECTS_OF: dialects}
        if not self._shown:
            self._shown.update(self.settings.to_json())
        settings = self.settings  # tools of other runs see the same, unless they read documents, which may change
        seen = [settings.web_searches, settings.searxng_url, sorted(settings.mcp)]
        scope = "" if settings.docs or files else json.dumps(seen)
        asked_with = {**(earlier.recorded if earlier else {}), **(output.recorded if output else {})}
        # of hira, of Python, and of the loaded packages that speak to models
        versions = {"python": sys.version.split()[0]}
        for name in ("hira", "openai", "httpx", "litellm", "xllamacpp"):
            if (version := getattr(sys.modules.get(name), "__version__", None)) is not None:
                versions[name] = version
        return self.journal.begin(
            run,
            question,
            self.workflow.name,
            settings={**self._shown, **record, **of_question, **asked_with},
            files=files,
            versions=versions,
            scope=scope,
            reuse=self.settings.cache_responses_hours * 3600 if self.settings.cache_responses else None,
        )

    async def open_session(self) -> "Session":
        """Itself, so that a run may be given a session in the place of the `Hira` that would open one."""
        return self

    async def with_docs(self, docs: tuple[Path, ...]) -> "Session":
        """The same over other documents. Raises `UsageError` for documents that are missing or empty."""
        toolset = await self.toolset.with_docs(docs)
        if toolset is self.toolset:
            return self
        return replace(self, settings=self.settings.with_values({"docs": docs}, QUESTION), toolset=toolset, _shown={})

    def beside(self, workflow: Workflow) -> "Session":
        """The same models, tools and record for another workflow, in its own dialect where none is set."""
        dialect = dialect_of(workflow)
        named = {role for role, role_settings in self.settings.roles.items() if role_settings.dialect}
        free = not self.settings.dialect
        roles = {
            role: replace(config, dialect=dialect, otherwise=config.otherwise if dialect is NATIVE else "")
            if free and role not in named
            else config
            for role, config in self.roles.items()
        }
        return replace(self, workflow=workflow, roles=roles)

    def approving(self, approve: Approve) -> "Session":
        """The same, with a person who is asked about each subtask before it is handed out.

        Raises `UsageError` for a workflow that hands out none.
        """
        if not getattr(self.workflow, "approves", False):
            able = [name for name, make in WORKFLOWS.items() if getattr(make, "approves", False)]
            what = f"the workflow {self.workflow.name!r} has no subtasks to approve"
            raise UsageError(what, fix=f"remove --approve or approve=, or use one of {', '.join(able)}")
        return replace(self, options=replace(self.options, approve=approve), handed=(*self.handed, APPROVAL))

    def with_instructions(self, instructions: str) -> "Session":
        """The same with other instructions for the roles that plan and answer."""
        settings = self.settings.with_values({"instructions": instructions}, "request")
        options = replace(self.options, instructions=instructions)
        return replace(self, settings=settings, options=options, _shown={})

    @property
    def tools_to_approve(self) -> list[str]:
        """The names of the tools that a person has to be asked about."""
        tools = (*self.toolset.extra, *(tool for several in self.toolset.scoped.values() for tool in several))
        return [tool.name for tool in tools if tool.needs_approval]

    def approving_tools(self, approve: ApproveTool) -> "Session":
        """The same, with a person who is asked before each call of a tool that needs approval."""
        if not self.tools_to_approve:
            return self
        return replace(self, options=replace(self.options, approve_tool=approve), handed=(*self.handed, TOOL_APPROVAL))

    async def aclose(self) -> None:
        """End the runs in progress, which record what they have, and close what the session opened."""
        await self.runs.end(CLOSING_SECONDS)
        if self.journal or self.telemetry:
            await asyncio.to_thread(self.close_records)
        await self.toolset.aclose()
        for policy in self.policies_to_close:
            await policy.aclose()

    def close_records(self) -> None:
        """Close the journal and send the last spans. Blocking; it needs no event loop."""
        if self.journal:
            self.journal.close()
        if self.telemetry:
            self.telemetry.close()


def with_fresh_fallbacks(roles: Mapping[str, RoleConfig]) -> Mapping[str, RoleConfig]:
    """The roles for one run: of several models for a role the first one speaks."""
    from hira.policies.fallback import Fallback  # few roles have several models

    fresh = {
        id(config.policy): config.policy.for_run() for config in roles.values() if isinstance(config.policy, Fallback)
    }
    return {role: replace(config, policy=fresh.get(id(config.policy), config.policy)) for role, config in roles.items()}


def in_dialects(roles: Mapping[str, RoleConfig], dialects: Mapping[str, str]) -> Mapping[str, RoleConfig]:
    """The roles, of which those that are named begin in these dialects."""
    return {
        role: replace(config, dialect=DIALECTS[dialects[role]], otherwise=FALLBACKS.get(dialects[role], ""))
        if dialects.get(role) in DIALECTS
        else config
        for role, config in roles.items()
    }


def budget_of(settings: Settings) -> Budget:
    """Return the limits of one run and of each of its roles."""
    roles = {
        role: Limits(given.max_tokens, given.max_cost, given.max_time, given.max_calls, given.max_subtasks)
        for role, given in settings.roles.items()
    }
    limited = {role: limits for role, limits in roles.items() if limits != Limits()}
    return Budget(settings.max_tokens, settings.max_cost, settings.max_time, settings.max_calls, limited)


def warn_of_missing_prices(events: Events) -> Reader:
    """A reader that tells, once, that a limit of money cannot be held because a call came without a price."""
    reported = False

    def read(event: Event) -> None:
        nonlocal reported
        if isinstance(event, TurnEnded) and event.usage.cost is None and not reported:
            reported = True
            text = f"the price of {event.role}'s model is unknown, so the limit in US dollars cannot be enforced"
            events(Notice(f'{text}; set it: [prices."MODEL"] in hira.toml', important=True))

    return read


def log_event(run: str, event: Event) -> None:
    """Log the start, the end and each notice of a run, such as a repeated request, without its question and answer."""
    match event:
        case RunStarted():
            models = ", ".join(dict.fromkeys(event.models.values()))
            RUNS.info("run %s started: workflow %s, model %s", run, event.workflow, models)
        case Notice():
            log_notice(run, event.text, important=event.important)
        case RunEnded(usage=usage):
            cost = "" if usage.cost is None else f", ${usage.cost:.4f}"
            calls = f"{usage.calls} calls, {usage.tokens} tokens{cost}"
            RUNS.info("run %s ended: %s, %s, %.1f s", run, event.status, calls, event.at)
