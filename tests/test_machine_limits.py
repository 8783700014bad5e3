"""A machine that has run out of something is told as that, not as a fault of hira."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from hira.core.errors import of_the_machine

SCARCE = {
    "files of this process": (OSError(errno.EMFILE, "Too many open files"), "ulimit -n"),
    "processes": (BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable"), "ulimit -u"),
    "threads": (RuntimeError("can't start new thread"), "ulimit -u"),
    "memory": (MemoryError(), "out of memory"),
}
OTHERS = [OSError(errno.ENOENT, "No such file or directory"), RuntimeError("a fault"), ValueError(24), OSError("odd")]


@pytest.mark.parametrize(("error", "fix"), SCARCE.values(), ids=SCARCE)
def test_what_is_scarce_is_named_with_what_to_do(error: Exception, fix: str) -> None:
    told = of_the_machine(error)
    assert told is not None
    assert told.what.startswith("the machine is at a limit: ")
    assert fix in told.fix


@pytest.mark.parametrize("error", OTHERS, ids=repr)
def test_other_errors_say_nothing_of_the_machine(error: Exception) -> None:
    assert of_the_machine(error) is None


@pytest.mark.skipif(os.name != "posix", reason="needs limits of a process")
def test_a_command_without_open_files_to_spare_says_so(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("The mill of Dorn was built in 1871.")
    asked = [sys.executable, "-m", "hira", "ask", "When was the mill of Dorn built?", "--docs", "docs"]
    done = subprocess.run(
        asked,
        cwd=tmp_path,
        env={**os.environ, "HIRA_MODEL": "offline", "HIRA_CACHE": str(tmp_path / "cache")},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (6, 6)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "the machine is at a limit: [Errno 24] Too many open files" in done.stderr
    assert "ulimit -n" in done.stderr
    assert "fault" not in done.stderr
