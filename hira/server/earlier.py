"""What was said before a question: by the messages of its request, or by the response that it continues."""

from hira.agents.history import Earlier, Messages
from hira.core.errors import UsageError
from hira.runtime.chat import earlier_of
from hira.runtime.trace.reading import read_conversation
from hira.server.keys import Client, Refused
from hira.server.records import find_entry, find_kept, read_journal, shared_session
from hira.server.responses import PREFIX
from hira.server.runs import Watched
from hira.server.state import AppState
from hira.server.wire import content_of


async def find_earlier(door: AppState, client: Client, messages: Messages) -> Earlier | None:
    """The messages, together with what was read and remembered for the latest of them, where the client's run that gave
    that answer is still known here; else its citations would name other sources than the next answer's."""
    if not messages:
        return None
    watched = _find_run(door, client, messages)
    known = await _leave(door, watched) if watched else None
    return Earlier.of_messages(messages, known)


def _find_run(door: AppState, client: Client, messages: Messages) -> Watched | None:
    """The client's latest run that asked and answered what the last two of the messages say."""
    if [role for role, _ in messages[-2:]] != ["user", "assistant"]:
        return None
    (_, question), (_, said) = messages[-2:]
    for name, one in reversed(door.runs.known.items()):
        if client.owns(name) and one.question == question and one.ended and one.run.ended and one.run.answer.text:
            content = content_of(one.run.answer, door.outside(one.run.answer.text))
            if said in (str(text).strip() for text in content.values()):
                return one
    return None


async def read_response(door: AppState, client: Client, name: str) -> Earlier:
    """What a response and those before it leave for the next one. Raises `Refused` for one that is not there, or not
    the client's, and for one that has no answer."""
    run = name.removeprefix(PREFIX)
    try:
        watched = await find_kept(door, client, run)
        if watched is None:
            entry, journal = await find_entry(door, client, run)
            return await read_journal(read_conversation, journal, entry.id)
    except Refused:
        what = f"previous_response_id: there is no response {name[:80]!r}; send the earlier messages as input instead"
        raise Refused(400, what, "invalid_request_error", "previous_response_not_found") from None
    except UsageError as error:
        raise Refused(400, f"previous_response_id: {error.what}", "invalid_request_error") from None
    if not watched.ended or not watched.run.ended or not watched.run.answer.text:
        what = f"previous_response_id: the response {name[:80]!r} has no answer to continue from"
        raise Refused(400, what, "invalid_request_error")
    return await _leave(door, watched)


async def _leave(door: AppState, watched: Watched) -> Earlier:
    return await earlier_of(watched.run, shared_session(door).journal)
