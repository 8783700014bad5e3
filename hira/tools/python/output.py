"""What a call printed: everything is taken from the pipe, only the head and the tail are kept."""

import codecs
from dataclasses import dataclass, field

_decode = codecs.getincrementaldecoder("utf-8")


@dataclass(slots=True)
class Output:
    """Bytes as they come. `half` of the characters are kept from the beginning and `half` from the end."""

    half: int
    total: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _tail: bytearray = field(default_factory=bytearray)

    def add(self, chunk: bytes) -> None:
        self.total += len(chunk)
        if room := self.half - len(self._head):
            self._head += chunk[:room]
            chunk = chunk[room:]
        if chunk:
            self._tail += chunk[-self.half :]
            if len(self._tail) > 2 * self.half:
                del self._tail[: -self.half]

    @property
    def text(self) -> str:
        """The output as text; what is no UTF-8 is replaced."""
        tail = bytes(self._tail[-self.half :])
        missing = self.total - len(self._head) - len(tail)
        if not missing:
            return (bytes(self._head) + tail).decode("utf-8", "replace")
        return (
            f"{_decode('ignore').decode(bytes(self._head))}\n… {missing:,} bytes left out …\n"
            f"{tail.decode('utf-8', 'replace').lstrip(chr(0xFFFD))}"
        )
