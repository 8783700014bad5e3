"""Options that want a package or a device which is not there: refused before anything is loaded or written."""

import io
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from later import later, needs

from hira.cli.shell import Shell
from hira.cli.training import main
from hira.core.errors import UsageError
from hira.trainers.preflight import check_wanted

torch = later("torch")
pytestmark = [needs("torch", "transformers", "peft", "trl"), pytest.mark.filterwarnings("default")]


def refused(folder: Path, *arguments: str) -> str:
    """What the command says when it is refused, the model being one that is nowhere."""
    (folder / "questions.jsonl").write_text(json.dumps({"question": "Who?", "answer": "Ida"}) + "\n")
    err = io.StringIO()
    shell = Shell(io.StringIO(), io.StringIO(), err, {}, folder, folder)
    assert main([arguments[0], "model.name=no/model", "data.train=questions.jsonl", *arguments[1:]], shell) == 2
    assert len(err.getvalue().splitlines()) <= 3
    assert [one.name for one in folder.iterdir()] == ["questions.jsonl"], "nothing is left behind"
    return err.getvalue()


@pytest.mark.parametrize("command", ["grpo", "sft"])
def test_four_bits_want_a_gpu_and_bitsandbytes(command: str, tmp_path: Path) -> None:
    if torch.cuda.is_available() and find_spec("bitsandbytes"):
        pytest.skip("both are there")
    told = refused(tmp_path, command, "model.bits=4")
    assert "a base in 4 bits needs" in told
    assert "set bits = 16" in told


@pytest.mark.parametrize("command", ["grpo", "sft"])
def test_a_reporter_wants_its_package(command: str, tmp_path: Path) -> None:
    if find_spec("swanlab"):
        pytest.skip("swanlab is there")
    told = refused(tmp_path, command, 'train.report_to=["swanlab"]')
    assert "swanlab is not installed" in told
    assert "pip install swanlab" in told


def test_a_reporter_that_nobody_knows_is_told_what_there_is(tmp_path: Path) -> None:
    told = refused(tmp_path, "grpo", 'train.report_to=["wandbs"]')
    assert "unknown reporter 'wandbs'" in told
    assert "wandb" in told.split("there are:")[1]


def test_what_several_processes_share_by_deepspeed_wants_it(tmp_path: Path) -> None:
    if find_spec("deepspeed"):
        pytest.skip("DeepSpeed is there")
    assert "wants DeepSpeed" in refused(tmp_path, "grpo", "--processes", "2", "--across", "zero2")
    with pytest.raises(UsageError, match="wants DeepSpeed"):
        check_wanted(16, across="zero2")


def test_what_needs_nothing_is_not_refused() -> None:
    check_wanted(16)
    check_wanted(64, ("none",), "ddp")
