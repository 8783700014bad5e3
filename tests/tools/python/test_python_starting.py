"""A machine that is at its limits: what may pass is waited out, what does not is told as what it is."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from hira.tools.python.process import Ended, why_not

BEFORE = """
import asyncio, ctypes, errno, os, resource, struct, sys
from hira.core.errors import ToolDown
from hira.tools.python import Limits, PythonSandbox
folder = sys.argv[1]

def few_files(spare):
    '''Let this process open only so many more files.'''
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1 + spare, 4096))

def many_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))

def no_more_processes():
    '''Have every fork and every new thread fail, as where a user has too many.'''
    calls = {"x86_64": (56, 57, 58, 435), "aarch64": (220, 435)}[os.uname().machine]
    tests = [(0x15, len(calls) - at, 0, number) for at, number in enumerate(calls)]
    steps = [(0x20, 0, 0, 0), *tests, (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x50000 | errno.EAGAIN)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    libc = ctypes.CDLL(None)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, struct.pack("=H6xQ", len(steps), ctypes.addressof(code)), 0, 0) == 0
"""
HOSTS = {
    "open files, for a moment": (
        """
async def main():
    few_files(3)
    asyncio.get_running_loop().call_later(0.1, many_files)
    async with PythonSandbox(folder) as sandbox:
        print((await sandbox.run("6 * 7")).value)
""",
        "42",
    ),
    "open files in a session": (
        """
async def main():
    async with PythonSandbox(folder) as sandbox:
        await sandbox.run("x = 6")
        few_files(0)
        print((await sandbox.run("open('f', 'w').write('1')\\nx * 7")).text)
        many_files()
        outcome = await sandbox.run("x * 7")
        print(outcome.text, [path.name for path in outcome.files])
""",
        r"42\nThe work folder could not be looked at \(Too many open files\).\n42 \['f'\]",
    ),
    "processes and threads": (
        """
async def main():
    no_more_processes()
    async with PythonSandbox(folder) as sandbox:
        try: await sandbox.run("6 * 7")
        except ToolDown as error: print(error)
""",
        "Python could not be started: .*can't start new thread\n.*processes and threads are at their limit.*",
    ),
    "room on the disk": (
        """
async def main():
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    async with PythonSandbox(folder) as sandbox:
        print((await sandbox.run("with open('f', 'w') as f: f.write('1')")).error.splitlines()[-1])
        print((await sandbox.run("6 * 7")).value)
""",
        r"OSError: \[Errno 27\] File too large\n42",
    ),
}


@pytest.mark.skipif(sys.platform != "linux", reason="makes use of Linux")
@pytest.mark.parametrize(("host", "seen"), HOSTS.values(), ids=HOSTS)
def test_a_machine_at_its_limit(host: str, seen: str, tmp_path: Path, able: None) -> None:
    script = [sys.executable, "-c", f"{BEFORE}{host}\nasyncio.run(main())", str(tmp_path / "w")]
    done = subprocess.run(script, capture_output=True, text=True, check=False, timeout=120)
    assert not done.stderr
    assert done.returncode == 0
    assert re.fullmatch(seen, done.stdout.strip()), done.stdout


SAID = {
    "nothing": (Ended(), "", "it ended at once", True),
    "that memory was lacking": (Ended(), "MemoryError", "MemoryError", True),
    "something else": (Ended(), "ImportError: no module named encodings", "no module named encodings", False),
    "that a layer does not hold": (Ended("it is not confined"), "", "it is not confined", False),
}


@pytest.mark.parametrize(("error", "said", "why", "passing"), SAID.values(), ids=SAID)
def test_an_interpreter_that_said_so_is_started_again_only_where_that_may_pass(
    error: Ended, said: str, why: str, *, passing: bool
) -> None:
    told, fix, again = why_not(error, said)
    assert why in told
    assert again == passing
    assert bool(fix) == passing
