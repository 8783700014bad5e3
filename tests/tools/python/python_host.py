"""A host that has something to lose: canaries that no program may reach."""

import os
import socket
from dataclasses import dataclass, field
from pathlib import Path

SECRET = "sk-canary-0f3d"


@dataclass
class Host:
    """What the tests plant around a session. `names` are given to each program as variables."""

    home: Path
    outside: Path
    names: dict[str, object] = field(default_factory=dict)
    listeners: list[socket.socket] = field(default_factory=list)

    @property
    def prelude(self) -> str:
        return "".join(f"{name} = {value!r}\n" for name, value in self.names.items())

    def visited(self) -> list[str]:
        """The listeners that something has reached."""
        reached = []
        for one in self.listeners:
            one.setblocking(False)
            try:
                if one.type == socket.SOCK_DGRAM:
                    one.recv(100)
                else:
                    one.accept()[0].close()
            except BlockingIOError:
                continue
            reached.append(str(one.getsockname()))
        return reached

    def untouched(self) -> bool:
        """Whether the files beside the work folder are as they were planted."""
        kept = self.outside / "keep.txt"
        if not kept.exists():
            return False
        info = kept.stat()
        return (
            kept.read_text() == "keep"
            and info.st_mode & 0o777 == 0o644
            and info.st_mtime == 1e9
            and info.st_uid == os.geteuid()
            and sorted(path.name for path in self.outside.iterdir()) == [".env", "keep.txt"]
            and not os.listxattr(kept)
        )
