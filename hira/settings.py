"""What hira is to work with: read once, at the edge, from flags, environment and files, each value with its origin.

    flags > environment > profile > ./hira.toml > $XDG_CONFIG_HOME/hira/hira.toml > defaults

A profile is a file of the same form that a training run writes (`--profile RUN`): its model, adapters and workflow.

A model is not chosen here: `model == ""` asks `hira.casting` for a server of this machine, then for `offline`.

    model = "qwen3-32b"
    base_url = "http://127.0.0.1:8000/v1"
    docs = ["papers"]

    [roles.planner]
    model = "gpt-5"
    base_url = "https://api.openai.com/v1"

    [prices."qwen3-32b"]
    input = 0.1
    output = 0.4

    [workflows.mars]
    turns = 5

    [search_keys]
    serper = "…"

    [mcp.files]
    command = "npx"
    args = ["-y", "@modelcontextprotocol/server-filesystem", "."]
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr, ValidationError, model_validator

from hira.errors import UsageError
from hira.redaction import passwords_in, without_userinfo

FILE = "hira.toml"
PROFILE, SERVED = "profile.toml", "served.toml"
JOURNAL, OFF = "journal.sqlite", "off"
Part = Literal["reasoning-transfer", "memory", "search", "code", "multimodal"]
Dialect = Literal["native", "tags", "xml", "json"]
Extractor = Literal["hira", "trafilatura"]
Sandbox = Literal["auto", "container", "process", "off"]
# How an endpoint carries a message of the model's own on, so that a role reasons in one chain; `turns` needs nothing.
Continuation = Literal["turns", "continue_final_message", "prefix", "completions"]

SHORTEST_SECRET = 8
_SECRET = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
# Where the key of a search service is found.
SEARCH_KEYS: Mapping[str, str] = {
    "serper": "SERPER_API_KEY",
    "tavily": "TAVILY_API_KEY",
    "brave": "BRAVE_API_KEY",
    "exa": "EXA_API_KEY",
    "serpapi": "SERPAPI_API_KEY",
    "jina": "JINA_API_KEY",
    "openalex": "OPENALEX_API_KEY",
    "semantic_scholar": "SEMANTIC_SCHOLAR_API_KEY",
}
_TABLES = ("roles", "workflows", "search_keys", "mcp", "prices", "keys")
_LISTS = {"docs": os.pathsep, "without": ",", "allow": ","}
# The servers of a project's file that may be started, by name: its command would run with the user's rights.
MCP_CONSENT = "HIRA_MCP"
# Models of a hundred providers, each with keys of its own in the environment.
LITELLM = "litellm/"
# What only the user may loosen: a project's hira.toml may have been written by anyone.
_GUARDS = ("sandbox", "sandbox_image", "allow", "otel")


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name that `name` was probably meant to be, empty if none is near."""
    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.6)), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What to do about a name that is not known, as one line."""
    names = list(known)
    near = nearest(name, names)
    return f"did you mean {near!r}?" if near else f"known are: {', '.join(names)}"


class _Checked(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known_keys_only(cls, values: Any) -> Any:
        for key in values if isinstance(values, Mapping) else ():
            if key not in cls.model_fields:
                raise UsageError(f"unknown setting {key!r}", fix=did_you_mean(str(key), cls.model_fields))
        return values


class RoleSettings(_Checked):
    """What one role does differently from the others; None and "" mean: as all of them.

    `model` may name several, separated by commas: the next one speaks when the one before it is down. The limits bound
    what the role may spend in one run: tokens in and out, US dollars, seconds summed over its calls, calls, and the
    subtasks that it is given as an expert. An `adapter` that is "" is none: the base speaks alone.
    """

    model: str = ""
    adapter: str | None = None
    base_url: str = ""
    api_key: SecretStr = SecretStr("")
    temperature: float | None = Field(default=None, ge=0)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    dialect: Dialect | None = None
    continuation: Continuation | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    max_time: float | None = Field(default=None, gt=0)
    max_calls: int | None = Field(default=None, ge=1)
    max_subtasks: int | None = Field(default=None, ge=0)


class PriceSettings(_Checked):
    """What a model costs, in US dollars for a million tokens; `cached` is for prompt tokens that the endpoint had in
    its cache, None if they cost as much as others."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)


