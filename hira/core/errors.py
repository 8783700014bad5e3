"""Everything hira raises on purpose.

    HiraError
    ├── UsageError            what the user asked for cannot be done as asked
    │   └── NotTrusted        a project's file names endpoints or code that the user has not allowed
    ├── HookError             a hook of the program failed
    ├── PromptError           a prompt got a value too many or too few
    ├── EndpointError         the model's endpoint failed
    │   ├── AccessDenied      key missing, wrong or not allowed
    │   ├── RateLimited       too many requests, until `retry_after`
    │   ├── ContextOverflow   the prompt is longer than the model's window
    │   ├── Withheld          the model refused, or a content filter kept its reply back
    │   ├── ToolsRefused      the endpoint takes no native tool calls
    │   ├── MediaRefused      the endpoint takes no pictures, no sounds or no videos
    │   ├── TimedOut          the endpoint said nothing for too long
    │   └── BadReply          the endpoint answered with something that is no completion
    ├── DialectError          the model wrote a call or a record that cannot be read
    ├── ToolError             a tool cannot do what the model asked
    │   └── ToolDown          what the tool stands on failed, whatever was asked
    └── Stop                  the run has to end now, with an answer from what is known
        ├── OutOfBudget
        │   └── RoleBudgetExceeded     only one role's budget is used up: it closes, the run goes on
        └── Interrupted

An error's text goes to one of three readers: `DialectError` and `ToolError` are written for the model, `Stop` for the
rollout, the others for the person at the terminal: what failed, where, and what to do.
"""

import errno
from collections.abc import Callable

SCARCE = {
    errno.EAGAIN: "This user's processes and threads are at their limit (ulimit -u): end some, or raise it.",
    errno.EMFILE: "Raise the limit of open files (ulimit -n), or do less at once.",
    errno.ENFILE: "The whole machine has too many open files: end what needs them.",
    errno.ENOMEM: "The machine is out of memory: end what needs it, or do less at once.",
}
"""What a machine runs out of and may have again in a moment, and what to do where it has not."""


class HiraError(Exception):
    """`what` failed, `where` it failed, and the `fix`; each one line, the last two may be empty."""

    def __init__(self, what: str, *, where: str = "", fix: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        return "\n".join(line for line in (self.what, self.where, self.fix) if line)


class UsageError(HiraError):
    pass


class NotTrusted(UsageError):
    """`allow` records that the user allows it, for the folder of that file."""

    def __init__(self, what: str, *, where: str, fix: str, allow: Callable[[], None]) -> None:
        super().__init__(what, where=where, fix=fix)
        self.allow = allow


class HookError(HiraError):
    """A hook raised an error, or returned something that no hook may return. It ends the run."""


class PromptError(HiraError):
    pass


class EndpointError(HiraError):
    """`status` is the HTTP status, 0 if there was none; `retryable` if the same request may succeed later. `tries` is
    how often it is worth to ask who has never answered, 0 if nothing speaks against the usual. `prompt_tokens` and
    `completion_tokens` are what a reply that broke off has cost, as hira counts."""

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


class AccessDenied(EndpointError):
    pass


class RateLimited(EndpointError):
    pass


class ContextOverflow(EndpointError):
    """`window` is how many tokens the model takes, `asked` how many the prompt has; 0 where nobody said it."""

    window = 0
    asked = 0


class Withheld(EndpointError):
    pass


class ToolsRefused(EndpointError):
    pass


class MediaRefused(EndpointError):
    pass


class TimedOut(EndpointError):
    pass


class BadReply(EndpointError):
    pass


class DialectError(HiraError):
    pass


class ToolError(HiraError):
    pass


class ToolDown(ToolError):
    """A service, a server or a sandbox is down. The model is told, and training does not blame it."""


class Stop(HiraError):
    pass


class OutOfBudget(Stop):
    pass


class RoleBudgetExceeded(OutOfBudget):
    pass


class Interrupted(Stop):
    pass


def fault(error: Exception, fix: str = "") -> HiraError:
    """What to tell of an error that nobody expected: the machine's limit that it means, or else a fault of hira's own.

    `fix` is for the latter.
    """
    return of_the_machine(error) or HiraError(f"a fault in hira: {type(error).__name__}: {error}", fix=fix)


def of_the_machine(error: BaseException) -> HiraError | None:
    """An error of Python's own that says no more than that the machine has run out of something; None for any other."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, MemoryError):
        number = errno.ENOMEM
    elif isinstance(error, RuntimeError) and "start new thread" in str(error):
        number = errno.EAGAIN
    if number not in SCARCE:
        return None
    return HiraError(f"the machine is at a limit: {error or 'no memory is left'}", fix=SCARCE[number])
