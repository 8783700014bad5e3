"""How MarsRL's rollouts are made in a training run: step after step, or in the pipeline (`hira.trainers.agentic`)."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hira.policies.local.engine import Engine
from hira.trainers.agentic import Agentic
from hira.trainers.gate import Gate
from hira.trainers.pipelined import PipelinedCollector
from hira.trainers.rollouts import Collector, Rollouts
from hira.trainers.sampling import Strategy
from hira.trainers.schedule import Limits
from hira.trainers.segments import Segmented

if TYPE_CHECKING:
    from hira.policies.local.batching import BatchingEngine
    from hira.trainers.served import ServedEngine


@dataclass(frozen=True, slots=True)
class Stages:
    """`picks` outputs of a step go on, chosen by the `strategy`; `roles` are trained, None for all; `search` shows them
    what is found for the question.

    Without `limits` an update takes all steps of its problems; with them updates are made in the pipeline, of replies
    in segments of at most `segment` tokens, None for whole ones.
    """

    picks: int = 2
    strategy: Strategy = "adaptive"
    roles: frozenset[str] | None = None
    search: bool = True
    limits: Limits | None = None
    segment: int | None = None

    def sampling(self, engine: "BatchingEngine | ServedEngine", gate: Gate) -> Engine:
        """The engine as the policy samples with it."""
        return Segmented(engine, gate, self.segment) if self.limits else engine

    def collector(
        self,
        runner: asyncio.Runner,
        rollouts: Rollouts,
        engine: "BatchingEngine | ServedEngine",
        gate: Gate,
        folder: Path,
    ) -> Collector | PipelinedCollector:
        agentic = Agentic(rollouts, self.picks, self.strategy, self.roles, self.search)
        if self.limits is None:
            return Collector(runner, agentic, engine.paused)
        return PipelinedCollector(runner, agentic, self.limits, gate, folder, paused=engine.paused)
