"""What many tests share: a real model server."""

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

USUAL = 10
"""Seconds of a slow test that says none."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files that take longest come first, so that no worker is left alone with one of them at the end."""
    seconds: Counter[Path] = Counter()
    for item in items:
        if mark := item.get_closest_marker("slow"):
            seconds[item.path] += mark.kwargs.get("seconds", USUAL)
    items.sort(key=lambda item: -seconds[item.path])


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The base URL of a real llama.cpp server with a tiny random model, in a process of its own."""
    for package in ("xllamacpp", "gguf", "numpy", "tokenizers"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("llama")
    script = Path(__file__).with_name("tiny_llama.py")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), str(folder)], stdout=subprocess.PIPE, stderr=log, text=True
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
