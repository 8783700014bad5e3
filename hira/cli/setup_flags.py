"""The flags of `hira init`, `hira completion` and `hira support-bundle`. Light: it is read at every start."""

from typing import Any

SHELLS = ("bash", "zsh", "fish")


def add_init(commands: Any) -> None:
    init = commands.add_parser(
        "init",
        help="write a hira.toml from what is found here, and try it",
        description="Write a commented hira.toml from what is found: keys, local servers, searches, documents.",
    )
    init.add_argument("--docs", action="append", metavar="PATH", help="file or folder to search; found by itself")
    init.add_argument("--force", action="store_true", help="overwrite a hira.toml that is there")
    init.add_argument("--no-try", action="store_true", help="write the file and ask no question")
    init.add_argument("--debug", action="store_true", help="show tracebacks")


def add(commands: Any) -> None:
    completion = commands.add_parser(
        "completion",
        help="print what a shell needs to complete hira's commands and flags",
        description="Print a script for the shell; docs/cli.md tells where it goes.",
    )
    completion.add_argument("shell", choices=SHELLS, help="the shell: bash, zsh or fish")
    bundle = commands.add_parser(
        "support-bundle",
        help="write versions, settings and the last run's course into a ZIP file, without keys and texts",
        description="Write what somebody who helps you needs to know into a ZIP file, without keys and texts.",
    )
    bundle.add_argument("-o", "--output", required=True, metavar="FILE", help="the ZIP file, such as bundle.zip")
    bundle.add_argument("--journal", metavar="FILE", help="the file of records; yours by default")
    bundle.add_argument("--debug", action="store_true", help="show tracebacks")
