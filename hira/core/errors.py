"""The errors that hira raises on purpose.

    HiraError
    ├── UsageError            the request cannot be carried out as given
    │   └── NotTrusted        a project's file names endpoints or code that the user has not allowed
    ├── HookError             a hook or a function that approves failed
    ├── PromptError           a prompt lacks a value, or got one without a slot
    ├── EndpointError         the model's endpoint failed
    │   ├── AccessDenied      key missing, wrong or not allowed
    │   ├── RateLimited       too many requests, until `retry_after`
    │   ├── ContextOverflow   the prompt is longer than the model's window
    │   ├── Withheld          the model refused, or a content filter withheld its reply
    │   ├── ToolsRefused      the endpoint does not accept native tool calls
    │   ├── MediaRefused      the endpoint does not accept pictures, sounds or videos
    │   ├── TimedOut          the endpoint sent nothing for too long
    │   └── BadReply          the endpoint's answer is not a completion
    ├── WorkerError           a call in a child process broke a limit or the child
    ├── DialectError          the model wrote a call or a record that cannot be read
    ├── ToolError             a tool cannot do what the model asked
    │   └── ToolDown          a service that the tool needs is down, whatever the call
    └── Stop                  the run has to end now, with an answer from the results so far
        ├── OutOfBudget
        │   ├── BudgetTooSmall         it pays for no call with an answer; also a `UsageError`
        │   └── RoleBudgetExceeded     only one role's budget is used up: it closes, the run continues
        └── Interrupted

An error's text goes to one of three readers: `DialectError` and `ToolError` are written for the model, `Stop` for the
rollout, the others for the person at the terminal: what failed, where, and what to do.
"""

import errno
from collections.abc import Callable, Iterable

SCARCE = {
    errno.EAGAIN: "This user's processes and threads are at their limit (ulimit -u): end some, or raise it.",
    errno.EMFILE: "Raise the limit of open files (ulimit -n), or do less at once.",
    errno.ENFILE: "The whole machine has too many open files: end what needs them.",
    errno.ENOMEM: "The machine is out of memory: end what needs it, or do less at once.",
}
"""Resources that a machine may have again in a moment, and the fix if it has not."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""A full disk, a user's quota, a file over the size limit."""


def count_of(number: int, noun: str) -> str:
    """Return the number with its noun, such as "1 step" or "2,000 steps"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def uncapitalise(message: str) -> str:
    """Return a message as the rest of a sentence: its first letter is small, the values in it stay as they are."""
    return message[:1].lower() + message[1:] if message[1:2].islower() else message


class HiraError(Exception):
    """`what` failed, `where` it failed, and the `fix`; each one line, the last two may be empty."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        return "\n".join(line for line in (self.what, self.where, self.fix) if line)


class UsageError(HiraError): ...


class NotTrusted(UsageError):
    """`allow` records that the user trusts it, for the folder of that file."""

    def __init__(self, what: str, *, where: str, fix: str, allow: Callable[[], None]) -> None:
        super().__init__(what, where=where, fix=fix)
        self.allow = allow


class HookError(HiraError):
    """A hook or a function that approves raised an error, or returned something that it may not. It ends the run."""


class PromptError(HiraError): ...


class EndpointError(HiraError):
    """`status` is the HTTP status, 0 if there was none; `retryable` if the same request may succeed later. `tries` is
    how often to try an endpoint that has never answered, 0 for the usual number. `prompt_tokens` and
    `completion_tokens` are the cost of a reply that broke off, as hira counts them."""

    tries = 0
    prompt_tokens = 0
    completion_tokens = 0

    def __init__(
        self,
        what: str,
        *,
        where: str = "",
        fix: str = "",
        status: int = 0,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(what, where=where, fix=fix)
        self.status = status
        self.retryable = retryable
        self.retry_after = retry_after


class AccessDenied(EndpointError): ...


class RateLimited(EndpointError): ...


class ContextOverflow(EndpointError):
    """`window` is the most tokens that the model accepts, `asked` the tokens of the prompt; 0 if unknown."""

    window = 0
    asked = 0


class Withheld(EndpointError): ...


class ToolsRefused(EndpointError): ...


class MediaRefused(EndpointError): ...


class TimedOut(EndpointError): ...


class BadReply(EndpointError): ...


class WorkerError(HiraError):
    """A call in a child process broke a limit or the child."""


class DialectError(HiraError): ...


class ToolError(HiraError): ...


class ToolDown(ToolError):
    """A service, a server or a sandbox is down. The model reads it, and training does not penalize the model for it."""


class Stop(HiraError): ...


class OutOfBudget(Stop): ...


class BudgetTooSmall(OutOfBudget, UsageError): ...


class RoleBudgetExceeded(OutOfBudget): ...


class Interrupted(Stop): ...


def fault(error: Exception, fix: str = "") -> HiraError:
    """Return the error to report for an unexpected one: the machine's limit that it means, otherwise a fault in hira.

    `fix` is for the latter.
    """
    return of_the_machine(error) or HiraError(f"a fault in hira: {type(error).__name__}: {error}", fix=fix)


def of_the_machine(error: BaseException) -> HiraError | None:
    """Return the error to report if Python's error means that the machine has run out of something, else None."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    elif isinstance(error, RuntimeError) and "start new thread" in str(error):
        number = errno.EAGAIN
    if number not in SCARCE:
        return None
    return HiraError(f"the machine is at a limit: {str(error) or 'no memory is left'}", fix=SCARCE[number])


def find_near(name: str, known: Iterable[str], *, most: int = 1, likeness: float = 0.6) -> list[str]:
    """Return the known names that `name` was probably meant to be, the nearest first."""
    from difflib import get_close_matches

    return get_close_matches(name, list(known), most, likeness)


def suggest(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, empty if none is near."""
    near = find_near(name, known)
    return f"did you mean {near[0]!r}?" if near else ""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the nearest known name, or all of them."""
    names = list(known)
    near = find_near(name, names)
    return f"did you mean {near[0]!r}?" if near else f"choose from: {', '.join(names)}"
