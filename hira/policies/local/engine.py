"""What samples: token ids in, token ids and their log-probabilities out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from hira.core.policy import Sampling

Seen = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Sampled:
    """What was sampled after a prompt. `ids` hold everything the model wrote, the token that ended its turn included.

    `logprobs` are those of the model's own distribution at the request's temperature (1 where it is 0), before top-p
    and top-k. `stop` is the stop string that ended the turn, None if a token of the model or the length did.
    `version` counts the updates of the weights that it was sampled with.
    """

    ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: Literal["stop", "length"]
    stop: str | None = None
    version: int = 0


class Engine(Protocol):
    """Samples for many coroutines at once. `window` is how many tokens a prompt and its reply may have together."""

    @property
    def window(self) -> int: ...

    async def sample(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        stops: Sequence[str] = (),
        adapter: str | None = None,
        *,
        seen: Seen | None = None,
    ) -> Sampled:
        """One reply to the prompt. `seen` is handed each id as it is sampled, in the caller's event loop.

        A coroutine that is cancelled takes its row out of the batch. Raises `EndpointError` if the engine died.
        """
        ...

    async def aclose(self) -> None: ...
