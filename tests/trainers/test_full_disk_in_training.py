"""A full disk is one error, whichever library meets it."""

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
