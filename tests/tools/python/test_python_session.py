"""A session as a model uses it, and what it bends without meaning to."""

import asyncio
import shutil
from pathlib import Path

import pytest

from hira.tools.python import PythonSandbox


async def test_prints_the_last_value_and_variables_come_back(sandbox: PythonSandbox) -> None:
    outcome = await sandbox.run("print('six')\n6 * 7")
    assert (outcome.status, outcome.output, outcome.value, outcome.error) == ("ok", "six\n", "42", "")
    await sandbox.run("a = [1, 2]\ndef double(x): return 2 * x")
    assert (await sandbox.run("double(sum(a))")).value == "6"
    assert (await sandbox.run("\n    b = 3\n    double(b)\n    ")).value == "6", "as small models write their code"
    assert (await sandbox.run("\n    len('''a\n   \nb''')")).value == "7", "texts keep their blanks"
    assert sandbox.folder.stat().st_mode & 0o777 == 0o700
    assert "line 2" in (await sandbox.run("x = 1\nif x\n    pass")).error


async def test_an_error_shows_the_lines_of_the_code_and_no_others_and_a_refusal_is_explained(
    sandbox: PythonSandbox,
) -> None:
    await sandbox.run("import json\ndef load(text):\n    return json.loads(text)")
    outcome = await sandbox.run("load('{')")
    assert outcome.status == "error"
    assert outcome.error.count("File ") == 2
    assert "return json.loads(text)" in outcome.error
    assert "JSONDecodeError" in outcome.error
    assert "decoder.py" not in outcome.error
    assert "no network" not in outcome.error
    assert "no network" in (await sandbox.run("import socket\nsocket.socket()")).error
    assert "no network" in (await sandbox.run("import urllib.request as u\nu.urlopen('http://example.org')")).error


async def test_written_files_come_back_as_paths_once(sandbox: PythonSandbox) -> None:
    outcome = await sandbox.run(
        "open('a.csv', 'w').write('1')\nimport os\nos.mkdir('sub')\nopen('sub/b.txt', 'w').write('2')"
    )
    assert outcome.files == (sandbox.folder / "a.csv", sandbox.folder / "sub" / "b.txt")
    assert (await sandbox.run("1")).files == ()
    assert (await sandbox.run("open('a.csv', 'a').write('2')")).files == (sandbox.folder / "a.csv",)
    assert (sandbox.folder / "a.csv").read_text() == "12"


async def test_long_output_keeps_its_head_and_tail(sandbox: PythonSandbox) -> None:
    outcome = await sandbox.run("print('START'); print('x' * 3_000_000); print('FINISH')\n'y' * 3_000_000")
    assert outcome.output.startswith("START")
    assert outcome.output.endswith("FINISH\n")
    assert "left out" in outcome.output
    assert "left out" in outcome.value
    assert len(outcome.text) < 50_000


BENT = {
    "closed descriptors": "import os\nos.close(1); os.close(2); os.close(0)",
    "output that raises": "import sys\nclass Bad:\n    def flush(self): raise SystemExit(3)\n    def write(self, s): raise KeyboardInterrupt\nsys.stdout = Bad()",
    "names of the language": "import builtins\nfor n in ('print', 'len', 'repr', 'isinstance', '__import__', 'str', 'dict'): setattr(builtins, n, None)",
    "modules": "import sys\nsys.modules.clear()",
    "the library that speaks": "import json, struct\njson.dumps = json.loads = None",
    "what runs it": "import sys\nw = sys.modules['hira_sandbox.worker']\nfor n in ('ast', 'shorten_text', 'explain_error', 'signal', 'pack_frame'): setattr(w, n, None)",
    "sockets closed": "import gc, socket\nfor o in gc.get_objects():\n    if isinstance(o, socket.socket): o.close()",
    "another end in place of the channel": "import os, socket\na, b = socket.socketpair()\nfor fd in range(3, 256):\n    try:\n        if fd not in (a.fileno(), b.fileno()): os.fstat(fd); os.dup2(a.fileno(), fd)\n    except OSError: pass",
    "an alarm": "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0.2)",
    "exit at once": "import os\nos._exit(0)",
    "a crash": "import ctypes\nctypes.string_at(0)",
    "a value that cannot be shown": "class R:\n    def __repr__(self): raise SystemExit('boo')\nR()",
    "answers ahead": "import os, json, struct\nd = json.dumps({'id': 'x', 'value': 'AHEAD'}).encode()\nfor fd in range(3, 256):\n    try: os.write(fd, struct.pack('>I', len(d)) + d)\n    except OSError: pass",
    "nested too deep to compile": "-" * 5000 + "1",
    "a thread that stays": "import threading, time\nthreading.Thread(target=time.sleep, args=(100,)).start()",
    "its folder emptied": "import os, shutil\nfor n in os.listdir(): shutil.rmtree(n, ignore_errors=True)\nos.rmdir('.')",
}


@pytest.mark.parametrize("code", BENT.values(), ids=BENT)
async def test_the_next_call_works_after(code: str, sandbox: PythonSandbox) -> None:
    first = await sandbox.run(code, seconds=10)
    assert first.status != "timeout"
    code = "import json, os, tempfile\ntempfile.TemporaryFile().close()\nprint(40 + 2, json.dumps([1]), os.getcwd())"
    after = await sandbox.run(code, seconds=10)
    assert (after.status, after.output.splitlines()[-1:]) == ("ok", [f"42 [1] {sandbox.folder}"]), after.text
    assert "AHEAD" not in after.text


