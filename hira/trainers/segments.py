"""Segment rollouts: a long reply is sampled in segments, between which the weights may change (UloRL, 2507.19766).

A reply that ends in its segment is trained on at once; one that does not goes on after the update with what it has as
its prefix. Each token keeps the log-probability of the weights that sampled it, which are the old policy of its update
(`Updates.old="sampler"`).
"""

from collections.abc import Sequence
from dataclasses import replace

from hira.core.policy import Sampling
from hira.policies.local.engine import Engine, Sampled, Seen
from hira.trainers.gate import Gate
from hira.trainers.seeding import seed_of


class Segmented:
    """An engine that passes a gate before each segment of at most `segment` tokens; None samples whole replies.

    With stop strings a reply is sampled whole, since one might stand across two segments.
    """

    def __init__(self, engine: Engine, gate: Gate, segment: int | None = None) -> None:
        self.engine = engine
        self.gate = gate
        self.segment = segment

    @property
    def window(self) -> int:
        return self.engine.window

    async def sample(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        stops: Sequence[str] = (),
        adapter: str | None = None,
        *,
        seen: Seen | None = None,
    ) -> Sampled:
        room = self.window - len(prompt)
        most = max(1, min(room, sampling.max_tokens or room))
        length = most if stops or self.segment is None else self.segment
        whole: Sampled | None = None
        while True:
            held = whole.ids if whole else ()
            seed = sampling.seed if sampling.seed is None or not held else seed_of(sampling.seed, len(held))
            asked = replace(sampling, max_tokens=min(length, most - len(held)), seed=seed)
            async with self.gate:
                part = await self.engine.sample((*prompt, *held), asked, stops, adapter, seen=seen)
            whole = _joined(whole, part)
            if part.finish == "stop" or len(whole.ids) >= most or not part.ids:
                return whole

    async def aclose(self) -> None:
        await self.engine.aclose()


def _joined(whole: Sampled | None, part: Sampled) -> Sampled:
    """What was sampled until now. Its version is the oldest."""
    if whole is None:
        return part
    return replace(
        part,
        ids=(*whole.ids, *part.ids),
        logprobs=(*whole.logprobs, *part.logprobs),
        version=min(whole.version, part.version),
    )
