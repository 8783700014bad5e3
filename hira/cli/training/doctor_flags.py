"""The flags of `hira-train doctor`. Light: it is read at every start."""

from typing import Any


def add(commands: Any) -> None:
    doctor = commands.add_parser(
        "doctor",
        help="what is wrong with a run, or would be",
        description="Look for what is known to go wrong: in a configuration before a run, or in what a run has left by "
        "now. Ends with 1 if there is a fault.",
    )
    doctor.add_argument(
        "configuration", nargs="+", metavar="RUN|FILE.toml|KEY=VALUE", help="the folder of a run, or what one is to be"
    )
    doctor.add_argument("--json", action="store_true", help="one JSON array on stdout")
    doctor.add_argument("--debug", action="store_true", help="show tracebacks")
