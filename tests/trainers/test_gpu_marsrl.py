"""What a GPU is given to measure of MarsRL, in miniature: the programs of benchmarks/training."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hira.core.messages import user
from hira.core.policy import Completion, Request, Watch

FOLDER = Path(__file__).parents[2] / "benchmarks" / "training"
RUN: dict[str, Any] = {
    "load": {"questions": 8, "attempts": 8, "places": 64, "scale": 200, "seconds": 120.0, "steps": 12},
    "trained_tokens_per_second_from_the_start": 90.0,
    "updates_per_minute": 2.0,
    "updates": 4,
    "tokens_an_update": 3000.0,
    "rollout_seconds": 20.0,
    "update_seconds": 5.0,
    "tokens_a_step": 9.0,
    "staleness": 0.5,
    "staleness_most": 2,
    "staleness_bound": 4,
    "decoding_in_rollouts": 0.9,
    "decoding_in_updates": None,
    "steps_in_updates": 0,
    "waiting_for_the_last": 0.1,
    "rollout_peak_gib": 3.0,
    "update_peak_gib": 0.0,
    "sampler_drift": 0.01,
    "infra_failed": 0.0,
}


@pytest.fixture(autouse=True)
def programs() -> Iterator[None]:
    sys.path.insert(0, str(FOLDER))
    yield
    sys.path.remove(str(FOLDER))
    for name in ("gpu_table", "gpu_marsrl", "course", "workload"):
        sys.modules.pop(name, None)


def page(**rates: float) -> str:
    from gpu_table import table  # type: ignore[import-not-found]

    parts = {name: RUN | {"name": name, "trained_tokens_per_second": rate} for name, rate in rates.items()}
    report = {"device": "D", "torch": "2", "parameters": 5, "rank": 16, "parts": parts, "failed": {}}
    return str(table(report))


def test_the_page_tells_each_way_against_the_synchronous_schedule() -> None:
    text = page(synchronous=100.0, segments=170.0)
    assert "| pipeline, segments, goal ≥ 1.5 | 170 | 1.70 |" in text
    assert "whole replies" not in text
    assert "| 3.00, not measured |" in text


def test_the_page_makes_up_no_ratio_where_there_is_nothing_to_compare_with() -> None:
    assert "| pipeline, segments, goal ≥ 1.5 | 170 | not measured |" in page(segments=170.0)


class Echo:
    """A policy that tells how many tokens it was asked for."""

    model = "echo"

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        return Completion("", reasoning=str(request.sampling.max_tokens), finish="length")

    async def aclose(self) -> None:
        pass


@pytest.mark.heavy
def test_a_problem_is_the_same_work_in_whichever_update_it_is_asked() -> None:
    pytest.importorskip("trl")
    import gpu_marsrl as program  # type: ignore[import-not-found]

    def said(update: int, number: int, role: str) -> Completion:
        ending = program.Ending(Echo(), f"{update}-p3.1.0-{number}", "41", scale=200)
        found: Completion = asyncio.run(ending.complete(Request((user("?"),), conversation=f"1/{role}")))
        return found

    for role in ("solver", "verifier"):
        many = [said(0, number, role) for number in range(64)]
        assert many == [said(7, number, role) for number in range(64)]
        assert len({one.text for one in many}) == 2
        lengths = [int(one.reasoning) for one in many]
        assert max(lengths) <= program.CAP // 200
        assert 0.5 < sum(lengths) / 64 / (program.MEAN[role] / 200) < 2


@pytest.mark.heavy
@pytest.mark.filterwarnings("default")
def test_a_way_is_measured_with_what_its_own_rows_tell(tmp_path: Path) -> None:
    pytest.importorskip("trl")
    import gpu_marsrl as program
    from workload import TINY, tokenizer  # type: ignore[import-not-found]

    load = program.Load(questions=1, attempts=2, places=4, staleness=1, scale=2_000, seconds=60.0, steps=2)
    found = program.measured("segments", load, TINY, tokenizer(TINY.words), tmp_path, 4_096, 4)
    assert found["updates"] == 2
    assert found["steps_in_updates"] == 0
    assert found["staleness_most"] <= found["staleness_bound"] == 1
    assert 0 < found["trained_tokens"] <= found["sampled_tokens"]
    assert found["infra_failed"] == 0
