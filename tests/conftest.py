"""What many tests share: a real model server. And how they are spread over processes, so that all of them take
little."""

import gc
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any machine")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell lets jobs in the background ignore Ctrl-C, and what the tests start would inherit that
    signal.signal(signal.SIGINT, signal.default_int_handler)

USUAL = 10
"""Seconds of a heavy test that gives no number."""

OLD = 100_000
"""Objects of the oldest generation: so many are not what tests made, but what was loaded and collected."""

WHOLLY_SLOW = re.compile(r"^pytestmark = .*\bmark\.heavy\b", re.MULTILINE)
WITH_TORCH = re.compile(r"\b(?:needs|importorskip)\(\"(?:torch|transformers|peft|trl|accelerate)\"")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of heavy tests alone are not even imported where only the others are run."""
    if config.option.markexpr != "not heavy" or not re.fullmatch(r"test_.*\.py", collection_path.name):
        return None
    return bool(WHOLLY_SLOW.search(collection_path.read_text(encoding="utf-8"))) or None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is imported and collected stays to the end: garbage is not looked for in it, which took half of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_runtest_setup() -> None:
    """A command that looks after its memory lets go of what was left out, when it ends: it is left out again.

    What is old is counted and not what is left out: to count that goes through all of it, at every test.
    """
    if len(gc.get_objects(generation=2)) > OLD:
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Whatever a file left lying is found at its end, and what it has loaded is left out for the next."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The files that take longest come first, so that no worker is left alone with one of them at the end."""
    fast = config.option.markexpr == "not heavy"
    seconds: Counter[Path] = Counter()
    for item in items:
        if mark := item.get_closest_marker("heavy"):
            seconds[item.path] += mark.kwargs.get("seconds", USUAL)
    items.sort(key=lambda item: (not (fast and with_torch(item.path)), -seconds[item.path]))


@cache
def with_torch(path: Path) -> bool:
    return bool(WITH_TORCH.search(path.read_text(encoding="utf-8")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of the fast tests, one worker runs all those that import torch: it takes longer than most of them."""
    if (config.option.dist, config.option.markexpr) != ("loadfile", "not heavy"):
        return None
    from xdist.scheduler import LoadFileScheduling

    class Grouped(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return "with torch" if with_torch(config.rootpath / file) else file

    return Grouped(config, log)


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a real llama.cpp server with a tiny random model, in a process of its own."""
    with serving_llama(tmp_path_factory.mktemp("llama")) as base_url:
        yield base_url


@pytest.fixture
def base_llama_server(tmp_path: Path) -> Iterator[str]:
    """The same with a base model, which has no chat template."""
    with serving_llama(tmp_path, "base") as base_url:
        yield base_url


@contextmanager
def serving_llama(folder: Path, *how: str) -> Iterator[str]:
    for package in ("xllamacpp", "gguf", "numpy", "tokenizers"):
        pytest.importorskip(package)
    script = Path(__file__).with_name("tiny_llama.py")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), str(folder), *how], stdout=subprocess.PIPE, stderr=log, text=True
        )
    late = threading.Timer(60, process.kill)
    late.start()
    try:
        assert process.stdout is not None
        listening = next((line for line in process.stdout if line.startswith("listening ")), "")
        late.cancel()
        assert listening, f"no server: {(folder / 'log').read_text()[-2000:]}"
        yield f"{listening.split()[1]}/v1"
    finally:
        late.cancel()
        process.kill()
        process.wait()
        process.stdout.close()