class McpSettings(_Checked):
    """An MCP server: a `command` with `args` and `env` to start it, or the `url` of one that runs, with `headers`.

    `roles` are the experts that are given its tools, all that work in a loop if none is named; `seconds` bounds a call.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, SecretStr] = Field(default_factory=dict)
    url: str = Field(default="", pattern="^(https?://.+)?$")
    headers: Mapping[str, SecretStr] = Field(default_factory=dict)
    roles: tuple[str, ...] = ()
    seconds: float = Field(default=120, gt=0)

    @property
    def secrets(self) -> list[SecretStr]:
        """Keys and passwords by their names; of a header such as `Authorization: Bearer …` the last word."""
        words = [SecretStr(value.get_secret_value().split()[-1]) for value in self.headers.values() if value]
        return [*words, *(value for name, value in self.env.items() if _SECRET.search(name))]

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("name either a command or a url")
        if self.url and (self.args or self.env):
            raise ValueError("args and env go with a command")
        if self.command and self.headers:
            raise ValueError("headers go with a url")
        return self


class KeySettings(_Checked):
    """Who may use `hira serve` with this key: so many questions at once, and tokens and US dollars for all of them
    together as long as the server runs."""

    key: SecretStr = SecretStr("")
    concurrency: int = Field(default=8, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)


class Settings(_Checked):
    """Everything that can be set. Sampling defaults are the HiRA paper's (its top-k of 20 is no field of the chat API
    and is sent only where it is set); `max_tokens`, `max_cost` (US dollars), `max_time` (seconds) and `max_calls`
    bound one run; `prices` are by model, in US dollars for a million tokens; `sandbox` is how much has to hold Python
    code back (hira.tools.python), `sandbox_image` the image of its container; `cache` is the folder in which indexes
    of documents and searches are kept, None keeps them in memory. `search` names services, separated by commas, in
    order of preference; `contact` (an address or URL) is told to the sites that are read; `extractor` reads web
    pages; `allow` holds "host:port" entries of servers of this network that may be opened all the same. `adapter` is
    a LoRA adapter for a model of this process (`hf:NAME`). `mcp` names servers whose tools experts are given.
    `max_subtasks`, `parallel` and `dialect` are the workflow's own where they are not set; `workflows` holds further
    options of workflows, by their names. `otel` is the base URL of a collector of spans, empty or "off" for none.
    """

    profile: Path | None = None
    model: str = ""
    adapter: str = ""
    base_url: str = ""
    api_key: SecretStr = SecretStr("")
    workflow: str = "hira"
    workflows: Mapping[str, Mapping[str, bool | int | float | str]] = Field(default_factory=dict)
    roles: Mapping[str, RoleSettings] = Field(default_factory=dict)
    docs: tuple[Path, ...] = ()
    search: str = ""
    search_keys: Mapping[str, SecretStr] = Field(default_factory=dict)
    searxng_url: str = ""
    mcp: Mapping[Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,32}$")], McpSettings] = Field(default_factory=dict)
    contact: str = ""
    extractor: Extractor = "hira"
    allow: tuple[str, ...] = ()
    temperature: float = Field(default=0.7, ge=0)
    top_p: float = Field(default=0.95, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    seed: int | None = None
    dialect: Dialect | None = None
    continuation: Continuation = "turns"
    without: frozenset[Part] = frozenset()
    max_subtasks: int | None = Field(default=None, ge=1)
    parallel: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    max_time: float | None = Field(default=None, gt=0)
    max_calls: int | None = Field(default=None, ge=1)
    prices: Mapping[str, PriceSettings] = Field(default_factory=dict)
    keys: Mapping[str, KeySettings] = Field(default_factory=dict)
    sandbox: Sandbox = "auto"
    sandbox_image: str = Field(default="", pattern="^([A-Za-z0-9][A-Za-z0-9._:/@-]*)?$")
    cache: Path | None = None
    journal: Path | None = None
    reuse: bool = False
    reuse_hours: float = Field(default=24, gt=0)
    otel: str = ""
    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _withheld: tuple[str, ...] = PrivateAttr(default=())
    _secrets: frozenset[str] = PrivateAttr(default=frozenset())

    @model_validator(mode="after")
    def _chains_in_tags(self) -> Self:
        """A native call ends its message, and its result is a message of its own: nothing is left to be continued."""
        for role, own in {"": RoleSettings(), **self.roles}.items():
            way, dialect = own.continuation or self.continuation, own.dialect or self.dialect
            if way != "turns" and dialect in (None, "native"):
                raise UsageError(
                    f'continuation = "{way}" does not go with native tool calls'
                    + (f" (role {role!r})" if role else ""),
                    fix='set dialect = "tags" beside it, or continuation = "turns"',
                )
        return self

    @property
    def secrets(self) -> frozenset[str]:
        """Keys and passwords that no tool may be given: those set here, and those of the environment."""
        given = [self.api_key, *self.search_keys.values(), *(role.api_key for role in self.roles.values())]
        given += [secret for server in self.mcp.values() for secret in server.secrets]
        given += [own.key for own in self.keys.values()]
        urls = [self.base_url, self.searxng_url, self.model, *(server.url for server in self.mcp.values())]
        urls += [text for role in self.roles.values() for text in (role.base_url, role.model)]
        told = {one.get_secret_value() for one in given} | self._secrets.union(*map(passwords_in, urls))
        return frozenset(secret for secret in told if len(secret) >= SHORTEST_SECRET)

    def shown(self) -> dict[str, Any]:
        """The settings as plain JSON values, without any key or password: what a run's record keeps of them."""
        values = self.model_dump(mode="json", exclude={"api_key", "search_keys", "mcp", "keys"}, exclude_none=True)
        roles = {name: {k: v for k, v in role.items() if k != "api_key"} for name, role in values["roles"].items()}
        values |= {"roles": roles, "without": sorted(self.without), "base_url_from": self.origin("base_url")}
        shown: dict[str, Any] = _bare(values)
        return shown

    def origin(self, name: str) -> str:
        """Where the value of a setting came from; "default" if nobody set it."""
        return self._origins.get(
            name, "default" if name not in self.model_fields_set or name in ("cache", "journal") else "Settings(…)"
        )

    @property
    def withheld(self) -> tuple[str, ...]:
        """What was set but is not used in this run, and why; one line each."""
        return self._withheld

    def changed(self, values: Mapping[str, Any], origin: str) -> Self:
        """These settings with other values, which came from `origin`."""
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        changed = type(self)(**{**kept, **values})
        return changed.told({**self._origins, **dict.fromkeys(values, origin)}, self._withheld, self._secrets)

    def told(self, origins: Mapping[str, str], withheld: Iterable[str] = (), secrets: Iterable[str] = ()) -> Self:
        """The same settings, knowing where more of their values came from, and more secrets."""
        same = self.model_copy()
        same._origins = {**self._origins, **origins}  # noqa: SLF001 - an object of this class
        same._withheld = (*self._withheld, *withheld)  # noqa: SLF001 - an object of this class
        same._secrets = self._secrets.union(secrets)  # noqa: SLF001 - an object of this class
        return same


