"""Says what to do about a mistake on the command line: the nearest command or value, or where the help is."""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hira.core.errors import suggest

if TYPE_CHECKING:
    from hira.cli.flags import Parser


def advise(message: str, prog: str, hints: Mapping[str, str], commands: "Iterable[Parser]") -> str:
    """Suggest the nearest command or value, or one of the `commands` that has it as its own command or flag, such as
    `hira ask --batch` for `batch`; otherwise point to the help."""
    if missing := re.search(r"arguments are required: ([\w-]+)", message):
        return hints.get(missing[1], f"{prog} --help shows how to use it")
    if number := re.search(r"argument (\S+): invalid (int|float) value", message):
        return f"write a {'whole ' * (number[2] == 'int')}number after {number[1]}"
    if number := re.search(r"argument (\S+): .* is not a number of (\d) or more$", message, re.DOTALL):
        return f"write a number of at least {number[2]} after {number[1]}"
    if message.endswith("is not a duration"):
        return "write 90, 90s, 5m or 1h"
    if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
        elsewhere = [
            f"{command.prog} {spelling}"
            for command in commands
            for spelling in (choice[1], f"--{choice[1]}")
            if spelling in (*command.commands(), *command.flags())
        ]
        known = re.findall(r"[\w-]+", choice[2])
        near = f"did you mean '{elsewhere[0]}'?" if elsewhere else suggest(choice[1], known)
        return near or (
            'to ask a question: hira ask "question"' if prog == "hira" else f"{prog} --help lists the choices"
        )
    return f"{prog} --help shows how to use it"
