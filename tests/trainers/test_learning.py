"""Rollouts, credit and updates together, with real sampling: two roles learn, and a stopped run goes on as it was."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl")

from tiny import model, tokenizer

from hira.agents.run_context import RoleConfig, RunContext
from hira.agents.trajectory import Rollout
from hira.core.events import Events, Reader
from hira.core.messages import user
from hira.core.policy import Sampling
from hira.evaluation.rewards.answers import Score
from hira.policies.dialects import DIALECTS
from hira.policies.local.batching import BatchingEngine
from hira.policies.local.template import Template
from hira.trainers import records
from hira.trainers.configuration import Configuration, ModelConfig, RolloutConfig, TrainConfig
from hira.trainers.credit import matpo
from hira.trainers.engines import LivePolicy
from hira.trainers.grpo import RoleTrainer
from hira.trainers.rollouts import Collector, Problem, Rollouts
from hira.trainers.rows import Collected

pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.heavy]
ADAPTERS = {"planner": "one", "*": "two"}
PROBLEMS = [Problem(str(at), f"w{at + 10} w{at + 20}", ("w5",)) for at in range(4)]


@dataclass(frozen=True)
class Pair:
    """A planner that speaks, and a worker that is told what it said."""

    name: str = "pair"

    async def run(self, question: str, context: RunContext) -> str:
        said = await context.conversation("planner").reply(user(question))
        return f"{said} {await context.conversation('worker', '1').reply(user(said or question))}"


async def fives(rollout: Rollout, references: tuple[str, ...]) -> Score:
    words = Counter(rollout.answer.split())
    return Score(words[references[0]] / max(1, words.total()))


def learned(
    folder: Path,
    made: Any,
    *,
    steps: int,
    resume: bool = False,
    stop: int = 1000,
    problems: Sequence[Problem] = PROBLEMS,
) -> list[dict[str, Any]]:
    """A run of so many steps, or until the update `stop`; what was told of each."""
    words = tokenizer()
    words.chat_template = "{% for message in messages %}{{ message.content }} {% endfor %}"
    engine = BatchingEngine(made, Template(words), seed=0)
    live = LivePolicy("tiny", words, engine, ADAPTERS)
    part = RoleConfig(live, Sampling(max_tokens=6), DIALECTS["tags"])

    @asynccontextmanager
    async def opened(run: str, problem: Problem, reader: Reader) -> AsyncIterator[RunContext]:
        yield RunContext({"*": part}, Rollout(run, problem.question, "pair"), Events(reader))

    with asyncio.Runner() as runner:
        rollouts = Rollouts(opened, Pair(), problems, fives, config=RolloutConfig(questions=4, attempts=8))
        collector = Collector(runner, rollouts, engine.paused)

        def collect(update: int) -> Collected:
            if update == stop:
                raise KeyboardInterrupt
            return collector(update)

        train = TrainConfig(steps=steps, lr=0.02, save_every=3, checkpointing=False, keep=5)
        whole = Configuration(model=ModelConfig(adapters=ADAPTERS, bits=32), train=train)
        run = RoleTrainer(made, words, whole, collect, matpo, folder, updated=engine.updated)
        run.run(resume=resume)
    return [one for one in records.read(folder / records.METRICS) if "reward" in one]


def test_two_roles_with_an_adapter_each_learn_what_is_rewarded(tmp_path: Path) -> None:
    told = learned(tmp_path, model(("one", "two"), fresh=True), steps=25)
    before, after = (sum(one["reward"] for one in part) / 3 for part in (told[:3], told[-3:]))
    assert before < 0.15
    assert after > before + 0.3
    for one in told:
        assert one.get("planner/sampler_drift", 0.0) < 1e-4  # once all is learned, no group has a signal
        assert one.get("worker/sampler_drift", 0.0) < 1e-4
        assert one["row_breaks"] == one["rows_dropped"] == one["infra_failed"] == 0


def test_a_prompt_that_is_longer_than_the_window_is_the_agents_failure(tmp_path: Path) -> None:
    long = Problem("long", "w10 " * 300, ("w5",))
    (told,) = learned(tmp_path, model(("one", "two"), fresh=True), steps=1, problems=[*PROBLEMS[:3], long])
    assert told["agent_failed"] == 0.25
    assert told["infra_failed"] == 0.0
    failed = [one for one in records.read(tmp_path / records.ROLLOUTS) if one["status"] == "agent_failed"]
    assert all("window" in one["error"] and one["reward"] == 0.0 for one in failed)
