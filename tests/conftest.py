"""What many tests share: a real model server."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest


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
