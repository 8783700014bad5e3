"""All settings, with the bounds of each value."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from hira.core.errors import UsageError, did_you_mean
from hira.core.options import Part, read_duration
from hira.core.policy import Effort
from hira.core.sanitize import passwords_in, without_userinfo
from hira.policies.names import Api
from hira.tools.python.layers import Mode as Sandbox

# The servers of a project's file that the user wants, by name. A command of that file would run with the user's rights,
# so they are started only with consent.
MCP_CONSENT = "HIRA_MCP"
# The endpoints of a project's file that may be sent questions and documents, and the code, the servers and the models
# that it may name; else the user is asked, once per folder and content.
TRUST = "HIRA_TRUST"
# The key that clients of `hira serve` must send.
SERVE_KEY = "HIRA_SERVE_KEY"
TRUSTED = "trusted.json"
ON = ("true", "1", "yes", "on", "t", "y")
FILE = "hira.toml"
PROFILE, SERVED = "profile.toml", "served.toml"
JOURNAL, MEMORY, OFF = "journal.sqlite", "memory.sqlite", "off"
ORIGINS = "origins"
SHORTEST_SECRET = 8
Dialect = Literal["native", "tags", "xml", "json"]
Verify = Literal["lexical", "model", "off"]
# How an endpoint carries a message of the model's own on, so that a role reasons in one chain; `turns` needs nothing.
Continuation = Literal["turns", "continue_final_message", "prefix", "completions"]
SECRET_NAME = re.compile(r"(?:^|_)(?:API_?KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$", re.IGNORECASE)
"""The name of a variable or an option that usually contains a key or a password."""
DOCUMENTS = "documents"
"""Stands among the names of searches for the documents alone, so that no web search is chosen."""


def list_retrievers(search: str) -> list[str]:
    """Return the retrievers among the names of searches: functions, as `module:function`."""
    names = map(str.strip, search.split(","))
    return [name for name in names if ":" in name and not name.startswith("litellm:")]


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
PREFERRED = ("serper", "tavily", "brave", "exa", "serpapi", "jina")
"""Web searches that are chosen where their key is set, best first. Others have to be named."""
ALSO_CALLED = {"wikipedia": "mediawiki", "pubmed": "europepmc"}
"""Services that people know by another name."""


Seconds = Annotated[float, BeforeValidator(read_duration)]
"""A number of seconds, or a text such as "5m"."""


class _Settings(BaseModel):
    """Settings whose representation shows no password of a URL, and no value with the name of a secret."""

    def __repr_args__(self) -> "Iterator[tuple[str | None, Any]]":
        for name, value in super().__repr_args__():
            if isinstance(value, str) and SECRET_NAME.search(name or ""):
                yield name, "**********"
            else:
                yield name, _bare(value)


class StrictModel(_Settings):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, values: Any) -> Any:
        for key in values if isinstance(values, Mapping) else ():
            if key not in cls.model_fields:
                raise UsageError(f"unknown setting {key!r}", fix=did_you_mean(str(key), cls.model_fields))
        return values


class RoleSettings(StrictModel):
    """The settings in which one role differs from the others; None and "" mean: as all of them.

    `model` may name several, separated by commas: each one replaces the one before it when that is down. The limits
    bound the role's usage in one run: tokens in and out, US dollars, seconds summed over its calls, calls, and the
    subtasks that it gets as an expert. An empty `adapter` means the base model alone. `extra_body` is added to each
    request to its endpoint, such as the arguments of a chat template.
    """

    model: str = ""
    adapter: str | None = None
    base_url: str = ""
    api: Api | None = None
    api_key: SecretStr = SecretStr("")
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    reasoning_effort: Effort | None = None
    extra_body: Mapping[str, Any] = Field(default_factory=dict)
    dialect: Dialect | None = None
    continuation: Continuation | None = None
    max_reply_tokens: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    max_time: Seconds | None = Field(default=None, gt=0)
    max_calls: int | None = Field(default=None, ge=1)
    max_subtasks: int | None = Field(default=None, ge=0)


class TimeoutSettings(StrictModel):
    """Seconds that an endpoint is waited for: to connect, until the first token of a reply that streams in, between two
    of its tokens, and for a whole reply. One that was seen to be slow is waited for longer."""

    connect: float = Field(default=10, gt=0)
    first_token: float = Field(default=300, gt=0)
    between_tokens: float = Field(default=120, gt=0)
    reply: float = Field(default=900, gt=0)


class PriceSettings(StrictModel):
    """US dollars per million tokens. `cached` is for prompt tokens from the endpoint's cache, None for the same."""

    input: float = Field(ge=0)
    output: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)


