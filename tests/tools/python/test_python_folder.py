"""The work folder as hostile ground."""

import os
from pathlib import Path

from hira.runtime.toolset import remove_folder
from hira.tools.python.folder import FolderContent, clear, find_written, look, read, remove


def deep(folder: Path, levels: int) -> None:
    """Nested folders whose path is longer than a path can be."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d" * 100, dir_fd=here)
        inner = os.open("d" * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)


def test_the_work_folder_of_a_run_is_removed_whatever_programs_left_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    deep(folder, 1100)
    (folder / "link").symlink_to("/etc")
    (folder / "closed").mkdir(0)
    remove_folder(folder)
    assert not folder.exists()
    assert Path("/etc").is_dir()


def test_clearing_keeps_what_is_named_and_the_folders_above_it(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "kept").write_text("1")
    before = look(tmp_path, 100)
    (tmp_path / "a" / "new").write_text("2")
    (tmp_path / "c" / "d").mkdir(parents=True)
    (tmp_path / "c" / "d" / "new").write_text("3")
    clear(tmp_path, before)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["a", "a/b", "a/b/kept"]


def test_names_that_break_lines_or_hide_are_not_repeated() -> None:
    names = ["fine", "a\u2028b", "a\u00adb", "a\u061cb", "a\U000e0041b", "a\u00a0b", "a\ufffdb"]
    assert find_written({}, dict.fromkeys(names, (1, 1, 1))) == (["fine"], 6)


def test_links_are_neither_followed_nor_read_nor_emptied(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("s")
    (work / "folder").symlink_to(outside)
    (work / "file").symlink_to(outside / "secret")
    found = look(work, 100)
    assert sorted(found.files) == ["file", "folder"]
    assert find_written({}, found.files) == ([], 0)
    for place in ("file", "folder/secret"):
        try:
            read(work, place, 10)
        except OSError:
            continue
        raise AssertionError(place)
    remove(work, ["folder"])
    clear(work, FolderContent())
    assert (outside / "secret").read_text() == "s"
