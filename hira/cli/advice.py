"""What to do about a mistake on the command line: the nearest command or value, or where the help is."""

import re

from hira.cli.parser import Parser
from hira.core.errors import suggest


def advise(parser: Parser, message: str) -> str:
    """Suggest the nearest command or value; otherwise point to the help."""
    if missing := re.search(r"arguments are required: ([\w-]+)", message):
        return parser.hints.get(missing[1], f"{parser.prog} --help shows how to use it")
    if number := re.search(r"argument (\S+): invalid (int|float) value", message):
        return f"write a {'whole ' * (number[2] == 'int')}number after {number[1]}"
    if number := re.search(r"argument (\S+): .* is not a number of (\d) or more$", message, re.DOTALL):
        return f"write a number of at least {number[2]} after {number[1]}"
    if message.endswith("is not a duration"):
        return "write 90, 90s, 5m or 1h"
    if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
        known = re.findall(r"[\w-]+", choice[2])
        elsewhere = _find_elsewhere(parser, choice[1])
        near = f"did you mean '{elsewhere}'?" if elsewhere else suggest(choice[1], known)
        return near or (
            'to ask a question: hira ask "question"'
            if parser.prog == "hira"
            else f"{parser.prog} --help lists the choices"
        )
    return f"{parser.prog} --help shows how to use it"


def _find_elsewhere(parser: Parser, name: str) -> str:
    """Return the command that has this name as its own command or flag, such as `hira ask --batch` for `batch`."""
    for command in parser.commands().values():
        for spelling in (name, f"--{name}"):
            if spelling in (*command.commands(), *command.flags()):
                return f"{command.prog} {spelling}"
    return ""
