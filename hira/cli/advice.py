"""Says what to do about a mistake on the command line: the nearest command or value, or where the help is."""

import re
from collections.abc import Callable, Mapping

from hira.core.errors import suggest


def advise(message: str, prog: str, hints: Mapping[str, str], find_elsewhere: Callable[[str], str]) -> str:
    """Suggest the nearest command or value; otherwise point to the help. `find_elsewhere` returns the command that has
    a name as its own command or flag."""
    if missing := re.search(r"arguments are required: ([\w-]+)", message):
        return hints.get(missing[1], f"{prog} --help shows how to use it")
    if number := re.search(r"argument (\S+): invalid (int|float) value", message):
        return f"write a {'whole ' * (number[2] == 'int')}number after {number[1]}"
    if number := re.search(r"argument (\S+): .* is not a number of (\d) or more$", message, re.DOTALL):
        return f"write a number of at least {number[2]} after {number[1]}"
    if message.endswith("is not a duration"):
        return "write 90, 90s, 5m or 1h"
    if choice := re.search(r"invalid choice: '(.*)' \(choose from (.*)\)", message, re.DOTALL):
        known = re.findall(r"[\w-]+", choice[2])
        elsewhere = find_elsewhere(choice[1])
        near = f"did you mean '{elsewhere}'?" if elsewhere else suggest(choice[1], known)
        return near or (
            'to ask a question: hira ask "question"' if prog == "hira" else f"{prog} --help lists the choices"
        )
    return f"{prog} --help shows how to use it"
