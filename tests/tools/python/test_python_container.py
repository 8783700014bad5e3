"""Python in a container: what the engine is told, and how a session goes with an engine that is a stand-in.

No engine runs where these tests run, as in most places. The stand-in reads the command line as an engine would, starts
the worker as a process with the mounts' paths put in place, and ends it when it is told to remove the container.
"""

import json
import os
import stat
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from python_host import has_ended

from hira.tools.python import IMAGE, PythonLimits, PythonSandbox, refusal, sandbox_layers
from hira.tools.python.container import Container, engine, explain_missing_image
from hira.tools.python.process import BOOT, WORKER, command, environment

ENGINE = r"""
import csv, json, os, signal, subprocess, sys
from pathlib import Path
state = Path(__file__).parent / "state"
state.mkdir(exist_ok=True)
verb, *rest = sys.argv[1:]
with (state / "asked").open("a") as log:
    log.write(json.dumps(sys.argv[1:]) + "\n")
if verb == "image":
    sys.exit("Error: No such image" if rest[-1] == "missing:1" else 0)
if verb == "rm":
    pid = int((state / rest[-1]).read_text())
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    sys.exit(0)
flags, plain, mounts, environ = {}, [], {}, {}
while rest:
    word = rest.pop(0)
    if not word.startswith("--"):
        break
    if word in ("--rm", "--interactive", "--init", "--read-only"):
        plain.append(word)
        continue
    value = rest.pop(0)
    if word == "--mount":
        (fields,) = csv.reader([value])
        told = dict(field.partition("=")[::2] for field in fields)
        mounts[told["target"]] = told["source"]
    elif word == "--env":
        name, _, content = value.partition("=")
        environ[name] = content
    else:
        flags.setdefault(word, []).append(value)
image, program, *arguments = word, *rest
arguments = [mounts.get(argument, argument) if argument == "/hira_sandbox" else argument for argument in arguments]
os.chdir(flags["--workdir"][0])
child = subprocess.Popen([sys.executable, *arguments], env=environ, start_new_session=True)
(state / flags["--name"][0]).write_text(str(child.pid))
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, lambda number, _: child.send_signal(number))
sys.exit(child.wait())
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A docker on the PATH; the folder in which it notes what it was asked."""
    place = tmp_path / "bin"
    place.mkdir()
    (place / "docker").write_text(f"#!{sys.executable}\n{ENGINE}")
    (place / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(place))
    return place / "state"


@pytest_asyncio.fixture
async def sandbox(tmp_path: Path, stand_in: Path) -> AsyncIterator[PythonSandbox]:
    (tmp_path / "table, one.csv").write_text("a,b\n1,2\n")
    readable = (tmp_path / "table, one.csv",)
    async with PythonSandbox(tmp_path / "work" / "1", sandbox="container", readable=readable, label="1") as made:
        yield made


def asked(state: Path) -> list[list[str]]:
    return [json.loads(line) for line in (state / "asked").read_text().splitlines()]


def test_the_command_line_is_exactly_this(tmp_path: Path) -> None:
    worker = Path(sys.modules["hira.tools.python"].__file__ or "").parent
    got = command(
        Container("/usr/bin/docker", "hira-1"),
        "python:3.13-slim",
        Path("/tmp/run/1"),
        ["/docs/a, b.csv"],
        PythonLimits(memory=1000, threads=9),
    )
    environ = environment(Path("/tmp/run/1"))
    assert set(environ) >= {"LANG", "TZ", "HOME", "PYTHONHASHSEED"}
    assert got == [
        *("/usr/bin/docker", "run", "--rm", "--interactive", "--init", "--pull", "never", "--name", "hira-1"),
        *("--network", "none", "--ipc", "private", "--hostname", "hira", "--read-only"),
        *("--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--security-opt", "label=disable"),
        *("--user", f"{os.getuid()}:{os.getgid()}"),
        *("--memory", "1200", "--memory-swap", "1200", "--cpus", "2", "--pids-limit", "9", "--shm-size", "67108864"),
        *("--ulimit", "cpu=3600:3600", "--ulimit", "core=0:0", "--log-driver", "none", "--workdir", "/tmp/run/1"),
        *(part for name, value in environ.items() for part in ("--env", f"{name}={value}")),
        *("--mount", f"type=bind,source={worker},target={WORKER},readonly"),
        *("--mount", "type=bind,source=/tmp/run/1,target=/tmp/run/1"),
        *("--mount", 'type=bind,"source=/docs/a, b.csv","target=/docs/a, b.csv",readonly'),
        *("python:3.13-slim", "python3", "-S", "-s", "-P", "-B", "-X", "utf8", "-c", BOOT, WORKER, "0"),
    ]


async def test_variables_output_files_and_errors_come_back(sandbox: PythonSandbox, tmp_path: Path) -> None:
    first = await sandbox.run("import os\nx = 6\nprint('out')\nopen('a.txt', 'w').write('text')\nx * 7")
    assert (first.status, first.output, first.value) == ("ok", "out\n", "42")
    assert [path.name for path in first.files] == ["a.txt"]
    assert (await sandbox.run("x")).value == "6"
    failed = await sandbox.run("1 / 0")
    assert failed.status == "error"
    assert "ZeroDivisionError" in failed.error
    told = await sandbox.run(f"open({str(tmp_path / 'table, one.csv')!r}).read()")
    assert told.value == repr("a,b\n1,2\n")
    assert (
        await sandbox.run("import sys; os.write(1, b'one '); os.system('echo two'); sys.stdin.read()")
    ).value == "''"
    assert sandbox.layers == ("process", "limits", "privileges", "container")


async def test_a_call_that_cannot_be_interrupted_has_its_container_removed(
    sandbox: PythonSandbox, stand_in: Path
) -> None:
    await sandbox.run("1")
    (name,) = [line[line.index("--name") + 1] for line in asked(stand_in) if line[0] == "run"]
    pid = int((stand_in / name).read_text())
    stubborn = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    outcome = await sandbox.run(stubborn, seconds=0.5)
    assert outcome.restarted
    assert outcome.status == "timeout"
    assert ["rm", "--force", "--volumes", name] in asked(stand_in)
    assert has_ended(pid)
    assert (await sandbox.run("6 * 7")).value == "42"


def test_what_is_missing_is_said(tmp_path: Path, stand_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not refusal("container", "there:1")
    assert [layer.active for layer in sandbox_layers("container", "there:1")] == [True, True]
    assert refusal("container", "missing:1").endswith("(container: run: docker pull missing:1)")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert engine() == ""
    assert refusal("container").endswith("(container: needs docker or podman)")
    broken = tmp_path / "docker"
    broken.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('Cannot connect to the daemon at unix:///d.sock')")
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    assert (
        explain_missing_image(str(broken), IMAGE)
        == "docker does not answer: Cannot connect to the daemon at unix:///d.sock"
    )
