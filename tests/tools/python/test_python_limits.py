"""What uses too much is ended, its files are removed, and the next call works."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from python_host import has_ended
from rows import telling

from hira.tools.python import PythonSandbox
from hira.tools.python.layers import PythonLimits

SMALL = PythonLimits(seconds=20, memory=256 << 20, disk=8 << 20, file=4 << 20, files=200, threads=20, printed=4 << 20)

GREEDY = {
    "memory": ("l = []\nwhile True: l.append(bytearray(16 << 20))", "MemoryError"),
    "shared memory": (
        "import mmap, time\nm = mmap.mmap(-1, 400 << 20)\nfor i in range(0, 400 << 20, 4096): m[i] = 1\ntime.sleep(10)",
        "memory",
    ),
    "threads": (
        "import threading, time\nfor _ in range(60): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\ntime.sleep(10)",
        "thread",
    ),
    "one large file": ("with open('f', 'wb') as f:\n    while True: f.write(bytes(1 << 20))", "File too large"),
    "several files": (
        "import time\nfor i in range(5):\n    with open(f'f{i}', 'wb') as f: f.write(bytes(3 << 20))\ntime.sleep(10)",
        "files took more",
    ),
    "deleted files that stay open": (
        "import os, time\nkept = []\nfor i in range(5):\n    f = open('f', 'wb'); f.write(bytes(3 << 20)); f.flush(); os.remove('f'); kept.append(f)\ntime.sleep(10)",
        "files took more",
    ),
    "deleted files that stay mapped": (
        "import mmap, os, time\nkept = []\nfor i in range(5):\n    f = open('f', 'wb+'); f.write(bytes(3 << 20)); f.flush(); kept.append(mmap.mmap(f.fileno(), 4096)); f.close(); os.remove('f')\ntime.sleep(10)",
        "files took more",
    ),
    "allocated files": (
        "import os, time\nfor i in range(50): os.posix_fallocate(os.open(f'f{i}', os.O_CREAT | os.O_RDWR), 0, 3 << 20)\ntime.sleep(10)",
        "files took more",
    ),
    "files that nobody may look into": (
        "import os, time\nos.umask(0o777)\nos.mkdir('d', 0)\nfor i in range(5):\n    with open(f'f{i}', 'wb') as f: f.write(bytes(3 << 20))\ntime.sleep(10)",
        "files took more",
    ),
    "many files": (
        "import time\nfor i in range(300): open(f'f{i}', 'w').close()\ntime.sleep(10)",
        "more than 200 files",
    ),
    "deep folders": (
        "import os, time\nfor i in range(60):\n    os.mkdir('d'); os.chdir('d')\ntime.sleep(10)",
        "too deep",
    ),
    "closed folders": (
        "import os, time\nos.mkdir('d', 0o300)\nfor i in range(5):\n    with open(f'd/f{i}', 'wb') as f: f.write(bytes(3 << 20))\ntime.sleep(10)",
        "files took more",
    ),
    "output": ("while True: print('x' * 10_000)", "printed more"),
    "open files": ("def go():\n    l = []\n    while True: l.append(open('/dev/null'))\ngo()", "Too many open files"),
    "answers that nobody asked for": (
        "import os, struct\nwhile True:\n    for fd in range(3, 256):\n        try: os.write(fd, struct.pack('>I', 2) + b'{}')\n        except OSError: pass",
        "could not be read",
    ),
}


TELLING = "memory,threads,one large file,deleted files that stay open,many files,output,answers that nobody asked for"


@pytest.mark.parametrize(("code", "told"), telling(GREEDY, TELLING.split(",")))
async def test_too_much_is_ended(code: str, told: str, tmp_path: Path, able: None) -> None:
    folder = tmp_path / "w"
    async with PythonSandbox(folder, limits=SMALL) as sandbox:
        await sandbox.run("open('kept.txt', 'w').write('x')")
        outcome = await sandbox.run(code)
        assert outcome.status in {"error", "limit", "died"}, outcome
        assert told in outcome.error
        after = await sandbox.run("print(40 + 2, open('kept.txt').read())")
        assert after.output.endswith("42 x\n")
        assert sum(path.stat().st_blocks * 512 for path in folder.rglob("*")) < 9 << 20


async def test_files_of_the_user_in_the_folder_are_neither_counted_nor_removed(tmp_path: Path, able: None) -> None:
    folder = tmp_path / "w"
    (folder / "own").mkdir(parents=True)
    for number in range(300):
        (folder / "own" / str(number)).write_bytes(bytes(64 << 10))
    async with PythonSandbox(folder, limits=SMALL) as sandbox:
        assert (await sandbox.run("1")).status == "ok"
        outcome = await sandbox.run("for i in range(5): open(f'f{i}', 'wb').write(bytes(3 << 20))")
        assert outcome.status == "limit"
    assert len(list((folder / "own").iterdir())) == 300


BOMBS = {
    "files": "for i in range(200_000): open(f'i{i}', 'w').close()",
    "forks": "import os\nwhile True: os.fork()",
    "threads": "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,)).start()",
    "pipes": "import os\nl = []\nwhile True:\n    r, w = os.pipe(); l += [r, w]; os.set_blocking(w, False); os.write(w, bytes(1 << 20))",
}


@pytest.mark.heavy
@pytest.mark.parametrize("code", BOMBS.values(), ids=BOMBS)
async def test_a_bomb_harms_neither_the_host_nor_the_next_call(code: str, sandbox: PythonSandbox) -> None:
    outcome = await sandbox.run(code, seconds=10)
    assert len(outcome.text) < 50_000
    assert (await sandbox.run("40 + 2")).value == "42"


HOST = """
import asyncio, sys
from hira.tools.python import PythonSandbox
async def main():
    sandbox = PythonSandbox(sys.argv[1])
    await sandbox.run("1")
    print(sandbox._interpreter.process.pid, flush=True)
    await sandbox.run(sys.argv[2])
    await asyncio.sleep(60)
asyncio.run(main())
"""


@pytest.mark.heavy
@pytest.mark.parametrize(
    "code", ["1", "while True: pass", "import ctypes\nctypes.CDLL(None).prctl(1, 0)\nwhile True: pass"]
)
def test_when_the_host_is_killed_the_interpreter_goes_with_it(code: str, tmp_path: Path, able: None) -> None:
    host = subprocess.Popen([sys.executable, "-c", HOST, str(tmp_path / "w"), code], stdout=subprocess.PIPE)
    assert host.stdout is not None
    pid = int(host.stdout.readline())
    time.sleep(0.3)
    host.kill()
    host.wait()
    host.stdout.close()
    assert has_ended(pid)
