"""Segment rollouts: a reply in pieces is the reply, and each token keeps the log-probability it was sampled with."""

import asyncio
from dataclasses import dataclass, field

from hira.core.policy import Sampling
from hira.policies.local.engine import Sampled, SampleRequest
from hira.trainers.pipeline import Segmented
from hira.trainers.schedule import Gate


@dataclass
class Counting:
    """An engine that counts on from what stands before it, until it has said `end`; its log-probabilities are those of
    its version."""

    end: int
    version: int = 0
    asked: list[tuple[int, int | None, int | None]] = field(default_factory=list)

    @property
    def window(self) -> int:
        return 1000

    async def sample(self, request: SampleRequest) -> Sampled:
        sampling = request.sampling
        self.asked.append((len(request.prompt), sampling.max_tokens, sampling.seed))
        await asyncio.sleep(0)
        first = request.prompt[-1] + 1
        ids = tuple(range(first, min(self.end + 1, first + (sampling.max_tokens or 1000))))
        finish = "stop" if ids and ids[-1] == self.end else "length"
        return Sampled(ids, (-0.1 * (self.version + 1),) * len(ids), finish, version=self.version)  # type: ignore[arg-type]

    async def aclose(self) -> None:
        pass


async def test_segments_make_the_whole_reply() -> None:
    for segment in (1, 4, 100, None):
        engine = Counting(end=10)
        whole = await Segmented(engine, Gate(), segment).sample(SampleRequest((0,), Sampling(max_tokens=50, seed=3)))
        assert whole.ids == tuple(range(1, 11))
        assert len(whole.logprobs) == 10
        assert whole.finish == "stop"
        assert [asked for asked, _, _ in engine.asked] == list(range(1, 11, segment or 100))
        seeds = [seed for _, _, seed in engine.asked]
        assert len(set(seeds)) == len(seeds), "no segment draws what one before it drew"


async def test_between_segments_weights_change_and_tokens_keep_the_log_probabilities_they_were_sampled_with() -> None:
    engine, gate = Counting(end=6), Gate()
    task = asyncio.create_task(Segmented(engine, gate, 3).sample(SampleRequest((0,), Sampling(max_tokens=50))))
    await asyncio.sleep(0)
    await gate.close()
    engine.version = 1
    await asyncio.sleep(0.01)
    assert not task.done()
    assert len(engine.asked) == 1  # nothing is sampled behind a closed gate
    gate.open()
    whole = await task
    assert whole.logprobs == (-0.1, -0.1, -0.1, -0.2, -0.2, -0.2)
    assert whole.version == 0


async def test_prompt_and_reply_fit_in_the_window_and_a_prompt_that_fills_it_has_a_reply_of_one_token() -> None:
    for prompt, wanted, room in ((990, 50, 10), (990, 4, 4), (990, None, 10), (1000, 50, 1)):
        engine = Counting(end=9999)
        whole = await Segmented(engine, Gate(), 6).sample(SampleRequest((0,) * prompt, Sampling(max_tokens=wanted)))
        assert len(whole.ids) == room, (prompt, wanted)
        assert all(asked + (most or 0) <= max(1000, prompt + 1) for asked, most, _ in engine.asked)
    engine = Counting(end=9999)
    await Segmented(engine, Gate(), 6).sample(SampleRequest((0,) * 990, Sampling(max_tokens=50), stops=(".",)))
    assert engine.asked == [(990, 10, None)], "a stop string might span two segments"
