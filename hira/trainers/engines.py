"""Sampling at a vLLM server that gets the adapters of each update."""

import asyncio
import shutil
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from hira.policies.local.engine import Sampled, SampleRequest
from hira.policies.local.template import Template
from hira.policies.local.vllm import VllmEngine
from hira.trainers import records

SAMPLED = "sampled"
"""The folder of the server's adapters, within that of the run."""


class ServedEngine:
    """Samples at the server of `base_url`, which serves the base as `model` and reads the run's `folder` by its path.
    The first sample after `record_update` passes the adapters of the PEFT model `weights` to the server; they must not
    change while anything is sampled."""

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

    async def sample(self, request: SampleRequest) -> Sampled:
        await self._current()
        return await self._engine.sample(request)

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
            with records.writing(place):
                for name in self._weights.peft_config:
                    # PEFT creates a folder for each of the others
                    folder = place if name != "default" else place / name
                    self._weights.save_pretrained(folder, selected_adapters=[name])
            for name in self._weights.peft_config:
                await self._engine.load(name, place / name, self.version)
            if self._loaded is not None:
                shutil.rmtree(self._folder / str(self._loaded), ignore_errors=True)
            self._loaded = self.version
