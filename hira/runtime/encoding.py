"""The encoder and the reranker that the settings name, and what a run may spend on them."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hira.core.budget import Budget, CallNeed
from hira.core.errors import OutOfBudget, UsageError
from hira.core.events import Events, Notice
from hira.core.policy import Usage
from hira.core.prices import Price
from hira.policies.names import GGUF, IN_PROCESS, LITELLM, OPENAI_URL
from hira.runtime.registry import EMBED, RERANK
from hira.runtime.settings import RoleSettings, Settings
from hira.runtime.settings.keys import find_place

if TYPE_CHECKING:
    from hira.tools.documents.encoder import Encoder, Endpoint, Reranker


def open_models(settings: Settings) -> "tuple[Encoder | None, Reranker | None]":
    """Return the encoder that `embed` or its role names and the reranker that `rerank` or its role names, None for what
    has no name. Raises `UsageError` if one cannot be used."""
    from hira.tools.documents.encoder import Encoder, Reranker

    embed = _open(EMBED, settings.embed, "encoder", settings)
    rerank = _open(RERANK, settings.rerank, "reranker", settings)
    return Encoder(embed) if embed else None, Reranker(rerank) if rerank else None


def _open(role: str, setting: str, what: str, settings: Settings) -> "Endpoint | None":
    role_settings = settings.roles.get(role, RoleSettings())
    name = setting or role_settings.model
    if not name:
        return None
    if "@http" in setting:
        fix = f'write {role} = "MODEL" and [roles.{role}] base_url = "URL"'
        raise UsageError(f"`{role}` is the name of a model, without an address", fix=fix)
    from hira.tools.documents.encoder import Endpoint

    place = find_place(name, role, role_settings, settings)
    if place.model.startswith(GGUF) and role == EMBED:
        from hira.policies.llama import configure_encoder

        config = configure_encoder(place.model.removeprefix(GGUF))
        made_by = f"{config.path} of {Path(config.path).stat().st_size:,} bytes"  # another file makes other vectors
        return Endpoint(what, made_by, "", config=config)
    if place.model.startswith((IN_PROCESS, LITELLM, GGUF)) or not (place.base_url or place.secret):
        fix = f'name a server with /v1/{role if role == RERANK else "embeddings"}: [roles.{role}] base_url = "URL"'
        raise UsageError(f"no endpoint is known for the {what} {name!r}", fix=fix)
    return Endpoint(what, place.model, place.base_url or OPENAI_URL, place.secret)


@dataclass(slots=True)
class EncoderUse:
    """The use of the encoder in one run: it charges the budget, and continues with words after the first failure."""

    budget: Budget
    events: Events
    price: Price | None
    """The price of what the encoder reads, None if it is unknown."""
    failure: str = ""

    def spend(self, tokens: int) -> None:
        """Charge these tokens. Raises `EncoderFailed` if they are more than is left, and after a failure."""
        from hira.tools.documents import EncoderFailed

        if self.failure:
            raise EncoderFailed(self.failure)
        call = CallNeed(EMBED, prompt=tokens, price=self.price)
        try:
            self.budget.admit(call)
        except OutOfBudget as error:
            raise EncoderFailed(f"the encoder is not used: {error.what}") from None
        cost = self.price.of(Usage(0, tokens)) if self.price else None
        self.budget.charge(call, Usage(0, tokens, cost=cost))

    def fail(self, why: str) -> None:
        """Tell the person once why words alone are searched from now on."""
        if not self.failure:
            self.failure = why
            self.events(Notice(f"{why}; the search continues with words alone", important=True))
