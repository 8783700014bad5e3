"""A host that has something to lose: canaries that no program may reach."""

import os
import socket
import time
from pathlib import Path

import pytest

SECRET = "sk-canary-0f3d"


def has_ended(pid: int) -> bool:
    """Whether a process ends within five seconds; one that waits to be reaped has ended."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


class Host:
    """What the tests plant in a folder, around a session. `names` are given to each program as variables."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.outside = folder / "home", folder / "outside"
        (self.home / ".ssh").mkdir(parents=True)
        (self.home / ".ssh" / "id_rsa").write_text(SECRET)
        self.outside.mkdir()
        (self.outside / ".env").write_text(f"KEY={SECRET}")
        (self.outside / "keep.txt").write_text("keep")
        (self.outside / "keep.txt").chmod(0o644)
        os.utime(self.outside / "keep.txt", (1e9, 1e9))
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.chdir(folder)  # a socket's path may not be long
        tcp, udp = socket.create_server(("127.0.0.1", 0)), socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        named, abstract = (socket.socket(socket.AF_UNIX) for _ in range(2))
        mail = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.listeners = [tcp, udp, named, abstract, mail]
        addresses = {"NAMED": "named.sock", "MAIL": "mail.sock", "ABSTRACT": f"\0hira-test-{os.getpid()}"}
        udp.bind(("127.0.0.1", 0))
        for one, address in zip((named, mail, abstract), addresses.values(), strict=True):
            one.bind(address)
        for one in (named, abstract):
            one.listen()
        self.leak = os.open(self.outside / ".env", os.O_RDONLY)
        os.set_inheritable(self.leak, True)
        self.names = {
            "HOST": os.getpid(),
            "HOME": str(self.home),
            "OUT": str(self.outside),
            "TCP": tcp.getsockname()[1],
            "UDP": udp.getsockname()[1],
            "LEAK": self.leak,
            **{name: str(folder / at) if at.endswith(".sock") else at for name, at in addresses.items()},
        }

    def close(self) -> None:
        os.close(self.leak)
        for one in self.listeners:
            one.close()

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