async def test_what_a_call_left_behind_does_not_end_a_later_one(sandbox: PythonSandbox) -> None:
    timers = "signal.setitimer(signal.ITIMER_PROF, 0.1); signal.setitimer(signal.ITIMER_VIRTUAL, 0.1)"
    await sandbox.run(f"import faulthandler, signal\n{timers}\nfaulthandler.dump_traceback_later(0.1, exit=True)")
    work = "import tempfile, time\nend = time.process_time() + 0.3\nwhile time.process_time() < end: pass\ntempfile.TemporaryFile().close()\n42"
    outcome = await sandbox.run(work)
    assert (outcome.status, outcome.value) == ("ok", "42"), outcome


DEATHS = {
    "import os; os._exit(3)": "The code ended Python (exit status 3).",
    "import os; os.kill(os.getpid(), 9)": "Python was killed",
    "import os; os.kill(os.getpid(), 15)": "Python crashed (Terminated).",
    "import ctypes; ctypes.string_at(0)": "Python crashed (Segmentation fault).",
    "import os, time\nos.closerange(3, 256); time.sleep(9)": "the code closed what Python answers through",
    "import os, time\nfor fd in range(3, 256):\n    try: os.write(fd, b'?' * 9)\n    except OSError: pass\ntime.sleep(9)": (
        "could not be read"
    ),
}


@pytest.mark.parametrize(("code", "told"), DEATHS.items())
async def test_why_python_ended_is_told_in_one_line(code: str, told: str, sandbox: PythonSandbox) -> None:
    outcome = await sandbox.run(code, seconds=5)
    assert outcome.status == "died"
    assert told in outcome.error
    assert "\n" not in outcome.error


async def test_a_call_that_takes_too_long_is_interrupted_or_killed_and_this_is_told(sandbox: PythonSandbox) -> None:
    outcome = await sandbox.run("x = 5\nprint('working')\nwhile True: pass", seconds=1)
    assert (outcome.status, outcome.restarted, outcome.output) == ("timeout", False, "working\n")
    assert "after 1 s" in outcome.error
    assert (await sandbox.run("x")).value == "5"
    stubborn = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    outcome = await sandbox.run(stubborn, seconds=0.3)
    assert (outcome.status, outcome.restarted) == ("timeout", True)
    assert "variables are lost" in outcome.error
    assert (await sandbox.run("1 + 1")).value == "2"


async def test_a_folder_that_was_deleted_from_outside_is_made_anew(sandbox: PythonSandbox) -> None:
    await sandbox.run("x = 1")
    await asyncio.to_thread(shutil.rmtree, sandbox.folder)
    outcome = await sandbox.run("open('new.txt', 'w').write('ok')")
    assert (outcome.status, outcome.restarted) == ("ok", True)
    assert "folder was gone" in outcome.output
    assert (sandbox.folder / "new.txt").read_text() == "ok"


async def test_a_cancelled_call_leaves_nothing_running(sandbox: PythonSandbox) -> None:
    await sandbox.run("1")
    assert sandbox._interpreter is not None
    pid = sandbox._interpreter.process.pid
    call = asyncio.create_task(sandbox.run("while True: pass"))
    await asyncio.sleep(0.1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await sandbox.run("1 + 1")).value == "2"
    assert not Path(f"/proc/{pid}").exists()


async def test_nothing_runs_between_two_calls(sandbox: PythonSandbox) -> None:
    code = "import os, signal, threading, time\nseen = []\ndef go():\n    while True:\n        seen.append(1); time.sleep(0.01)\n"
    code += "        try: os.kill(os.getpid(), signal.SIGCONT)\n        except OSError: pass\nthreading.Thread(target=go, daemon=True).start()"
    await sandbox.run(code)
    before = int((await sandbox.run("len(seen)")).value)
    await asyncio.sleep(1)
    assert int((await sandbox.run("len(seen)")).value) - before < 60


async def test_the_loop_is_free_while_code_runs(sandbox: PythonSandbox) -> None:
    await sandbox.run("1")
    ticks = 0
    call = asyncio.create_task(sandbox.run("import time\nfor _ in range(20): print('x' * 50_000); time.sleep(0.01)"))
    while not call.done():
        await asyncio.sleep(0.002)
        ticks += 1
    assert (await call).status == "ok"
    assert ticks > 20


async def test_closing_ends_the_process_and_keeps_the_files(tmp_path: Path, able: None) -> None:
    async with PythonSandbox(tmp_path / "w") as sandbox:
        await sandbox.run(
            "open('kept.txt', 'w').write('x')\nimport tempfile\ntempfile.NamedTemporaryFile(delete=False)"
        )
        assert sandbox._interpreter is not None
        pid = sandbox._interpreter.process.pid
    assert not Path(f"/proc/{pid}").exists()
    assert [path.name for path in (tmp_path / "w").iterdir()] == ["kept.txt"]


async def test_numpy_works_where_the_user_has_it(sandbox: PythonSandbox) -> None:
    pytest.importorskip("numpy")
    outcome = await sandbox.run(
        "import numpy as np\nround(float(np.linalg.det(np.array([[6., 0], [0, 7]]))))", seconds=60
    )
    assert outcome.value == "42", outcome.text


async def test_an_open_figure_is_saved_and_a_saved_one_is_not_saved_again(sandbox: PythonSandbox) -> None:
    pytest.importorskip("matplotlib")
    outcome = await sandbox.run("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()", seconds=60)
    assert [path.name for path in outcome.files] == ["figure-1-1.png"]
    assert outcome.output == ""
    outcome = await sandbox.run("plt.plot([1, 2])\nplt.savefig('mine.png')", seconds=60)
    assert [path.name for path in outcome.files] == ["mine.png"]
