"""The parts of the state as the three agents are shown them."""

from hira.agents.mams.state import Memory, Plan
from hira.core.messages import Filled
from hira.core.prompts import Prompt
from hira.core.sanitize import sanitize

NOTHING = Prompt(__file__, "mams_nothing")


def memory(entries: Memory) -> Filled:
    return _or_nothing("\n".join(entry.line for entry in entries))


def plan(written: Plan) -> Filled:
    return _or_nothing(written.text)


def format_calls(written: Plan) -> str:
    """The calls that were made; what tools said of them is data."""
    return "\n".join(written.done) or NOTHING.fill()


def report(written: str) -> Filled:
    return _or_nothing(written)


def _or_nothing(text: str) -> Filled:
    return sanitize(text) if text.strip() else NOTHING.fill()
