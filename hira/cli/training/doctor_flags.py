"""The flags of `hira-train doctor`. Light: it is read at every start."""

from typing import Any


def add(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="find problems of a run, or of its configuration",
        description="Check for known problems: in a configuration before a run, or in the files of a run. Exits with 1 "
        "if there is a fault.",
    )
    doctor.add_argument(
        "configuration", nargs="+", metavar="RUN|FILE.toml|KEY=VALUE", help="the folder of a run, or a configuration"
    )
    doctor.add_argument("--json", action="store_true", help="one JSON array on stdout")
    doctor.add_argument("--debug", action="store_true", help="show tracebacks")
