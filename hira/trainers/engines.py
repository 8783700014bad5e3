"""The policy in training: sampled in this process, or at a vLLM server."""

import asyncio
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from hira.core.policy import Completion, Request, Sampling, Watch, role_of
from hira.policies.local import SECONDS, LocalPolicy
from hira.policies.local.engine import Engine, Sampled, Seen
from hira.policies.local.template import Template
from hira.policies.local.vllm import VllmEngine
from hira.trainers import records

Adapters = Mapping[str, str | None] | str | None


class LivePolicy:
    """One engine and one base for all roles. `adapter` names the LoRA adapter of all roles, or of each role, with `*`
    for the others; None is the base alone.

    The `model` of a completion, such as `policy:planner@3`, names the model, the adapter and the number of weight
    updates so far. Pass it as the policy of all roles, or `of(role)` for one of them.
    """

    def __init__(
        self, name: str, tokenizer: Any, engine: Engine, adapter: Adapters = None, *, seconds: float = SECONDS
    ) -> None:
        self.engine = engine
        self.template = Template(tokenizer, where=f"model {name!r}")
        self._name = name
        self._adapters: Mapping[str, str | None] = adapter if isinstance(adapter, Mapping) else {"*": adapter}
        self._policies = {
            adapter: LocalPolicy(
                f"{name}:{adapter}" if adapter else name,
                self.template,
                engine,
                adapter,
                seconds=seconds,
                versioned=True,
            )
            for adapter in dict.fromkeys(self._adapters.values())
        }

    @property
    def model(self) -> str:
        return self._name

    @property
    def counts(self) -> Counter[str]:
        """The number of turns, of rows, and of rows begun because the run-time prompt did not continue the sampled
        tokens."""
        return sum((policy.conversations.counts for policy in self._policies.values()), Counter())

    def adapter_of(self, role: str) -> str | None:
        return self._adapters[role] if role in self._adapters else self._adapters["*"]

    def of(self, role: str) -> LocalPolicy:
        """Return the policy of a role; roles with one adapter share it."""
        return self._policies[self.adapter_of(role)]

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        return await self.of(role_of(request.conversation)).complete(request, watch)

    def count(self, text: str) -> int:
        """Count the tokens of a text, with the one tokenizer of all roles."""
        return next(iter(self._policies.values())).count(text)

    async def aclose(self) -> None:
        await self.engine.aclose()


SAMPLED = "sampled"
"""The folder of the server's adapters, within that of the run."""


class ServedEngine:
    """Samples at the server of `base_url`, which serves the base as `model` and reads the run's `folder` by its path.

    `weights` is the PEFT model in training. The first sample after `record_update` passes its adapters to the server;
    they must not change while anything is sampled.
    """

    def __init__(self, base_url: str, model: str, weights: Any, template: Template, folder: Path) -> None:
        self.version = 0
        self._engine = VllmEngine(base_url, model, ends=sorted(template.ends))
        self._weights = weights
        self._longest = int(template.tokenizer.model_max_length)
        self._folder = folder.resolve() / SAMPLED
        self._loaded: int | None = None
        self._loading = asyncio.Lock()

    @property
    def window(self) -> int:
        return min(self._engine.window, self._longest)

    async def open(self) -> "ServedEngine":
        """Return itself, once the server has confirmed the base and loaded the adapters."""
        try:
            await self._engine.open()
            shutil.rmtree(self._folder, ignore_errors=True)
            await self._current()
        except BaseException:
            await self.aclose()
            raise
        return self

    async def sample(
        self,
        prompt: Sequence[int],
        sampling: Sampling,
        stops: Sequence[str] = (),
        adapter: str | None = None,
        *,
        seen: Seen | None = None,
    ) -> Sampled:
        await self._current()
        return await self._engine.sample(prompt, sampling, stops, adapter, seen=seen)

    def record_update(self, version: int) -> None:
        self.version = version

    def pause(self) -> AbstractContextManager[None]:
        """Do nothing: the weights change here, and the server samples with a copy."""
        return nullcontext()

    async def aclose(self) -> None:
        self._loaded = None
        await self._engine.aclose()

    async def _current(self) -> None:
        async with self._loading:
            if self._loaded == self.version:
                return
            place = self._folder / str(self.version)
            try:
                for name in self._weights.peft_config:
                    # PEFT creates a folder for each of the others
                    folder = place if name != "default" else place / name
                    self._weights.save_pretrained(folder, selected_adapters=[name])
            except OSError as error:
                raise records.unwritable(error, place) from error
            for name in self._weights.peft_config:
                await self._engine.load(name, place / name, self.version)
            if self._loaded is not None:
                shutil.rmtree(self._folder / str(self._loaded), ignore_errors=True)
            self._loaded = self.version
