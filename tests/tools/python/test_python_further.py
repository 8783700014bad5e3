"""Further ways out and further ways to hang: each is refused or ended, and the next call works."""

import fcntl
from pathlib import Path

import pytest

from hira.tools.python import PythonSandbox

LIBC = "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
REFUSED = {
    "a program out of memory": "import os\nfd = os.memfd_create('x')\nos.write(fd, b'#!/bin/sh')\nos.execve(fd, ['x'], {})",
    "the environment of the parent": "import os\nopen(f'/proc/{os.getppid()}/environ').read()",
    "the memory of the parent": "import os\nopen(f'/proc/{os.getppid()}/mem', 'rb').read(1)",
    "descriptors of the parent": f"{LIBC}fd = libc.syscall(434, os.getppid(), 0)\nassert libc.syscall(438, fd, 0, 0) >= 0",
    "io_uring": f"{LIBC}assert libc.syscall(425, 8, 0) >= 0",
    "keys of the kernel": f"{LIBC}assert libc.syscall({{'x86_64': 250}}.get(os.uname().machine, 219), 0, -3, 0) >= 0",
    "a namespace of its own": f"{LIBC}assert libc.unshare(0x10000000) == 0",
    "a socket to the machine's host": "import socket\nsocket.socket(40, 1, 0)",
    "a socket to the kernel": "import socket\nsocket.socket(16, 3, 0)",
    "the kernel's ciphers": "import socket\nsocket.socket(38, 5, 0)",
    "the socket of a container engine": "import socket\nsocket.socket(1).connect('/var/run/docker.sock')",
    "shared memory": "open('/dev/shm/hira-test', 'w')",
    "a device": "import os\nos.mknod('d', 0o60600, os.makedev(8, 0))\nopen('d')",
    "a pipe by name": "import os\nos.mkfifo('f')",
    "every process": "import os\nos.kill(-1, 9)",
    "the whole group": "import os\nos.killpg(0, 9)",
    "more memory than it may": "import resource\nresource.setrlimit(resource.RLIMIT_AS, (-1, -1))",
    "a sparse file": "open('s', 'wb').truncate(1 << 40)",
}
HANGING = {
    "stopped by its own signal": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "deaf to signals": "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
    "one long step of C": "9 ** 9 ** 9",
    "an alarm": "import signal, time\nsignal.setitimer(signal.ITIMER_REAL, 0.2)\ntime.sleep(30)",
}


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
async def test_it_is_refused(code: str, sandbox: PythonSandbox) -> None:
    outcome = await sandbox.run(code)
    assert outcome.status == "error", outcome
    assert (await sandbox.run("6 * 7")).value == "42"


@pytest.mark.parametrize("code", HANGING.values(), ids=HANGING)
async def test_it_is_ended(code: str, sandbox: PythonSandbox) -> None:
    outcome = await sandbox.run(code, seconds=0.5)
    assert outcome.status in {"timeout", "died"}, outcome
    assert (await sandbox.run("6 * 7")).value == "42"


async def test_a_call_that_floods_the_channel_or_bends_the_built_in_names_harms_only_its_session(
    sandbox: PythonSandbox,
) -> None:
    flood = "import os\nfor i in range(3, 300):\n    try: os.write(i, b'\\x00\\x00\\x00\\x05hello')\n    except OSError: pass"
    bent = "import builtins\nbuiltins.len = lambda x: 0\nbuiltins.print = builtins.repr = None"
    for code in (flood, bent, "import os\nos.closerange(0, 65536)"):
        await sandbox.run(code)
        assert (await sandbox.run("6 * 7")).value == "42"


@pytest.mark.parametrize("lock", ["lockf(file, fcntl.LOCK_SH)", "flock(file, fcntl.LOCK_SH)"])
async def test_a_lock_on_a_file_that_it_may_read_keeps_no_writer_waiting(lock: str, tmp_path: Path, able: None) -> None:
    given = tmp_path / "given.txt"
    given.write_text("of the user")
    async with PythonSandbox(tmp_path / "work", readable=(given,)) as sandbox:
        outcome = await sandbox.run(f"import fcntl\nfile = open({str(given)!r})\nfcntl.{lock}\nfile.read()")
        assert (outcome.status, outcome.value) == ("ok", "'of the user'")
        with given.open("r+") as writer:
            getattr(fcntl, lock.partition("(")[0])(writer, fcntl.LOCK_EX | fcntl.LOCK_NB)


async def test_a_database_in_the_folder_works_without_locks(sandbox: PythonSandbox) -> None:
    code = """
import sqlite3
one, other = sqlite3.connect("t.db"), sqlite3.connect("t.db")
with one: one.executescript("pragma journal_mode=wal; create table t (a); insert into t values (42)")
other.execute("select a from t").fetchone()
"""
    assert (await sandbox.run(code)).value == "(42,)"
