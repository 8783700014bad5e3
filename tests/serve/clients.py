"""Clients of the OpenAI API, driven unchanged against a server: `python clients.py CLIENT URL KEY SLOW_URL`.

A program of its own, because that is how they meet a server, and because each loads what it likes. It prints one JSON
object: what the client made of the list of models, of an answer, of a stream, of parameters that hira does not read, of
a wrong key, an unknown model and tools; and at `SLOW_URL` it leaves a stream and an answer that are under way.
"""

import asyncio
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

QUESTION = "How high is the tower of Alta?"
MESSAGES: Any = [{"role": "user", "content": QUESTION}]
COUNTED: Any = {"stream": True, "stream_options": {"include_usage": True}}
UNREAD: Any = {"temperature": 0.2, "seed": 7, "max_tokens": 5, "tool_choice": "auto", "extra_body": {"colour": "blue"}}
TOOLS: Any = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {}}}}]
FORM: Any = {"type": "json_object"}


def whole(reply: Any) -> dict[str, Any]:
    message = reply.choices[0].message
    cited = [as_dict(one) for one in message.annotations or ()]
    return {
        "content": message.content,
        "reasoning": message.reasoning_content,
        "cited": [one["url_citation"]["title"] for one in cited],
        "tokens": reply.usage.total_tokens,
        "finish": reply.choices[0].finish_reason,
    }


def joined(chunks: Iterable[Any]) -> dict[str, Any]:
    """A stream as one answer."""
    told: dict[str, Any] = {"content": "", "reasoning": "", "cited": [], "tokens": 0, "finish": None}
    for chunk in chunks:
        for choice in chunk.choices:
            told["content"] += choice.delta.content or ""
            told["reasoning"] += getattr(choice.delta, "reasoning_content", None) or ""
            cited = getattr(choice.delta, "annotations", None) or ()
            told["cited"] += [as_dict(one)["url_citation"]["title"] for one in cited]
            told["finish"] = choice.finish_reason or told["finish"]
        told["tokens"] = (getattr(chunk, "usage", None) and chunk.usage.total_tokens) or told["tokens"]
    return told


def as_dict(one: Any) -> dict[str, Any]:
    return dict(one) if isinstance(one, dict) else dict(one.model_dump())