class McpSettings(StrictModel):
    """An MCP server: a `command` with `args` and `env` to start it, or the `url` of one that runs, with `headers`.

    `roles` are those that are given its tools, all that work in a loop if none is named, or `*`; `seconds` bounds a
    call. A person has to `approve` each call of the named tools, or of all with true.
    """

    command: str = ""
    args: tuple[str, ...] = ()
    env: Mapping[str, SecretStr] = Field(default_factory=dict)
    url: str = Field(default="", pattern="^(https?://.+)?$")
    headers: Mapping[str, SecretStr] = Field(default_factory=dict)
    roles: tuple[str, ...] = ()
    seconds: float = Field(default=120, gt=0)
    approve: bool | tuple[str, ...] = False

    @property
    def for_some(self) -> bool:
        """True if only the named roles get its tools."""
        return bool(self.roles) and "*" not in self.roles

    @property
    def secrets(self) -> list[SecretStr]:
        """Keys and passwords by their names; of a header such as `Authorization: Bearer …` the last word."""
        words = [SecretStr(value.get_secret_value().split()[-1]) for value in self.headers.values() if value]
        return [*words, *(value for name, value in self.env.items() if SECRET_NAME.search(name))]

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if bool(self.command) == bool(self.url):
            raise ValueError("set either command or url")
        if self.url and (self.args or self.env):
            raise ValueError("args and env need a command")
        if self.command and self.headers:
            raise ValueError("headers need a url")
        return self


class ExpertSettings(_Settings):
    """An expert of your own; other keys of its table are its options."""

    model_config = ConfigDict(extra="allow", frozen=True)

    object: str = Field(pattern=":")
    """Its place, as `module:Object`."""

    @property
    def options(self) -> Mapping[str, Any]:
        return self.model_extra or {}

    @property
    def secrets(self) -> list[str]:
        """Keys and passwords by the names of their options, and passwords in URLs."""
        texts = {name: value for name, value in self.options.items() if isinstance(value, str)}
        named = [value for name, value in texts.items() if SECRET_NAME.search(name)]
        return [*named, *frozenset[str]().union(*map(passwords_in, texts.values()))]

    def to_json(self) -> dict[str, Any]:
        return {name: value for name, value in self.model_dump(mode="json").items() if not SECRET_NAME.search(name)}


class KeySettings(StrictModel):
    """A key for `hira serve` and its limits: questions at once, and tokens and US dollars for all of its questions
    together while the server runs."""

    key: SecretStr = SecretStr("")
    concurrency: int = Field(default=8, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)


