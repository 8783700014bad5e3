"""`hira-train curate`: filter, generate or rewrite questions for training."""

import argparse
import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

from hira.agents.run_context import RunContext
from hira.agents.trajectory import Rollout
from hira.cli import OK, PARTIAL
from hira.cli.parser import collect_flags
from hira.cli.shell import Shell
from hira.core.errors import DialectError, EndpointError, UsageError
from hira.evaluation.data import Selection, load
from hira.evaluation.files import Item
from hira.evaluation.scorers import open_judge, scorer_of
from hira.runtime.settings import Settings
from hira.runtime.settings import load as load_settings
from hira.trainers.curation.filters import Challenge, Stage
from hira.trainers.curation.generation import MADE, facts_of, generate, paths, rewrite_query, write_question
from hira.trainers.curation.pipeline import CURATED, FUNNEL, Curating, Curation, write_funnel
from hira.trainers.records import count_of

LOCAL = frozenset({"duplicates"})
"""Stages that ask no model."""


def curate(args: argparse.Namespace, shell: Shell) -> int:
    settings = load_settings(collect_flags(args), shell.environ, shell.folder, shell.home)
    folder = shell.folder / (args.output or Path("curation") / Path(args.data).stem)
    if args.from_graph is not None:
        return asyncio.run(_from_graph(args, shell, settings, folder))
    columns = dict(map(_pair, args.column))
    data = load(args.data, Selection(limit=args.limit, columns=columns), shell.folder)
    if args.rewrite:
        return asyncio.run(_rewrite(args, shell, settings, folder, data.items))
    if data.docs and not (args.docs or args.search):
        settings = settings.with_values({"docs": data.docs, "search": ""}, f"the documents of {data.name}")
    fewest, most = _range(args.keep, "--keep")
    workflow = args.workflow or "mars"
    args.metric = args.metric or ("hle" if args.judge else "match")
    challenge = Challenge(args.attempts, fewest, most, workflow, args.metric, args.concurrency)
    stages: tuple[Stage, ...] = tuple(part.strip() for part in args.stages.split(","))
    curating = Curating(data.name, data.items, stages, args.similarity, challenge, args.concurrency)
    return asyncio.run(_curate(curating, args, shell, settings, folder))


async def _curate(curating: Curating, args: argparse.Namespace, shell: Shell, settings: Settings, folder: Path) -> int:
    stages = set(curating.stages)
    async with AsyncExitStack() as stack:
        context = score = None
        if stages - LOCAL - {"challenge"}:
            context = await stack.enter_async_context(open_judge(settings, args.judge))
        if "challenge" in stages:
            words = args.metric in ("match", "em", "numeric")
            judge = None if words else args.judge
            score = await stack.enter_async_context(scorer_of(args.metric, settings, judge))
        curation = Curation(curating, folder, context, settings, score, shell.tell)
        await curation.run()
    shell.say(write_funnel(curation))
    shell.tell(f"wrote the questions to {folder / CURATED}, the tables to {folder / FUNNEL}")
    open_ = sum(len(stage.undecided) for stage in curation.passed)
    if open_:
        shell.tell(f"{count_of(open_, 'decision')} could not be made; run the same command to try again")
    return PARTIAL if open_ else OK


async def _from_graph(args: argparse.Namespace, shell: Shell, settings: Settings, folder: Path) -> int:
    least, most = _range(args.hops, "--hops")
    chains = paths(facts_of(shell.folder / args.data), args.from_graph, least, most, seed=args.seed)
    if len(chains) < args.from_graph:
        shell.tell(f"the graph has only {count_of(len(chains), 'chain')} of {args.hops} facts")
    plan = {"graph": args.data, "many": args.from_graph, "hops": args.hops, "seed": args.seed}
    named = {f"{args.seed}-{number}": chain for number, chain in enumerate(chains, 1)}

    async def write(name: str, context: RunContext) -> Item | None:
        return await write_question(context.conversation("writer"), name, named[name])

    return await _generate(args, shell, settings, folder, plan, list(named), write)


async def _rewrite(
    args: argparse.Namespace, shell: Shell, settings: Settings, folder: Path, items: tuple[Item, ...]
) -> int:
    by = {item.id: item for item in items}

    async def rewrite(name: str, context: RunContext) -> Item | None:
        item = by[name]
        try:
            query = await rewrite_query(context.conversation("writer"), item.question)
        except (DialectError, EndpointError) as error:
            shell.tell(f"{name} is not rewritten: {error.what}")
            return None
        return replace(item, question=query, meta={**item.meta, "original": item.question})

    return await _generate(args, shell, settings, folder, {"rewritten": args.data}, list(by), rewrite)


async def _generate(
    args: argparse.Namespace,
    shell: Shell,
    settings: Settings,
    folder: Path,
    plan: Mapping[str, Any],
    names: Sequence[str],
    make: Callable[[str, RunContext], Awaitable[Item | None]],
) -> int:
    lost = 0
    async with open_judge(settings, args.judge or args.model) as context:

        async def make_item(name: str) -> Item | None:
            return await make(name, RunContext(context.roles, Rollout("", name, "curation"), budget=context.budget))

        async with aclosing(generate(folder, plan, names, make_item, args.concurrency)) as items:
            async for _, item in items:
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


def _pair(text: str) -> tuple[str, str]:
    part, equals, name = text.partition("=")
    if not (part and equals and name):
        raise UsageError(f"--column {text!r} does not name a column", fix="write --column question=NAME")
    return part, name