def refused(call: Callable[[], Any]) -> list[Any]:
    """The name of the error, its HTTP status and its text."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - what comes is what is shown
        return [type(error).__name__, getattr(error, "status_code", None), str(error)]
    return ["none", 200, ""]


def refusals(asked: Callable[..., Any], prefix: str = "") -> dict[str, list[Any]]:
    return {
        "wrong_key": refused(lambda: asked(api_key="wrong")),
        "unknown_model": refused(lambda: asked(model=f"{prefix}nobody")),
        "tools": refused(lambda: asked(tools=TOOLS)),
        "form": refused(lambda: asked(response_format=FORM)),
    }


def openai_plain(url: str, key: str, slow: str) -> dict[str, Any]:
    import openai

    def asked(model: str = "hira", api_key: str = key, at: str = url, timeout: float = 60, **more: Any) -> Any:
        client = openai.OpenAI(base_url=at, api_key=api_key, max_retries=0, timeout=timeout)
        return client.chat.completions.create(model=model, messages=MESSAGES, **more)

    left = asked(at=slow, stream=True)
    next(iter(left))
    left.close()
    return {
        "version": openai.__version__,
        "models": [one.id for one in openai.OpenAI(base_url=url, api_key=key).models.list()],
        "plain": whole(asked()),
        "streamed": joined(asked(**COUNTED)),
        "unread": whole(asked(**UNREAD)),
        "refused": refusals(asked),
        "late": refused(lambda: asked(at=slow, timeout=0.5)),
    }


def openai_async(url: str, key: str, slow: str) -> dict[str, Any]:
    import openai

    async def asked(model: str = "hira", api_key: str = key, **more: Any) -> Any:
        async with openai.AsyncOpenAI(base_url=url, api_key=api_key, max_retries=0) as client:
            reply = await client.chat.completions.create(model=model, messages=MESSAGES, **more)
            return [chunk async for chunk in reply] if more.get("stream") else reply

    async def leave() -> None:
        async with openai.AsyncOpenAI(base_url=slow, api_key=key, max_retries=0) as client:
            stream = await client.chat.completions.create(model="hira", messages=MESSAGES, stream=True)
            await anext(aiter(stream))
            await stream.close()
            plain = asyncio.ensure_future(client.chat.completions.create(model="hira", messages=MESSAGES))
            await asyncio.wait([plain], timeout=0.5)
            plain.cancel()
            await asyncio.wait([plain])

    async def listed() -> list[str]:
        async with openai.AsyncOpenAI(base_url=url, api_key=key) as client:
            return [one.id async for one in client.models.list()]

    async def together() -> list[Any]:
        return await asyncio.gather(asked(), asked(model="hira/mars"))

    asyncio.run(leave())
    plain, other = asyncio.run(together())
    return {
        "version": openai.__version__,
        "models": asyncio.run(listed()),
        "plain": whole(plain),
        "streamed": joined(asyncio.run(asked(**COUNTED))),
        "unread": whole(other),
        "refused": refusals(lambda **more: asyncio.run(asked(**more))),
    }


def litellm(url: str, key: str, slow: str) -> dict[str, Any]:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network for prices
    from importlib.metadata import version

    import litellm as library

    def asked(model: str = "openai/hira", api_key: str = key, at: str = url, **more: Any) -> Any:
        return library.completion(
            model=model, api_base=at, api_key=api_key, messages=MESSAGES, **{"num_retries": 0, "timeout": 60, **more}
        )

    async def also() -> Any:
        left = await library.acompletion(
            model="openai/hira", api_base=slow, api_key=key, messages=MESSAGES, stream=True, num_retries=0
        )
        await anext(aiter(left))
        return await library.acompletion(model="openai/mars", api_base=url, api_key=key, messages=MESSAGES)

    told = refusals(asked, "openai/")
    if importlib.util.find_spec("mcp") is None:
        told.pop("tools")  # it sends tools only where that package is installed
    unread = {name: value for name, value in UNREAD.items() if name != "extra_body"}
    return {
        "version": version("litellm"),
        "models": library.get_valid_models(
            check_provider_endpoint=True, custom_llm_provider="openai", api_base=url, api_key=key
        ),
        "plain": whole(asked()),
        "streamed": joined(asked(**COUNTED)),
        "unread": whole(asked(**unread, colour="blue")),
        "async": whole(asyncio.run(also())),
        "refused": told,
        "late": refused(lambda: asked(at=slow, timeout=0.5)),
    }


def llm(url: str, key: str, slow: str) -> dict[str, Any]:
    """The command `llm` with models that a file names, as its documentation has it."""
    from importlib.metadata import version

    with tempfile.TemporaryDirectory() as folder:
        models = [("hira", "hira", url), ("nobody", "nobody", url), ("slow", "hira", slow)]
        text = "".join(
            f"- model_id: {own}\n  model_name: {name}\n  api_base: {at}\n  api_key_name: hira\n  supports_tools: true\n"
            f"  supports_schema: true\n"
            for own, name, at in models
        )
        Path(folder, "extra-openai-models.yaml").write_text(text, encoding="utf-8")
        environ = {**os.environ, "LLM_USER_PATH": folder}

        def command(*words: str) -> list[str]:
            return [sys.executable, "-m", "llm", *words]

        def run(*words: str) -> Any:
            return subprocess.run(command(*words), env=environ, capture_output=True, text=True, check=False)

        def asked(*words: str, model: str = "hira", own: str = key) -> Any:
            return run("-m", model, "--key", own, "-u", *words, QUESTION)

        def told(done: Any) -> dict[str, Any]:
            said, tokens = done.stdout.strip(), done.stderr.partition("Token usage: ")[2].partition(" ")[0]
            return {"content": said, "tokens": int(tokens.replace(",", "") or 0), "error": done.stderr}

        def failed(done: Any) -> list[Any]:
            return ["failed" if done.returncode else "none", None, done.stderr.strip()]

        leaving = subprocess.Popen(
            command("-m", "slow", "--key", key, QUESTION),
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _until_begun(slow, key)
        leaving.terminate()
        leaving.wait()
        return {
            "version": version("llm"),
            "models": [line.split(": ")[1] for line in run("models").stdout.splitlines() if line.endswith(": hira")],
            "plain": told(asked("--no-stream")),
            "streamed": told(asked()),
            "unread": told(asked("-o", "temperature", "0.2", "-o", "max_tokens", "5", "-s", "Be brief.")),
            "refused": {
                "wrong_key": failed(asked(own="wrong")),
                "unknown_model": failed(asked(model="nobody")),
                "tools": failed(asked("-T", "llm_version")),
            },
        }


def _until_begun(slow: str, key: str) -> None:
    import httpx

    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        reply = httpx.get(f"{slow.removesuffix('/v1')}/api/runs", headers={"authorization": f"Bearer {key}"})
        if any(run["status"] == "running" for run in reply.json()["runs"]):
            return
        time.sleep(0.05)


CLIENTS: dict[str, Callable[[str, str, str], dict[str, Any]]] = {
    "openai": openai_plain,
    "openai, async": openai_async,
    "litellm": litellm,
    "llm": llm,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(CLIENTS[sys.argv[1]](*sys.argv[2:])))
