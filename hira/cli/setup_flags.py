"""The flags of `hira init` and `hira completion`. Light: it is read at every start."""

from typing import Any

SHELLS = ("bash", "zsh", "fish")


def add_init(commands: Any) -> None:
    init = commands.add_parser(
        "init",
        help="write a hira.toml for this folder, and test it",
        description="Write a commented hira.toml from what is found: keys, local servers, searches, documents.",
    )
    init.add_argument(
        "--docs", action="append", metavar="PATH", help="file or folder to search (default: found automatically)"
    )
    init.add_argument("--force", action="store_true", help="overwrite a hira.toml that is there")
    init.add_argument("--no-try", action="store_true", help="write the file without testing it")
    init.add_argument("--debug", action="store_true", help="show tracebacks")


def add(commands: Any) -> None:
    completion = commands.add_parser(
        "completion",
        help="print a script that completes hira's commands and flags in a shell",
        description="Print a script for the shell; docs/cli.md explains where to put it.",
    )
    completion.add_argument("shell", choices=SHELLS, help="the shell: bash, zsh or fish")
