"""Models through litellm. Needs the extra; without it only the refusals are tested."""

import subprocess
import sys
from importlib.util import find_spec

import pytest

from hira.core.errors import AccessDenied, ContextOverflow, EndpointError, RateLimited, UsageError
from hira.core.messages import Message, ToolCall, assistant, user
from hira.core.policy import Request, Sampling
from hira.policies import open_policy
from hira.policies.litellm import LiteLLMPolicy, load
from hira.testing import Endpoint

needs_litellm = pytest.mark.skipif(find_spec("litellm") is None, reason="litellm is not installed")
# its own import and logging code warn
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.heavy]

ASKED = Request((user("what is it?"),), Sampling(temperature=0.5, max_tokens=9))


def test_importing_hira_does_not_load_it():
    code = "import sys, hira, hira.policies; print([name for name in ('litellm', 'openai', 'httpx') if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.skipif(find_spec("litellm") is not None, reason="litellm is installed")
def test_without_it_the_message_says_what_to_install():
    with pytest.raises(UsageError, match=r"pip install 'hira\[litellm\]'"):
        open_policy("litellm/openai/gpt-5")


@pytest.mark.parametrize("release", ["1.82.7", "1.82.8"])
def test_the_two_malicious_releases_are_refused_before_they_are_loaded(release, tmp_path, monkeypatch):
    wheel = tmp_path / f"litellm-{release}.dist-info"
    wheel.mkdir()
    (wheel / "METADATA").write_text(f"Metadata-Version: 2.1\nName: litellm\nVersion: {release}\n")
    (tmp_path / "litellm.py").write_text("raise SystemExit('it was loaded')")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match=f"litellm {release} is a malicious release"):
        load()


@pytest.fixture
def asking():
    if find_spec("litellm") is None:
        pytest.skip("litellm is not installed")

    async def ask(endpoint, model="openai/gpt-4o-mini", watch=None):
        policy = LiteLLMPolicy(model, endpoint.base_url, "sk-secret", key_origin="MY_KEY")
        return await policy.complete(ASKED, watch)

    return ask


async def test_a_reply_comes_back_with_its_cost(asking):
    with Endpoint(["the reply"]) as endpoint:
        completion = await asking(endpoint)
        assert endpoint.calls[0].body["max_tokens"] == 9
    assert completion.text == "the reply"
    assert completion.usage.prompt_tokens > 0
    assert 0 < (completion.usage.cost or 0) < 0.01


@pytest.mark.parametrize(
    ("fault", "error", "retryable"),
    [
        ("401", AccessDenied, False),
        ("429", RateLimited, True),
        ("400-overflow", ContextOverflow, False),
        ("503", EndpointError, True),
        ("reset-before", EndpointError, True),
    ],
)
async def test_its_errors_become_ours(asking, fault, error, retryable, capfd):
    with Endpoint(faults=[fault]) as endpoint, pytest.raises(error) as raised:
        await asking(endpoint)
    told = str(raised.value)
    assert raised.value.retryable is retryable
    assert "model 'openai/gpt-4o-mini', key from MY_KEY" in told
    assert "sk-secret" not in told
    assert len(told.splitlines()) <= 3
    assert capfd.readouterr().out == ""


@needs_litellm
@pytest.mark.parametrize("model", ["anthropic/claude-opus-4-1", "gemini/gemini-2.5-pro"])
async def test_a_provider_without_its_key_is_refused_at_once(model, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(AccessDenied, match="litellm reads keys from the environment") as refused:
        await LiteLLMPolicy(model).complete(ASKED)
    assert "Traceback" not in str(refused.value)


@needs_litellm
async def test_no_key_of_the_environment_goes_to_a_base_url(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-the-environment")
    for model in ("openai/gpt-4o-mini", "anthropic/claude-opus-4-1", "deepseek/deepseek-chat"):
        with Endpoint(faults=["401"]) as endpoint, pytest.raises(EndpointError) as raised:
            await LiteLLMPolicy(model, endpoint.base_url).complete(ASKED)
        assert endpoint.requests
        assert "sk-of-the-environment" not in repr([request.headers for request in endpoint.requests])
        assert raised.value.fix.startswith("set HIRA_API_KEY")
        assert "no key" in raised.value.where


CLAUDE = {
    "id": "m", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "31 metres"}],
    "usage": {"input_tokens": 10, "output_tokens": 3, "cache_read_input_tokens": 2000},
}  # fmt: skip


@needs_litellm
async def test_claude_is_told_to_cache_the_prompt_up_to_its_end_and_what_it_had_is_counted():
    called = ToolCall("c1", "search", '{"query": "Alta"}')
    messages = (user("How high?"), assistant("", (called,)), Message("tool", "31 metres", call_id="c1"))
    with Endpoint(pages={"/v1/messages": CLAUDE}) as endpoint:
        policy = LiteLLMPolicy("anthropic/claude-sonnet-4-5", endpoint.base_url.removesuffix("/v1"), "sk-secret")
        first = await policy.complete(ASKED)
        await policy.complete(Request(messages))
        marks = ["cache_control" in str(message) for one in endpoint.calls for message in one.body["messages"]]
    assert (first.text, first.usage.cached_tokens, first.usage.prompt_tokens) == ("31 metres", 2000, 2010)
    assert marks == [True, False, False, True]


async def test_other_models_get_no_mark(asking):
    with Endpoint(["the reply"]) as endpoint:
        await asking(endpoint)
        assert "cache" not in str(endpoint.calls[0].body)
