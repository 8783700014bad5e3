"""`hira-train grpo --processes`: real processes on this CPU, and what is refused before it could hang."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from safetensors.torch import load_file  # noqa: E402

from hira.trainers import records  # noqa: E402

if TYPE_CHECKING:
    from small_place import Place

torch.set_num_threads(1)
pytestmark = [pytest.mark.filterwarnings("default"), pytest.mark.heavy]
ON_CPU = pytest.mark.skipif(torch.cuda.is_available(), reason="this is about machines without a GPU")
LORA = "adapters/default/adapter_model.safetensors"


def command(place: "Place", *given: str, **environ: str) -> subprocess.CompletedProcess[str]:
    known = {"PATH": os.environ["PATH"], "HOME": str(place.folder), "OMP_NUM_THREADS": "1", **environ}
    return subprocess.run([sys.executable, "-m", *given], cwd=place.folder, env=known, text=True, capture_output=True,
                          check=False, timeout=500)  # fmt: skip


def weights(folder: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = load_file(folder / LORA)
    return found


@ON_CPU
def test_two_processes_make_the_step_that_one_makes(place: "Place") -> None:
    given = ("run.toml", "model.bits=64", "data.held_out=", "train.steps=1")
    assert place.train("grpo", *given, "out=one") == 0, place.err
    done = command(place, "hira.cli.training", "grpo", *given, "out=two", "--processes", "2")
    assert done.returncode == 0, done.stderr
    one, two = (records.read(place.folder / name / records.METRICS)[0] for name in ("one", "two"))
    assert two["tokens"] == one["tokens"] > 0, "the rollouts of both processes are those of one"
    assert two["reward"] == pytest.approx(one["reward"])
    assert two["micro_batches"] > 0
    assert two["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-6)
    before = weights(place.folder / "one")
    apart = max(float((value - before[name]).abs().max()) for name, value in weights(place.folder / "two").items())
    moved = max(float(value.abs().max()) for name, value in before.items() if "lora_B" in name)
    assert moved > 0
    assert apart < 1e-6 * moved
    assert len([line for line in done.stdout.splitlines() if line.startswith("hira ask")]) == 1, done.stdout
    assert len(re.findall(r"  step 1 of 1: reward", done.stderr)) == 1, "one process speaks for both"
    again = command(place, "hira.cli.training", "grpo", *given, "out=two", "--processes", "2")
    assert again.returncode == 0, again.stderr
    assert "resuming in" in again.stderr
