"""Options that need a package, a device or an account: refused before anything is loaded or written."""

import base64
import io
import json
import stat
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from later import later, needs
from tiny_hf import tiny_model, tiny_tokenizer

from hira.cli.shell import Shell
from hira.cli.training import main
from hira.core.errors import HiraError
from hira.trainers.profile import push_adapters

torch = later("torch")
pytestmark = [needs("torch", "transformers", "peft", "trl"), pytest.mark.filterwarnings("default")]


@pytest.mark.parametrize(
    ("arguments", "what", "fix", "present"),
    [
        (["sft", "model.bits=4"], "a base in 4 bits needs", "set bits = 16", "bitsandbytes"),
        (["grpo", 'train.report_to=["swanlab"]'], "swanlab is not installed", "pip install swanlab", "swanlab"),
        (["grpo", 'train.report_to=["wandbs"]'], "unknown reporter 'wandbs'", "there are:", ""),
        (["grpo", "--processes", "2", "--across", "zero2"], "needs DeepSpeed", "--across ddp", "deepspeed"),
        (["grpo", "train.hub=mine"], "'mine' is not a repository", "OWNER/NAME", ""),
        (["grpo", "train.hub=me/mine"], "nobody is logged in to the Hub", "hf auth login", ""),
    ],
)
def test_an_option_that_cannot_work_here_is_refused_at_once(
    arguments: list[str], what: str, fix: str, present: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if present and find_spec(present):
        pytest.skip(f"{present} is installed")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    (tmp_path / "questions.jsonl").write_text(json.dumps({"question": "Who?", "answer": "Ida"}) + "\n")
    err = io.StringIO()
    shell = Shell(io.StringIO(), io.StringIO(), err, {}, tmp_path, tmp_path)
    assert main([arguments[0], "model.name=no/model", "data.train=questions.jsonl", *arguments[1:]], shell) == 2
    assert what in err.getvalue()
    assert fix in err.getvalue()
    assert len(err.getvalue().splitlines()) <= 3
    assert [one.name for one in tmp_path.iterdir()] == ["questions.jsonl"]


def make_run(folder: Path) -> Path:
    """A run's folder with one adapter of a tiny base."""
    from hira.trainers.configuration import ModelConfig
    from hira.trainers.models import open_model
    from hira.trainers.profile import ADAPTERS, save_adapter

    tokenizer = tiny_tokenizer()
    tiny_model(tokenizer).save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    tokenizer, model = open_model(ModelConfig(name=str(folder / "base"), rank=2))
    save_adapter(model, tokenizer, "default", folder / "run" / ADAPTERS)
    return folder / "run"


@pytest.mark.heavy
def test_a_merged_model_is_converted_by_llama_cpps_script_if_it_is_there(tmp_path: Path) -> None:
    run, err, out = make_run(tmp_path), io.StringIO(), io.StringIO()
    tools = tmp_path / "llama.cpp"
    environ = {"PATH": str(tools)}
    shell = Shell(io.StringIO(), out, err, environ, tmp_path, tmp_path)
    command = ["merge", str(run), "whole", "--gguf"]
    assert main(command, shell) == 2
    assert "convert_hf_to_gguf.py is not on the PATH" in err.getvalue()
    assert not (tmp_path / "whole").exists()
    tools.mkdir()
    script = tools / "convert_hf_to_gguf.py"
    script.write_text(
        "import pathlib, sys\n"
        "assert pathlib.Path(sys.argv[1], 'model.safetensors').is_file(), sys.argv\n"
        "pathlib.Path(sys.argv[sys.argv.index('--outfile') + 1]).write_text('GGUF')\n"
    )
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    assert main(command, shell) == 0, err.getvalue()
    assert out.getvalue().splitlines() == ["hf:whole", "gguf:whole/model.gguf"]
    script.write_text("import sys\nsys.exit('Model architecture is not supported')\n")
    assert main(["merge", str(run), "other", "--gguf"], shell) == 1
    assert "Model architecture is not supported" in err.getvalue()


class Hub(ThreadingHTTPServer):
    """Takes repositories and commits as the Hub does; `files` are the committed ones."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.files: dict[str, bytes] = {}


class Handler(BaseHTTPRequestHandler):
    server: Hub

    def do_POST(self) -> None:
        body = self.read_body()
        if self.path == "/api/repos/create":
            self.server.files["created"] = body
            self.reply({"url": f"{self.server.url}/me/mine"})
        elif "/preupload/" in self.path:
            files = [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False}
                     for one in json.loads(body)["files"]]  # fmt: skip
            self.reply({"files": files})
        else:
            for one in (line["value"] for line in map(json.loads, body.splitlines()) if line["key"] == "file"):
                self.server.files[one["path"]] = base64.b64decode(one["content"])
            self.reply({"commitUrl": f"{self.server.url}/me/mine/commit/1", "commitOid": "1"})

    def read_body(self) -> bytes:
        if length := self.headers.get("Content-Length"):
            return self.rfile.read(int(length))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size + 2)[:size]
        self.rfile.readline()
        return body

    def do_GET(self) -> None:
        self.reply({"id": "me/mine", "sha": "1", "siblings": []})

    def reply(self, values: dict[str, Any]) -> None:
        body = json.dumps(values).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[Hub]:
    server = Hub()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.heavy
def test_adapters_are_uploaded_to_a_private_repository_and_a_failure_says_how_to_repeat_it(
    hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_test")
    run = make_run(tmp_path)
    assert push_adapters(run, "me/mine", hub.url).endswith("me/mine")
    assert b"private" in hub.files["created"]
    weights = (run / "adapters" / "default" / "adapter_model.safetensors").read_bytes()
    assert hub.files["default/adapter_model.safetensors"] == weights
    hub.shutdown()
    hub.server_close()
    with pytest.raises(HiraError, match=r"(?s)were not uploaded.*hf upload me/mine"):
        push_adapters(run, "me/mine", hub.url)
