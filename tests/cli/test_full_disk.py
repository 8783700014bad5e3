"""A full disk, a real one: a small file system in memory. One clear message, and the run continues or ends."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Command

SIZE = 640 * 1024
QUESTION = "What is 2 + 2?"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if not (mount and umount):
        pytest.skip("no file system can be mounted here")
    mounted = subprocess.run(
        [mount, "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield folder
    finally:
        subprocess.run([umount, "-l", str(folder)], check=True)


def filled(disk: Path, *, left: int = 0) -> None:
    (disk / "fill").write_bytes(b"0" * (SIZE - left))


def hira(tmp_path: Path, *argv: str, **environ: str) -> tuple[int, str, list[str]]:
    said = Command(tmp_path, environ)(*argv)
    return said.code, said.out, said.err.splitlines()


def about_the_disk(err: list[str]) -> list[str]:
    return [line for line in err if "full" in line or "No space" in line or "disk" in line]


@pytest.mark.parametrize("left", [0, 64 * 1024])
def test_a_run_whose_journal_is_on_a_full_disk_answers_and_says_once_that_it_is_not_recorded(
    disk: Path, tmp_path: Path, left: int
) -> None:
    filled(disk, left=left)
    code, out, err = hira(tmp_path, "ask", QUESTION, "--model", "offline", "--journal", str(disk / "j.sqlite"))
    assert (code, out.splitlines()[0]) == (0, "2 + 2 = 4. [s1]")
    assert len(about_the_disk(err)) <= 1
    if not about_the_disk(err):
        (disk / "fill").unlink()
        code, _, err = hira(tmp_path, "show", "last", "--journal", str(disk / "j.sqlite"))
        assert code == 0, err


@pytest.mark.parametrize("begun", [False, True])
def test_a_journal_that_may_only_be_read_costs_no_answer_and_is_one_line(
    disk: Path, tmp_path: Path, *, begun: bool
) -> None:
    journal = str(disk / "state" / "j.sqlite")
    if begun:
        assert hira(tmp_path, "ask", QUESTION, "--model", "offline", "--journal", journal)[0] == 0
    remount = [str(shutil.which("mount")), "-o", "remount,ro", str(disk)]
    if subprocess.run(remount, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be made read-only here")
    code, out, err = hira(tmp_path, "ask", QUESTION, "--model", "offline", "--journal", journal)
    assert (code, out.splitlines()[0]) == (0, "2 + 2 = 4. [s1]")
    (line,) = [line for line in err if "not recorded" in line]
    assert "Read-only file system" in line
    code, out, err = hira(tmp_path, "runs", "--journal", journal)
    assert (code, out) == (2, "")
    assert ("Read-only file system" if begun else "no runs are recorded yet") in err[0]
    assert len(err) <= 3


def test_an_answer_whose_file_cannot_be_written_is_printed_and_hira_show_is_named(disk: Path, tmp_path: Path) -> None:
    filled(disk)
    code, out, err = hira(
        tmp_path, "ask", QUESTION, "--model", "offline", "-q", "--journal", str(tmp_path / "j.sqlite"),
        "-o", str(disk / "a.md"),
    )  # fmt: skip
    assert (code, out.splitlines()[0]) == (2, "2 + 2 = 4. [s1]")
    assert "the file could not be written" in err[-3]
    assert "`hira show last` prints the answer" in err[-1]


@pytest.mark.parametrize("left", [0, 160 * 1024])
def test_an_index_that_cannot_be_kept_is_made_in_memory(disk: Path, tmp_path: Path, left: int) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "t.txt").write_text("The tower of Varn is 31 m high.\n", encoding="utf-8")
    more = "\n\n".join(f"Row {row} of the register names {row * 7919}." for row in range(4_000))
    (tmp_path / "docs" / "u.txt").write_text(more, encoding="utf-8")
    filled(disk, left=left)
    code, out, err = hira(
        tmp_path, "ask", "How high is the tower of Varn?", "--docs", "docs", "--model", "offline", "--journal", "off",
        HIRA_CACHE=str(disk / "cache"),
    )  # fmt: skip
    assert (code, "31 m" in out) == (0, True)
    assert len(about_the_disk(err)) == 1


@pytest.mark.heavy(seconds=2)
def test_answers_that_cannot_be_written_end_a_batch_with_what_to_do(disk: Path, tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text(f'{{"question": "{QUESTION}"}}\n', encoding="utf-8")
    filled(disk)
    command = ("ask", "--batch", "q.jsonl", "--output", str(disk / "a.jsonl"), "--model", "offline", "--quiet")
    code, _, err = hira(tmp_path, *command)
    assert code == 2
    assert [line.strip() for line in err[-3:]] == [
        "hira: the answers cannot be written: No space left on device",
        f"to {disk / 'a.jsonl'}",
        "free some space, then run the same command again: answers in the file are kept",
    ]
    (disk / "fill").unlink()
    assert hira(tmp_path, *command)[0] == 0
    assert "2 + 2 = 4" in (disk / "a.jsonl").read_text(encoding="utf-8")
