"""What is reported, what is refused, and what the filter decides on each architecture."""

import contextlib
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from hira.core.errors import ToolError
from hira.tools.python import Mode, PythonSandbox, sandbox_layers, seccomp
from hira.tools.python.sandbox import readable_paths
from hira.tools.python.seccomp import MISSING, NUMBERS, PRETENDED, REFUSED
from hira.tools.python.trial import TRIES, try_programs
from tests.tools.made_documents import read_file

ME = 4321
ALLOWED, KILLED = 0x7FFF0000, 0x80000000


def decide(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """Run the filter's program on one call, as the kernel would: 0 lets it pass, -1 kills, else the errno + 1000."""
    data = {0: number, 4: {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}[machine] if audit is None else audit}
    for index, value in enumerate((*arguments, *[0] * (6 - len(arguments)))):
        data[16 + 8 * index], data[20 + 8 * index] = value & 0xFFFFFFFF, (value >> 32) & 0xFFFFFFFF
    program, at, word = seccomp.program(machine, ME), 0, 0
    while True:
        code, true, false, operand = program[at]
        at += 1
        if code == 0x20:
            word = data[operand]
        elif code == 0x54:
            word &= operand
        elif code == 0x05:
            at += operand
        elif code == 0x06:
            return 0 if operand == ALLOWED else -1 if operand == KILLED else 1000 + (operand & 0xFFFF)
        else:
            holds = {0x15: word == operand, 0x35: word >= operand, 0x45: bool(word & operand)}[code]
            at += true if holds else false


MACHINES = {"x86_64": 0, "aarch64": 1}


def test_the_filter_refuses_pretends_and_misses_what_its_tables_say() -> None:
    for machine in MACHINES:
        for names, result in ((REFUSED, 1001), (PRETENDED, 1000), (MISSING, 1038)):
            for name in names:
                if (number := NUMBERS[name][MACHINES[machine]]) is not None:
                    assert decide(machine, number) == result, name
        assert decide(machine, 469 + 1) == 1038
        assert decide(machine, 63 if machine == "aarch64" else 0) == 0  # read
        assert decide(machine, 1, audit=0x40000003) == -1  # i386
        if machine == "x86_64":
            assert decide(machine, 0x40000001) == -1


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The packages of a Python at whose start a `.pth` file of the user reads and prints."""
    venv.create(tmp_path / "venv", symlinks=True)
    (library,) = (tmp_path / "venv").glob("lib/*/site-packages")
    (library / "all.pth").write_text("\n".join(path for path in sys.path if path.endswith("-packages")))
    (library / "noisy.pth").write_text(
        "import os, sys; print('hello'); os.write(1, b'raw\\n'); sys.noisy = os.read(0, 9)"
    )
    (library / "own.py").write_text("NAME = 'own'")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv" / "bin" / "python"))
    return library


async def test_what_a_pth_file_prints_reaches_neither_the_channel_nor_a_call(library: Path, able: None) -> None:
    modes: tuple[Mode, ...] = ("auto", "process", "off")
    for mode in modes:
        async with PythonSandbox(library / mode, sandbox=mode) as sandbox:
            outcome = await sandbox.run("import own, sys\nown.NAME, sys.noisy")
        assert (outcome.output, outcome.value) == ("", "('own', b'')"), outcome


def test_what_a_pth_file_prints_is_no_part_of_a_file_that_is_read(library: Path) -> None:
    (library / "noisy.pth").write_text("import os; os.write(1, b'raw\\n')")
    (library / "a.csv").write_text("town,people\nPerm,7")
    assert read_file(library / "a.csv").text == "town: Perm | people: 7"


def test_every_layer_is_reported_with_what_it_holds_or_why_it_is_missing() -> None:
    layers = {layer.name: layer for layer in sandbox_layers()}
    assert list(layers) == ["process", "limits", "privileges", "landlock", "seccomp"]
    assert all(layer.note for layer in layers.values())
    less = {layer.name: layer for layer in sandbox_layers("process")}
    assert less["limits"].active
    assert not less["landlock"].active
    assert "switched off" in less["seccomp"].note
    assert [layer.name for layer in sandbox_layers("off") if layer.active] == ["process"]


WITHOUT_LANDLOCK = """
import asyncio, ctypes, struct, sys
from hira.core.errors import ToolError
from hira.tools.python import PythonSandbox
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
steps = [(0x20, 0, 0, 0), (0x15, 0, 1, 444), (0x06, 0, 0, 0x50000 | 38), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
assert libc.prctl(22, 2, struct.pack("=H6xQ", len(steps), ctypes.addressof(code)), 0, 0) == 0
async def main():
    async with PythonSandbox(sys.argv[1]) as sandbox:
        try: print(await sandbox.run("1"))
        except ToolError as error: print("refused:", error)
    async with PythonSandbox(sys.argv[1], sandbox="process") as sandbox:
        print((await sandbox.run("6 * 7")).value, sandbox.layers)
asyncio.run(main())
"""


def test_a_kernel_without_landlock_is_refused_unless_the_user_says_otherwise(tmp_path: Path, able: None) -> None:
    script = [sys.executable, "-c", WITHOUT_LANDLOCK, str(tmp_path / "w")]
    seen = subprocess.run(script, capture_output=True, text=True, check=True).stdout.splitlines()
    assert seen[0].startswith("refused: Python code does not run here")
    assert "landlock: this kernel has no Landlock" in seen[0]
    assert '"process"' in seen[1]
    assert seen[2] == "42 ('process', 'limits', 'privileges')"


FEW_FILES = """
import asyncio, os, resource, sys
from hira.tools.python import PythonSandbox
async def main():
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 2, 4096))
    asyncio.get_running_loop().call_later(0.1, resource.setrlimit, resource.RLIMIT_NOFILE, (4096, 4096))
    async with PythonSandbox(sys.argv[1], sandbox="process") as sandbox:
        print((await sandbox.run("6 * 7")).value)
asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_python_starts_once_files_can_be_opened_again(tmp_path: Path) -> None:
    script = [sys.executable, "-c", FEW_FILES, str(tmp_path / "w")]
    assert subprocess.run(script, capture_output=True, text=True, check=True).stdout == "42\n"


def test_hira_can_be_imported_where_the_modules_of_unix_are_missing() -> None:
    script = "import sys; sys.modules.update(dict.fromkeys(('fcntl', 'resource')))\nimport hira.api, hira.tools.python"
    subprocess.run([sys.executable, "-c", script], check=True)


async def test_an_interpreter_that_cannot_start_says_why(tmp_path: Path, able: None) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file")
    with pytest.raises(ToolError, match="could not be started"):
        await PythonSandbox(taken).run("1")


async def test_a_trial_sees_what_goes_through(tmp_path: Path) -> None:
    programs = {name: code.format(outside=str(tmp_path / "f"), port=9) for name, code in TRIES.items()}
    (tmp_path / "f").write_text("x")
    async with PythonSandbox(tmp_path / "w", sandbox="process") as sandbox:
        assert (await try_programs(sandbox, programs)).through == ("read", "write", "start programs")


async def test_a_user_can_do_without_the_protection(tmp_path: Path) -> None:
    (tmp_path / "beside").write_text("seen")
    for mode in ("process", "off"):
        async with PythonSandbox(tmp_path / mode, sandbox=mode) as sandbox:  # type: ignore[arg-type]
            assert (await sandbox.run(f"open({str(tmp_path / 'beside')!r}).read()")).value == "'seen'"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("mode", ["process", "off"])
async def test_a_program_that_left_the_session_ends_with_the_sandbox(mode: Mode, tmp_path: Path) -> None:
    code = (
        "import subprocess, time\np = subprocess.Popen(['sleep', '60'], start_new_session=True)\ntime.sleep(0.2)\np.pid"
    )
    async with PythonSandbox(tmp_path / "w", sandbox=mode) as sandbox:
        pid = (await sandbox.run(code)).value
        assert "(sleep) S" in Path(f"/proc/{pid}/stat").read_text()
    with contextlib.suppress(FileNotFoundError):  # reaped, or ended and not yet reaped
        assert " Z " in Path(f"/proc/{pid}/stat").read_text()


def test_hidden_parts_links_and_the_home_folder_are_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "docs").mkdir(parents=True)
    (home / ".ssh").mkdir()
    (home / "link").symlink_to("/etc")
    (home / "server.pem").touch()
    monkeypatch.setenv("HOME", str(home))
    assert readable_paths([home / "docs"]) == ([str(home / "docs")], [])
    assert readable_paths([home]) == ([str(home / "docs")], [str(home)])
    assert readable_paths([tmp_path]) == ([str(home / "docs")], [str(tmp_path), str(home)])
    assert readable_paths([home / "missing"]) == ([str(home / "missing")], [])


def test_what_is_closed_and_what_an_evaluation_left_are_not_opened(tmp_path: Path) -> None:
    for name in ("notes.md", "questions.jsonl", "eval/q/plan.json", "eval/q/records.jsonl", "own/a.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    opened, listed = readable_paths([tmp_path], {tmp_path / "questions.jsonl"})
    assert sorted(opened) == [str(tmp_path / "notes.md"), str(tmp_path / "own")]
    assert listed == [str(tmp_path), str(tmp_path / "eval")]
    assert readable_paths([tmp_path / "own"], {tmp_path / "own"}) == ([], [])
    assert readable_paths([tmp_path / "own" / "a.md"], {tmp_path / "own"}) == ([], []), "what lies in it is closed, too"
