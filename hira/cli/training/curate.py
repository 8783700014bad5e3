"""`hira-train curate`: filter, generate or rewrite questions for training."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.cli import OK, PARTIAL
from hira.cli.shell import Shell
from hira.core.errors import DialectError, EndpointError, UsageError, count_of
from hira.evaluation.data import Selection, load
from hira.evaluation.files import Item
from hira.evaluation.scorers import open_judge, scorer_of
from hira.runtime.settings import Settings
from hira.trainers.curation.filters import Challenge
from hira.trainers.curation.generation import MADE, facts_of, generate, paths, rewrite_query, write_question
from hira.trainers.curation.pipeline import CURATED, FUNNEL, Curating, Curation, write_funnel

LOCAL = frozenset({"duplicates"})
"""Stages that ask no model."""


@dataclass(frozen=True, slots=True)
class CurateOptions:
    settings: Mapping[str, Any]
    data: str
    """Questions, or a graph with `from_graph`."""
    stages: str
    similarity: float
    attempts: int
    keep: str
    """How many attempts must be right, as LEAST-MOST."""
    hops: str
    """The number of facts of a chain, as LEAST-MOST."""
    seed: int
    concurrency: int
    output: str = ""
    limit: int | None = None
    column: tuple[tuple[str, str], ...] = ()
    metric: str = ""
    judge: str | None = None
    from_graph: int | None = None
    rewrite: bool = False


def curate(options: CurateOptions, shell: Shell) -> int:
    try:
        settings = shell.load_settings(options.settings)
        folder = shell.folder / (options.output or Path("curation") / Path(options.data).stem)
        if options.from_graph is not None:
            generation = _walk_graph(options.from_graph, options, shell)
            return asyncio.run(_generate(generation, options, shell, settings, folder))
        data = load(options.data, Selection(limit=options.limit, columns=dict(options.column)), shell.folder)
        if options.rewrite:
            return asyncio.run(_generate(_rewrite(data.items, options, shell), options, shell, settings, folder))
        if data.docs and not (options.settings.get("docs") or options.settings.get("search")):
            settings = settings.with_values({"docs": data.docs, "search": ""}, f"the documents of {data.name}")
        fewest, most = _range(options.keep, "--keep")
        workflow = options.settings.get("workflow") or "mars"
        metric = options.metric or ("hle" if options.judge else "match")
        challenge = Challenge(options.attempts, fewest, most, workflow, metric, options.concurrency)
        stages: Any = tuple(part.strip() for part in options.stages.split(","))  # `Curating` checks them
        curating = Curating(data.name, data.items, stages, options.similarity, challenge, options.concurrency)
        return asyncio.run(_curate(curating, options, shell, settings, folder))
    except KeyboardInterrupt as interruption:
        interruption.add_note("the same command resumes: it keeps the decisions in its folder")
        raise


async def _curate(curating: Curating, options: CurateOptions, shell: Shell, settings: Settings, folder: Path) -> int:
    stages = set(curating.stages)
    async with AsyncExitStack() as stack:
        context = score = None
        if stages - LOCAL - {"challenge"}:
            context = await stack.enter_async_context(open_judge(settings, options.judge))
        if "challenge" in stages:
            metric = curating.challenge.metric
            judge = None if metric in ("match", "em", "numeric") else options.judge
            score = await stack.enter_async_context(scorer_of(metric, settings, judge))
        curation = Curation(curating, folder, context, settings, score, shell.tell)
        await curation.run()
    shell.say(write_funnel(curation))
    shell.tell(f"wrote the questions to {folder / CURATED}, the tables to {folder / FUNNEL}")
    open_ = sum(len(stage.undecided) for stage in curation.passed)
    if open_:
        shell.tell(f"{count_of(open_, 'decision')} could not be made; run the same command to try again")
    return PARTIAL if open_ else OK


Generation = tuple[Mapping[str, Any], Sequence[str], Callable[[str, RunContext], Awaitable[Item | None]]]
"""New questions: the plan that identifies them, their names, and the function that makes each of them."""


def _walk_graph(many: int, options: CurateOptions, shell: Shell) -> Generation:
    least, most = _range(options.hops, "--hops")
    chains = paths(facts_of(shell.folder / options.data), many, least, most, seed=options.seed)
    if len(chains) < many:
        shell.tell(f"the graph has only {count_of(len(chains), 'chain')} of {options.hops} facts")
    plan = {"graph": options.data, "many": many, "hops": options.hops, "seed": options.seed}
    named = {f"{options.seed}-{number}": chain for number, chain in enumerate(chains, 1)}

    async def write(name: str, context: RunContext) -> Item | None:
        return await write_question(context.conversation("writer"), name, named[name])

    return plan, list(named), write


def _rewrite(items: Sequence[Item], options: CurateOptions, shell: Shell) -> Generation:
    by = {item.id: item for item in items}

    async def rewrite(name: str, context: RunContext) -> Item | None:
        item = by[name]
        try:
            query = await rewrite_query(context.conversation("writer"), item.question)
        except (DialectError, EndpointError) as error:
            shell.tell(f"{name} is not rewritten: {error.what}")
            return None
        return replace(item, question=query, meta={**item.meta, "original": item.question})

    return {"rewritten": options.data}, list(by), rewrite


async def _generate(
    generation: Generation, options: CurateOptions, shell: Shell, settings: Settings, folder: Path
) -> int:
    plan, names, make = generation
    lost = 0
    async with open_judge(settings, options.judge or options.settings.get("model")) as context:

        def make_one(name: str) -> Awaitable[Item | None]:
            return make(name, RunContext(context.roles, Rollout("", name, "curation"), budget=context.budget))

        items = generate(folder, plan, names, make_one, options.concurrency)
        async with aclosing(items):
            async for item in items:
                lost += item is None
    shell.say(str(folder / MADE))
    if lost:
        shell.tell(f"{lost} of {len(names)} could not be made; run the same command to try again")
    return PARTIAL if lost else OK


def _range(text: str, flag: str) -> tuple[int, int]:
    low, _, high = text.partition("-")
    if not (low.isdigit() and (high or low).isdigit()):
        raise UsageError(f"{flag} {text!r} is not a range", fix=f"write {flag} 1-12")
    return int(low), int(high or low)
