"""`hira-train sft` behind its command line: a cold start from conversations, or from the model's own right answers."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hira.core.errors import HiraError, UsageError
from hira.policies.local.batching import BatchingEngine
from hira.policies.local.template import Template
from hira.runtime.factory import open_session
from hira.trainers import records
from hira.trainers.assembling import Plan
from hira.trainers.lessons import read_lessons
from hira.trainers.live import LivePolicy
from hira.trainers.packing import adapter_of
from hira.trainers.profile import save_adapters
from hira.trainers.reinforcing import open_weights, training_of
from hira.trainers.rows import Row
from hira.trainers.sft import Dealt, Teaching
from hira.trainers.weights import activate

Tell = Callable[[str], None]
LESSONS = "lessons.jsonl"


def learned(
    plan: Plan,
    folder: Path,
    *,
    resume: bool,
    begun: Callable[[], None] = lambda: None,
    tell: Tell,
    stepped: Callable[[Mapping[str, Any]], None],
) -> None:
    """Teach each adapter the conversations of its roles, and save it. `folder` is where files are named from; `begun`
    is called before anything is written."""
    if not (plan.configuration.sft.conversations or plan.problems):
        fix = 'write conversations = "FILE" below [sft], or train = "questions.jsonl" below [data]'
        raise UsageError("there is nothing to learn from", fix=fix)
    tokenizer, model = open_weights(plan)
    configuration = plan.configuration
    part, adapters = configuration.sft, configuration.model.adapters
    rows = _told(plan, tokenizer, folder / part.conversations, tell) if part.conversations else None
    begun()
    if rows is None:
        rows = _fitting(plan, _own(plan, tokenizer, model, tell, resume=resume), tell)
    for name in dict.fromkeys(adapters.values()):
        own = [row for row in rows if adapter_of(row.role, adapters) == name]
        if not own:
            tell(f"no conversation is of a role of the adapter {name!r}: it stays as it is")
            continue
        tell(f"adapter {name!r}: {len(own)} conversations, {sum(row.tokens for row in own):,} tokens to learn")
        activate(model, name)
        model.set_adapter(name)  # the others are not trained meanwhile
        place = plan.folder / "sft" / name
        done = last_saved(place) if resume else None
        records.cut(place / records.METRICS, int(done.name.rpartition("-")[2]) if done else -1)
        Teaching(
            model,
            tokenizer,
            Dealt(own, configuration),
            configuration,
            place,
            tell=_telling(name, stepped),
        ).train(resume_from_checkpoint=str(done) if done else None)
    save_adapters(plan, model, tokenizer)


def last_saved(place: Path) -> Path | None:
    """The newest checkpoint that transformers has finished: its state is written last."""
    found = [path.parent for path in place.glob("checkpoint-*/trainer_state.json") if _whole(path)]
    return max(found, key=lambda one: int(one.name.rpartition("-")[2]), default=None)


def _whole(state: Path) -> bool:
    try:
        return isinstance(json.loads(state.read_text(encoding="utf-8")), dict)
    except ValueError:
        return False


def _telling(name: str, stepped: Callable[[Mapping[str, Any]], None]) -> Callable[[int, float], None]:
    return lambda step, loss: stepped({"adapter": name, "step": step, "loss": loss})


def _told(plan: Plan, tokenizer: Any, file: Path, tell: Tell) -> Sequence[Row]:
    """The conversations of a file."""
    template = Template(tokenizer, where=f"model {plan.configuration.model.name!r}")
    read = read_lessons(file, template, list(plan.trained), plan.workflow.name)
    for why, many in read.left.items():
        tell(f"{many} conversations {why} are left out")
    return _fitting(plan, read.rows, tell)


def _fitting(plan: Plan, rows: Sequence[Row], tell: Tell) -> Sequence[Row]:
    """Those that are no longer than the window. Raises `UsageError` if there are none."""
    window = plan.configuration.rollouts.window
    short = [row for row in rows if row.length <= window]
    if len(short) < len(rows):
        tell(f"{len(rows) - len(short)} conversations are longer than {window:,} tokens and are left out")
    if not short:
        raise UsageError("there is no lesson", fix="name conversations of these roles, or a longer rollouts.window")
    return short


def _own(plan: Plan, tokenizer: Any, model: Any, tell: Tell, *, resume: bool) -> list[Row]:
    """The model's own best rollouts, kept in the folder: a run that goes on has the lessons that it began with."""
    kept = plan.folder / LESSONS
    if resume and kept.is_file():
        return [kept_row(one) for one in records.read(kept)]
    rows = asyncio.run(own_best(plan, tokenizer, model, tell))
    written = kept.with_suffix(".part")
    written.unlink(missing_ok=True)
    records.append(written, map(asdict, rows))
    written.replace(kept)
    return rows


def kept_row(one: Mapping[str, Any]) -> Row:
    """A row from its record: JSON has lists where a row has tuples."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in one.items()}
    return Row(**values)


async def own_best(plan: Plan, tokenizer: Any, model: Any, tell: Tell) -> list[Row]:
    """Rejection sampling: rollouts of the model as it is, of which those with reward enough are kept."""
    configuration = plan.configuration
    engine = BatchingEngine(model, Template(tokenizer))
    live = LivePolicy(configuration.model.name, tokenizer, engine, dict(configuration.model.adapters))
    team = await open_session(plan.settings, policies={"*": live}, workflow=plan.workflow)
    rollouts = training_of(plan, tokenizer, model, tell=tell).rollouts(team)
    rows: list[Row] = []
    try:
        for update in range(configuration.sft.updates):
            found = await rollouts.collect(update)
            kept = [
                one for group in found.groups for one in group.counting if (one.reward or 0) >= configuration.sft.least
            ]
            every = sum(len(group.attempts) for group in found.groups)
            tell(f"{len(kept)} of {every} rollouts earned {configuration.sft.least:g} or more")
            rows += [row for one in kept for row in one.rows if not row.overlong]
    finally:
        await team.aclose()
        await live.aclose()
    if not rows:
        raise HiraError(
            "no rollout earned enough to be learned from", fix="lower sft.least, or sample more: sft.updates"
        )
    return rows