def _bare(value: Any) -> Any:
    """A JSON value without user and password in any of its URLs."""
    if isinstance(value, Mapping):
        return {key: _bare(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_bare(one) for one in value]
    return without_userinfo(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class _Layer:
    """One place that settings come from. `origins` names it for each key."""

    kind: Literal["flags", "environment", "project", "user"]
    values: Mapping[str, Any]
    origins: Mapping[str, str]


def load(
    flags: Mapping[str, Any],
    environ: Mapping[str, str],
    folder: Path,
    home: Path,
    names: Mapping[str, str] | None = None,
) -> Settings:
    """The settings of one run. `flags` are named as the fields are; `folder` may hold a hira.toml, and so may the
    user's configuration under `home`. Raises `UsageError` that names the value's origin, never a key itself.

    `names` says what the flags are called in such errors, if they are none of the command line.
    """
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / "hira" / FILE
    closer = [_Layer("flags", _placed(flags, folder), _named(flags, names or {})), _environment(environ, folder)]
    layers = [*closer, *_profile(closer, folder), _file("project", folder / FILE), _file("user", config)]
    layers, refused = _consented(layers, environ)
    values, origins = _merged(layers)
    for layer in layers:
        if layer.kind == "project":
            _no_litellm_elsewhere(_placed_by(layer, values), folder / FILE)
    if "cache" not in values:
        values["cache"] = Path(environ.get("XDG_CACHE_HOME") or home / ".cache") / "hira"
    if "journal" not in values:
        values["journal"] = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state") / "hira" / JOURNAL
    elif Path(values["journal"]).name == OFF:
        values["journal"] = None
    else:
        values["journal"] = folder / Path(values["journal"]).expanduser()
    withheld = [*refused, *_paired_key(layers, values, origins), *_documents_alone(layers, values, origins)]
    try:
        settings = Settings(**values)
    except ValidationError as error:
        raise _invalid(error, origins) from None
    secrets = [value for name, value in environ.items() if _SECRET.search(name)]
    return settings.told(origins, withheld, secrets)


def _named(flags: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, str]:
    """What the flags are called; each role that was named has its own entry, because files may name others."""
    called = {key: names.get(key) or f"--{key.replace('_', '-')}" for key in flags}
    return called | {f"roles.{role}": called["roles"] for role in flags.get("roles", ())}


def _placed(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The values with the paths of documents, one or several, taken from the folder."""
    docs = values.get("docs", ())
    named = [docs] if isinstance(docs, str | Path) else docs
    if any(not str(one).strip() for one in named if docs):
        raise UsageError(
            "a path of the documents is empty", fix="name files or folders; is a variable of the shell unset?"
        )
    placed = {"docs": [folder / Path(str(one)).expanduser() for one in named]} if docs else {}
    return {**values, **placed}


def _environment(environ: Mapping[str, str], folder: Path) -> _Layer:
    """HIRA_<SETTING> for every plain setting, then the names that other programs use as well."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    plain = {f"HIRA_{name.upper()}": name for name in Settings.model_fields if name not in _TABLES}
    for variable, value in environ.items():
        if variable in plain and value:
            name = plain[variable]
            values[name] = _listed(value, _LISTS[name]) if name in _LISTS else value
            origins[name] = variable
        elif (
            variable.startswith("HIRA_")
            and variable not in {*plain, MCP_CONSENT}
            and (near := nearest(variable, plain))
        ):
            raise UsageError(f"unknown environment variable {variable}", fix=f"did you mean {near}?")
    for name, variable in (
        ("api_key", "OPENAI_API_KEY"),
        ("base_url", "OPENAI_BASE_URL"),
        ("searxng_url", "SEARXNG_BASE_URL"),
        ("otel", "OTEL_EXPORTER_OTLP_ENDPOINT"),
    ):
        if environ.get(variable) and name not in values:
            values[name], origins[name] = environ[variable], variable
    keys = {service: variable for service, variable in SEARCH_KEYS.items() if environ.get(variable)}
    if keys:
        values["search_keys"] = {service: environ[variable] for service, variable in keys.items()}
        origins |= {f"search_keys.{service}": variable for service, variable in keys.items()}
    return _Layer("environment", _placed(values, folder), origins)


def _listed(value: str, separator: str) -> list[str]:
    return [part.strip() for part in value.split(separator) if part.strip()]


def _file(kind: Literal["project", "user"], path: Path) -> _Layer:
    """A hira.toml; relative paths in it start at its folder. An absent file is an empty layer."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return _Layer(kind, {}, {})
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read {path}: {error}", fix="correct or remove the file") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{FILE} is no valid TOML: {error}", where=f"in {path}", fix="correct or remove it") from None
    _known(values, Settings, path)
    for role in _table(values, "roles", path).values():
        _known(role if isinstance(role, Mapping) else {}, RoleSettings, path)
    _table(values, "search_keys", path)
    for name in _table(values, "workflows", path):
        _table(values["workflows"], name, path)
    for key in _table(values, "keys", path).values():
        _known(key if isinstance(key, Mapping) else {}, KeySettings, path)
    for price in _table(values, "prices", path).values():
        _known(price if isinstance(price, Mapping) else {}, PriceSettings, path)
    for server in _table(values, "mcp", path).values():
        _known(server if isinstance(server, Mapping) else {}, McpSettings, path)
    values = _placed(values, path.parent)
    if kind == "project":
        _harmless(values, path)
        _no_litellm_elsewhere(_places(values), path)
    names = [*values, *(f"mcp.{name}" for name in values.get("mcp", {}))]
    return _Layer(kind, values, dict.fromkeys(names, str(path)))


def _profile(closer: Iterable[_Layer], folder: Path) -> list[_Layer]:
    """The profile that flags or the environment name, with the limits of a project's file: others may have made it.

    Paths in it that begin with `./` start at its folder. Where a server is named closer, it is that of the adapters as
    a server serves them; where a model is, its own adapters are left out.
    """
    set_ = {name: one.values[name] for one in reversed(list(closer)) for name in one.values}
    if not set_.get("profile"):
        return []
    place = folder / Path(str(set_["profile"])).expanduser()
    if place.is_dir():
        served = "base_url" in set_ and (place / SERVED).is_file()
        place /= SERVED if served else PROFILE
    if not place.is_file():
        fix = "name the folder of a run of hira-train, or a file of settings"
        raise UsageError("there is no such profile", where=str(place), fix=fix)
    layer = _file("project", place)
    values = _beside(layer.values, place.parent)
    if "model" in set_:
        values = {name: value for name, value in values.items() if name != "adapter"}
        values["roles"] = {role: _without_weights(own) for role, own in values.get("roles", {}).items()}
    return [replace(layer, values=values)]


def _without_weights(role: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in role.items() if name not in ("model", "adapter")}


def _beside(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The values, and those of roles, with models and adapters at `./` as absolute paths."""
    placed = dict(values)
    for name in ("model", "adapter"):
        told = str(placed.get(name, ""))
        path = told.removeprefix("hf:")
        if path.startswith("./"):
            placed[name] = told.removesuffix(path) + str(folder.resolve() / path)
    if "roles" in placed:
        placed["roles"] = {role: _beside(own, folder) for role, own in placed["roles"].items()}
    return placed


def _harmless(values: Mapping[str, Any], path: Path) -> None:
    """Raise `UsageError` for what a project's file may not decide: it can come with a folder that someone else made,
    and it names the endpoint that sees the documents."""
    if guard := next((name for name in _GUARDS if name in values), ""):
        fix = f"set HIRA_{guard.upper()} or write it into your own configuration"
        raise UsageError(f"{guard!r} may not be set by a project's file", where=f"in {path}", fix=fix)
    for one in values.get("docs", ()):
        if not one.resolve().is_relative_to(path.parent.resolve()):
            fix = "name them with --docs, HIRA_DOCS or in your own configuration"
            raise UsageError(f"a project's file may not name documents elsewhere: {one}", where=f"in {path}", fix=fix)


def _no_litellm_elsewhere(places: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Raise `UsageError` if a project's file gives a model of litellm an address: litellm takes keys from the
    environment by itself, and whoever wrote that file would receive them."""
    for place in places:
        names = (name.strip() for name in str(place.get("model") or "").split(","))
        for name in names:
            if name.startswith(LITELLM) and (place.get("base_url") or "://" in name):
                what = f"a project's file may not name a base URL for {without_userinfo(name)!r}, which litellm asks"
                fix = "name the base URL with --base-url, HIRA_BASE_URL or in your own configuration"
                raise UsageError(what, where=f"in {path}", fix=fix)


def _places(values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Model and base URL of all roles and of each, as one file's values alone say."""
    yield values
    for own in values.get("roles", {}).values():
        if isinstance(own, Mapping):
            yield {name: own.get(name) or values.get(name) for name in ("model", "base_url")}


def _placed_by(layer: _Layer, values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Model and base URL, as they are in the end, of the roles that have their base URL from this layer."""
    for name, own in layer.values.get("roles", {}).items():
        role = values["roles"][name]
        if own.get("base_url") and role["base_url"] == own["base_url"]:
            yield {"model": role.get("model") or values.get("model"), "base_url": role["base_url"]}


def _known(values: Mapping[str, Any], model: type[BaseModel], path: Path) -> None:
    for key in values:
        if key not in model.model_fields:
            fix = did_you_mean(key, model.model_fields)
            raise UsageError(f"unknown key {key!r} in {FILE}", where=f"in {path}", fix=fix)


def _table(values: Mapping[str, Any], name: str, path: Path) -> Mapping[str, Any]:
    table = values.get(name, {})
    if not isinstance(table, Mapping):
        raise UsageError(f"{name} in {FILE} is no table", where=f"in {path}", fix=f"write [{name}]")
    return table


def _consented(layers: Iterable[_Layer], environ: Mapping[str, str]) -> tuple[list[_Layer], list[str]]:
    """The layers without those MCP servers of a project's file that the user has not named, and what to say of them."""
    named = _listed(environ.get(MCP_CONSENT, ""), ",")
    kept: list[_Layer] = []
    refused: list[str] = []
    for layer in layers:
        servers = layer.values.get("mcp", {})
        allowed = {name: server for name, server in servers.items() if layer.kind != "project" or name in named}
        held = [name for name in servers if name not in allowed]
        origins = {name: origin for name, origin in layer.origins.items() if name.removeprefix("mcp.") not in held}
        kept.append(replace(layer, values={**layer.values, "mcp": allowed}, origins=origins) if servers else layer)
        if held:
            fix = f"{MCP_CONSENT}={','.join(servers)} allows it"
            refused.append(f"MCP servers of {layer.origins['mcp']} are not started: {', '.join(held)}; {fix}")
    return kept, refused


def _merged(layers: Iterable[_Layer]) -> tuple[dict[str, Any], dict[str, str]]:
    """The first layer that sets a value wins; tables are merged entry by entry."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for layer in reversed(list(layers)):
        for key, value in layer.values.items():
            if key == "roles":
                known = values.get("roles", {})
                values["roles"] = {**known, **{role: _role(known.get(role, {}), value[role]) for role in value}}
            elif key == "workflows":
                known = values.get(key, {})
                values[key] = {**known, **{name: {**known.get(name, {}), **value[name]} for name in value}}
            elif key in ("search_keys", "mcp", "prices", "keys"):
                values[key] = {**values.get(key, {}), **value}
            else:
                values[key] = value
        origins |= layer.origins
    return values, origins


def _role(known: Mapping[str, Any], closer: Mapping[str, Any]) -> dict[str, Any]:
    """A role's settings of two layers. A base URL that is set closer is not given the key of the one it replaces."""
    kept = {key: value for key, value in known.items() if not (key == "api_key" and "base_url" in closer)}
    return {**kept, **closer}


def _paired_key(layers: Iterable[_Layer], values: dict[str, Any], origins: dict[str, str]) -> list[str]:
    """A key belongs to an endpoint: see that it is sent to no other.

    The key of a file goes with that file's base URL. A base URL that a project's file names is given no key that was
    meant for another endpoint, because whoever wrote that file would receive it; HIRA_API_KEY is meant for hira.
    """
    file = next((layer for layer in layers if "base_url" in layer.values), None)
    withheld = _paired_keys_of_roles(file, values) if file and file.kind == "project" else []
    if file is None or file.kind not in ("project", "user") or origins.get("api_key") == "HIRA_API_KEY":
        return withheld
    if "api_key" in file.values:
        values["api_key"], origins["api_key"] = file.values["api_key"], file.origins["api_key"]
    elif file.kind == "project" and "api_key" in values:
        kept = origins.pop("api_key")
        del values["api_key"]
        told = f"the key from {kept} is not sent to the base URL of {file.origins['base_url']}; HIRA_API_KEY would be"
        return [*withheld, told]
    return withheld


def _paired_keys_of_roles(file: _Layer, values: dict[str, Any]) -> list[str]:
    """Take the keys of roles out that would go to the base URL of a project's file and do not stand in that file."""
    told, roles = [], dict(values.get("roles", {}))
    for name, own in roles.items():
        theirs = file.values.get("roles", {}).get(name, {}).get("api_key")
        if own.get("api_key") and not own.get("base_url") and own["api_key"] != theirs:
            roles[name] = {key: value for key, value in own.items() if key != "api_key"}
            told.append(f"the key of role {name!r} is not sent to the base URL of {file.origins['base_url']}")
    if told:
        values["roles"] = roles
    return told


def _documents_alone(layers: Iterable[_Layer], values: dict[str, Any], origins: dict[str, str]) -> list[str]:
    """Documents that are named closer to the question than a web search leave it out: `--docs` stays off the web."""
    for layer in layers:
        if "search" in layer.values:
            return []
        if "docs" in layer.values and values.get("search"):
            kept, name = origins.pop("search"), values.pop("search")
            where = layer.origins["docs"]
            return [f"search {name!r} from {kept} is off because {where} names documents; --search {name} turns it on"]
    return []


def _invalid(error: ValidationError, origins: Mapping[str, str]) -> UsageError:
    first = error.errors(include_input=False)[0]
    path = [str(part) for part in first["loc"]]
    where = origins.get(".".join(path[:2])) or origins.get(path[0], "") if path else ""
    says = first["msg"].lower().removeprefix("value error, ")
    fix = did_you_mean(str(error.errors()[0]["input"]), _choices(path)) if first["type"] == "literal_error" else ""
    return UsageError(f"{'.'.join(path[:3])}: {says}", where=f"set by {where}" if where else "", fix=fix)


def _choices(path: list[str]) -> tuple[str, ...]:
    fields = {
        "without": Part,
        "dialect": Dialect,
        "continuation": Continuation,
        "sandbox": Sandbox,
        "extractor": Extractor,
    }
    name = next((part for part in reversed(path) if part in fields), "without")
    return tuple(fields[name].__args__)  # type: ignore[attr-defined]