class Settings(StrictModel):
    """Everything that can be set. Sampling defaults are the HiRA paper's (its top-k of 20 is not a field of the chat
    API and is sent only where it is set); `max_tokens`, `max_cost` (US dollars), `max_time` (seconds) and
    `max_calls` bound one run, `max_reply_tokens` each reply of a model (4,096 where it is not set); `timeout` bounds
    the wait for an endpoint; `prices` are by model, in US dollars for a million tokens; `sandbox` is the
    confinement that Python code requires (hira.tools.python), `sandbox_image` the image of its container; `cache` is
    the folder in which indexes of documents and searches are kept, None keeps them in memory. `search` names
    services, separated by commas, in order of preference; `contact` (an address or URL) is sent to the sites that
    hira reads; `embed` and `rerank` name the models that encode and order passages; `evidence` is the number of
    passages that a model scores and condenses for each search, 0 for none; with `rewrite`, it adds queries to each;
    `allowed_hosts` contains "host:port" entries of servers in this network that may be opened. `adapter` is a LoRA
    adapter for a model of this process (`hf:NAME`). `mcp` names servers whose tools experts are given. Files and
    folders that `exclude` names are read neither as documents nor by programs. `max_subtasks`, `parallel` and `dialect`
    are the workflow's own by default; `workflows` holds further options of workflows, by their names. `verify` says how
    answers are checked, None for a model where one is connected, lexically otherwise; without `verifier_exam` its
    verdicts count unexamined; `verifier`, `tools`, `experts` and `workflow` name objects of your own as
    `module:Object`. `otel` is the base URL of a collector of spans, empty or "off" for none. `memory`
    is the file in which verified claims of answers are kept and found again, None for none.
    """

    profile: Path | None = None
    model: str = ""
    adapter: str = ""
    base_url: str = ""
    api: Api = "chat"
    api_key: SecretStr = SecretStr("")
    workflow: str = "auto"
    instructions: str = ""
    workflows: Mapping[str, Mapping[str, bool | int | float | str]] = Field(default_factory=dict)
    roles: Mapping[str, RoleSettings] = Field(default_factory=dict)
    tools: tuple[str, ...] = ()
    experts: Mapping[str, ExpertSettings] = Field(default_factory=dict)
    docs: tuple[Path, ...] = ()
    exclude: tuple[Path, ...] = ()
    embed: str = ""
    rerank: str = ""
    evidence: int = Field(default=0, ge=0)
    rewrite: bool = False
    search: str = ""
    search_keys: Mapping[str, SecretStr] = Field(default_factory=dict)
    searxng_url: str = ""
    mcp: Mapping[Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,32}$")], McpSettings] = Field(default_factory=dict)
    contact: str = ""
    allowed_hosts: tuple[str, ...] = ()
    temperature: float = Field(default=0.7, ge=0, le=2)
    top_p: float = Field(default=0.95, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    seed: int | None = None
    reasoning_effort: Effort | None = None
    dialect: Dialect | None = None
    continuation: Continuation = "turns"
    without: frozenset[Part] = frozenset()
    max_subtasks: int | None = Field(default=None, ge=1)
    parallel: int | None = Field(default=None, ge=1)
    max_reply_tokens: int | None = Field(default=None, ge=1)
    timeout: TimeoutSettings = TimeoutSettings()
    max_tokens: int | None = Field(default=None, ge=1)
    max_cost: float | None = Field(default=None, gt=0)
    max_time: Seconds | None = Field(default=None, gt=0)
    max_calls: int | None = Field(default=None, ge=1)
    prices: Mapping[str, PriceSettings] = Field(default_factory=dict)
    keys: Mapping[str, KeySettings] = Field(default_factory=dict)
    verify: Verify | None = None
    verifier: str = ""
    verifier_exam: bool = True
    sandbox: Sandbox = "auto"
    sandbox_image: str = Field(default="", pattern="^([A-Za-z0-9][A-Za-z0-9._:/@-]*)?$")
    cache: Path | None = None
    journal: Path | None = None
    memory: Path | None = None
    cache_responses: bool = False
    cache_responses_hours: float = Field(default=24, gt=0)
    otel: str = ""
    _origins: Mapping[str, str] = PrivateAttr(default_factory=dict)
    _withheld: tuple[str, ...] = PrivateAttr(default=())
    _secrets: frozenset[str] = PrivateAttr(default=frozenset())

    @model_validator(mode="wrap")
    @classmethod
    def _validate(cls, values: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        """Validate the values. A wrong one is a `UsageError`; the context may say where each came from. So is a chain
        with native calls: such a call ends its message, so that nothing is left to continue."""
        try:
            settings = handler(values)
        except ValidationError as error:
            from hira.core.wrong_values import explain_wrong_values, list_wrong_values  # most values are right

            origins = (info.context or {}).get(ORIGINS, {})
            raise explain_wrong_values(list_wrong_values(error, values), origins) from None
        for role, role_settings in {"": RoleSettings(), **settings.roles}.items():
            way = role_settings.continuation or settings.continuation
            if way != "turns" and (role_settings.dialect or settings.dialect) in (None, "native"):
                what = f'continuation = "{way}" does not work with native tool calls'
                fix = 'also set dialect = "tags", or set continuation = "turns"'
                raise UsageError(f"{what} (role {role!r})" if role else what, fix=fix)
        return settings

    @field_validator("experts", mode="before")
    @classmethod
    def _name_experts(cls, experts: Any) -> Any:
        """Name experts that are listed without a table by their places."""
        names = [experts] if isinstance(experts, str) else experts
        return {name: {"object": name} for name in names} if isinstance(names, list | tuple) else names

    @field_validator("docs", "exclude", "tools", mode="before")
    @classmethod
    def _one_or_several(cls, value: Any) -> Any:
        return (value,) if value and isinstance(value, str | Path) else value

    @field_validator("journal", "memory", mode="before")
    @classmethod
    def _drop_off(cls, file: Any) -> Any:
        return None if str(file) == OFF else file

    @property
    def secrets(self) -> frozenset[str]:
        """Keys and passwords that no tool may be given: those set here, and those of the environment."""
        given = [self.api_key, *self.search_keys.values(), *(role.api_key for role in self.roles.values())]
        given += [secret for server in self.mcp.values() for secret in server.secrets]
        given += [client_key.key for client_key in self.keys.values()]
        of_experts = {secret for expert in self.experts.values() for secret in expert.secrets}
        urls = [self.base_url, self.searxng_url, self.otel, self.model]
        urls += [text for server in self.mcp.values() for text in (server.url, *server.args)]
        urls += [text for role in self.roles.values() for text in (role.base_url, role.model)]
        secrets = {key.get_secret_value() for key in given} | self._secrets.union(of_experts, *map(passwords_in, urls))
        return frozenset(secret for secret in secrets if len(secret) >= SHORTEST_SECRET)

    def to_json(self) -> dict[str, Any]:
        """The settings as plain JSON values, without any key or password: what a run's record keeps of them."""
        values = self.model_dump(mode="json", exclude={"api_key", "search_keys", "mcp", "keys"}, exclude_none=True)
        roles = {name: {k: v for k, v in role.items() if k != "api_key"} for name, role in values["roles"].items()}
        experts = {name: expert.to_json() for name, expert in self.experts.items()}
        listed = all(":" in name for name in experts)  # as in records of versions without tables
        values |= {"roles": roles, "experts": [*experts] if listed else experts, "without": sorted(self.without)}
        values["base_url_from"] = self.origin("base_url")
        shown: dict[str, Any] = _bare(values)
        return shown

    def origin(self, name: str) -> str:
        """Where the value of a setting came from; "default" if nobody set it."""
        return self._origins.get(
            name,
            "default" if name not in self.model_fields_set or name in ("cache", "journal", "memory") else "Settings(…)",
        )

    def locate(self, name: str, table: str = "") -> str:
        """Return where to correct a setting, as the second line of an error: the file, and the table in it, or the
        environment variable. Empty if this command or call set it, or nobody."""
        origin = self.origin(name)
        if origin.endswith(".toml"):
            return f"in {origin}, table [{table}]" if table else f"in {origin}"
        return f"set by {origin}" if origin.startswith("HIRA_") else ""

    @contextmanager
    def located(self, name: str, table: str = "") -> Iterator[None]:
        """Add where to correct a setting to a `UsageError` that names no place."""
        try:
            yield
        except UsageError as error:
            error.where = error.where or self.locate(name, table)
            raise

    @property
    def web_searches(self) -> tuple[str, ...]:
        """The web searches to ask: those that are named, else, unless there are documents, the first that is set up."""
        if self.search:
            own = {"", DOCUMENTS, *list_retrievers(self.search)}
            named = [name.strip() for name in self.search.split(",")]
            return tuple(ALSO_CALLED.get(name, name) for name in named if name not in own)
        if self.docs:
            return ()
        keyed = next((name for name in PREFERRED if name in self.search_keys), "")
        return (keyed,) if keyed else ("searxng",) if self.searxng_url else ()

    @property
    def withheld(self) -> tuple[str, ...]:
        """List the settings that this run does not use, and why; one line each."""
        return self._withheld

    def with_values(self, values: Mapping[str, Any], origin: str) -> Self:
        """These settings with other values, which came from `origin`."""
        kept = {name: getattr(self, name) for name in self.model_fields_set}
        changed = type(self)(**{**kept, **values})
        before = list_entries(kept)
        entries = [name for name, entry in list_entries(values).items() if name not in before or before[name] != entry]
        origins = {**self._origins, **dict.fromkeys([*values, *entries], origin)}
        return changed.with_origins(origins, self._withheld, self._secrets)

    def with_origins(
        self, origins: Mapping[str, str], withheld: Iterable[str] = (), secrets: Iterable[str] = ()
    ) -> Self:
        """The same settings, knowing where more of their values came from, and more secrets."""
        same = self.model_copy()
        same._origins = {**self._origins, **origins}  # noqa: SLF001 - an object of this class
        same._withheld = (*self._withheld, *withheld)  # noqa: SLF001 - an object of this class
        same._secrets = self._secrets.union(secrets)  # noqa: SLF001 - an object of this class
        return same


def resolve_paths(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The values with the paths of documents, one or several, taken from the folder."""
    resolved_values = dict(values)
    for name in ("docs", "exclude"):
        value = values.get(name, ())
        named = [value] if isinstance(value, str | Path) else value if isinstance(value, list | tuple) else ()
        if any(not str(path).strip() for path in named):
            raise UsageError(
                "a path of the documents is empty", fix="name files or folders; is a variable of the shell unset?"
            )
        if named:
            resolved_values[name] = [folder / Path(str(path)).expanduser() for path in named]
    return resolved_values


def list_entries(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of tables whose origins are kept one by one, by names such as `roles.planner`, `mcp.files`,
    `experts.diver`, `workflows.mars` and `workflows.mars.turns`. Values that are not tables have no entries."""
    entries = {
        f"{table}.{name}": entry
        for table in ("roles", "mcp", "workflows", "experts")
        if isinstance(values.get(table), Mapping)
        for name, entry in values[table].items()
    }
    options = {
        f"{name}.{option}": value
        for name, table in entries.items()
        if name.startswith("workflows.") and isinstance(table, Mapping)
        for option, value in table.items()
    }
    return entries | options


def _bare(value: Any) -> Any:
    """A value without user and password in any of its URLs."""
    if isinstance(value, Mapping):
        return {key: _bare(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_bare(item) for item in value)
    return without_userinfo(value) if isinstance(value, str) else value


@dataclass(frozen=True, slots=True)
class Layer:
    """One place that settings come from. `origins` names it for each key."""

    kind: Literal["flags", "record", "environment", "project", "user"]
    values: Mapping[str, Any]
    origins: Mapping[str, str]


def split_list(value: str, separator: str) -> list[str]:
    return [part.strip() for part in value.split(separator) if part.strip()]
