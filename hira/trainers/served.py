"""Rollouts sampled at a vLLM server, on the same GPU or another, with the adapters as they are trained.

Nothing is merged into the base that the server holds: after an update each adapter is written down, loaded there under
its name and version, and the one before it leaves the server and the disk. What a run loaded leaves the server when
the run ends; what a killed one left on the disk is deleted when it goes on.
"""

import asyncio
import shutil
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from hira.core.policy import Sampling
from hira.policies.local.engine import Sampled, Seen
from hira.policies.local.template import Template
from hira.policies.local.vllm import VllmEngine
from hira.trainers import records

SAMPLED = "sampled"
"""The folder of the adapters that the server samples with, in that of the run."""


class ServedEngine:
    """Samples at the server of `base_url`, which serves the base as `model` and sees the run's `folder` by its path.

    `weights` is the PEFT model in training. They are handed on with the first sample after `updated`, and must not
    change while anything is sampled.
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
        """Itself, once the server has said that it serves the base, and has taken the adapters."""
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

    def updated(self, version: int) -> None:
        self.version = version

    def paused(self) -> AbstractContextManager[None]:
        """Weights change here, and not where they are sampled."""
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
                    own = place if name != "default" else place / name  # PEFT makes a folder for each of the others
                    self._weights.save_pretrained(own, selected_adapters=[name])
            except OSError as error:
                raise records.unwritable(error, place) from error
            for name in self._weights.peft_config:
                await self._engine.load(name, place / name, self.version)
            if self._loaded is not None:
                shutil.rmtree(self._folder / str(self._loaded), ignore_errors=True)
            self._loaded = self.version
