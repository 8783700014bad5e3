"""A full disk is one error, whichever library meets it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from later import later, needs

from hira.trainers.records import is_full

torch, tokenizers, safetensors = later("torch"), later("tokenizers"), later("safetensors")
pytestmark = needs("torch", "tokenizers")
FULL = Path("/dev/full")


def _safetensors() -> None:
    # its writer would put a file in the device's place, so its words are written down here
    raise safetensors.SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")


WRITERS: dict[str, Callable[[], object]] = {
    "python": lambda: FULL.write_text("text"),
    "torch": lambda: torch.save({"weights": torch.zeros(300_000)}, FULL),
    "tokenizers": lambda: tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, unk_token="a")).save(str(FULL)),
    "safetensors": _safetensors,
}


@pytest.mark.skipif(not FULL.is_char_device(), reason="this system has no device that is always full")
@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_is_known_by_the_error_of_each_library(writer: str) -> None:
    with pytest.raises(Exception) as raised:
        WRITERS[writer]()
    assert is_full(raised.value)


LIMITED = """
import resource, sys
from pathlib import Path
from hira.trainers.records import is_full

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    if sys.argv[1] == "python":
        Path(sys.argv[2]).write_text("a" * 2000)
    else:
        import torch
        from safetensors.torch import save_file
        save_file({"weights": torch.zeros(1000)}, sys.argv[2])
except Exception as error:
    print(is_full(error))
"""


@pytest.mark.parametrize("writer", ["python", pytest.param("safetensors", marks=pytest.mark.heavy)])
def test_a_file_that_may_not_be_as_long_is_told_alike(writer: str, tmp_path: Path) -> None:
    pytest.importorskip("resource")
    done = subprocess.run([sys.executable, "-c", LIMITED, writer, str(tmp_path / "file")], capture_output=True,
                          text=True, check=True)  # fmt: skip
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize("error", [RuntimeError("mat1 and mat2"), PermissionError(13, "no"), ValueError("28")])
def test_other_errors_are_not_taken_for_it(error: Exception) -> None:
    assert not is_full(error)
