"""The flags of `hira-train export`. Light: it is read at every start."""

from typing import Any


def add(commands: Any) -> None:
    export = commands.add_parser(
        "export",
        help="export the rollouts for a trainer on several machines",
        description="Write the workflow with its questions as an environment of verifiers, which prime-rl trains on.",
    )
    export.add_argument(
        "configuration", nargs="+", metavar="FILE.toml|KEY=VALUE", help="a TOML file of a run, then overrides of it"
    )
    export.add_argument("-o", "--output", default="environment", metavar="DIR", help="output folder (environment)")
    export.add_argument("--name", default="hira_env", metavar="NAME", help="name of the package (hira_env)")
    export.add_argument("--debug", action="store_true", help="show tracebacks")
