"""Consent to settings of a project's file, which somebody else may have written; some it may not make at all."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import ConfigDict, TypeAdapter

from hira.core.errors import NotTrusted, UsageError
from hira.core.plugin import WORKFLOWS as INSTALLED
from hira.core.plugin import find_installed
from hira.core.sanitize import without_userinfo
from hira.journal.encoding import digest_text
from hira.policies.names import GGUF, IN_PROCESS, LITELLM, names_of
from hira.runtime.settings.fields import MCP_CONSENT, ON, TRUST, Layer, list_retrievers, split_list
from hira.runtime.settings.keys import endpoint, endpoints_of

_STORE = TypeAdapter(dict[str, list[str]], config=ConfigDict(defer_build=True))
# What only the user may loosen: a project's hira.toml may have been written by anyone.
_GUARDS = ("sandbox", "sandbox_image", "allowed_hosts", "otel", "memory")
# What it may name only in its own folder: what is read there, and where is written.
_NAMED = {"docs": "documents", "journal": "a journal", "cache": "a cache"}


def check_harmless(values: Mapping[str, Any], path: Path) -> None:
    """Raise `UsageError` for what a project's file may not decide: it can come with a folder that someone else made,
    and it names the endpoint that sees the documents."""
    if guard := next((name for name in _GUARDS if name in values), ""):
        fix = f"set HIRA_{guard.upper()} or put it in your user configuration"
        raise UsageError(f"{guard!r} may not be set by a project's file", where=f"in {path}", fix=fix)
    written = {name: [path.parent / Path(str(values.get(name, "."))).expanduser()] for name in ("journal", "cache")}
    for name, named in {"docs": values.get("docs", ()), **written}.items():
        for named_path in named:
            if not named_path.resolve().is_relative_to(path.parent.resolve()):
                what = f"a project's file may not name {_NAMED[name]} elsewhere: {named_path}"
                fix = f"name it in HIRA_{name.upper()} or in your user configuration"
                raise UsageError(what, where=f"in {path}", fix=fix)


def check_litellm(places: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Raise `UsageError` if a project's file gives a litellm model an address: litellm reads keys from the environment,
    and the author of that file would receive them."""
    for place in places:
        names = names_of(str(place.get("model") or ""))
        for name in names:
            if name.startswith(LITELLM) and (place.get("base_url") or "://" in name):
                what = f"a project's file may not name a base URL for {without_userinfo(name)!r}, which litellm asks"
                fix = "name the base URL with --base-url, base_url=, HIRA_BASE_URL or in your user configuration"
                raise UsageError(what, where=f"in {path}", fix=fix)


def places(values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Model and base URL of all roles and of each, as one file's values alone say."""
    yield values
    for table in values.get("roles", {}).values():
        if isinstance(table, Mapping):
            yield {name: table.get(name) or values.get(name) for name in ("model", "base_url")}


def _find_places(layer: Layer, values: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Model and base URL, as they are in the end, of the roles that have their base URL from this layer."""
    for name, table in layer.values.get("roles", {}).items():
        role = values["roles"][name]
        if table.get("base_url") and role["base_url"] == table["base_url"]:
            yield {"model": role.get("model") or values.get("model"), "base_url": role["base_url"]}


def drop_untrusted(
    layers: Iterable[Layer], environ: Mapping[str, str], path: Path, store: Path
) -> tuple[list[Layer], list[str]]:
    """The layers without what a project's file may not give: MCP servers that the user has neither named nor allowed,
    and keys of `hira serve`, because whoever wrote that file knows them. With a line for each."""
    named = {*split_list(environ.get(MCP_CONSENT, ""), ","), *read_allowed(environ, path, store)}
    kept: list[Layer] = []
    refused: list[str] = []
    for layer in layers:
        servers = layer.values.get("mcp", {})
        allowed = {
            name: server
            for name, server in servers.items()
            if layer.kind != "project" or not named.isdisjoint((name, name_server(name, server)))
        }
        held = [name for name in servers if name not in allowed]
        origins = {name: origin for name, origin in layer.origins.items() if name.removeprefix("mcp.") not in held}
        values = {**layer.values, "mcp": allowed} if servers else dict(layer.values)
        if layer.kind == "project" and values.pop("keys", None):
            origins.pop("keys")
            refused.append(f"[keys] of {layer.origins['keys']} are not used; put them in your user configuration")
        kept.append(replace(layer, values=values, origins=origins))
        if held:
            fix = f"with {MCP_CONSENT}={','.join(servers)} hira asks whether it may"
            refused.append(f"MCP servers of {layer.origins['mcp']} are not started: {', '.join(held)}; {fix}")
    return kept, refused


def check_trusted(
    layers: Sequence[Layer], values: Mapping[str, Any], environ: Mapping[str, str], path: Path, store: Path
) -> None:
    """Raise `NotTrusted` for everything that the project's file at `path`, or a record that it names, would use without
    consent: endpoints, code, instructions, recorded replies in its journal, and a record's documents elsewhere; and
    `UsageError` for a litellm model with an address from such a file.

    Values that the user, or a profile of the user, names as well need no consent. `store` keeps the consents.
    """
    files = [layer for layer in layers if layer.kind in ("project", "record")]
    for layer in files:
        check_litellm(_find_places(layer, values), path)
    doubted = [layer for layer in files if layer is layers[-2] or layer.kind == "record"]
    consents = read_allowed(environ, path, store)
    wanted: list[str] = []

    def collect(
        find: Callable[[Mapping[str, Any]], Mapping[str, str]], form: str, doubted: Sequence[Layer] = doubted
    ) -> list[str]:
        """Fill the form with what needs consent, if there is anything. `find` returns it by the name of its consent."""
        used = find(values)
        allowed = consents.union(*(find(layer.values) for layer in layers if layer not in doubted))
        doubtful = {
            name: text for layer in doubted for name, text in sorted(find(layer.values).items()) if name in used
        }
        doubtful = {name: text for name, text in doubtful.items() if name not in allowed}
        wanted.extend(doubtful)
        return [form.format(", ".join(doubtful.values()))] if doubtful else []

    def documents_elsewhere(named: Mapping[str, Any]) -> dict[str, str]:
        return {
            document: document
            for document in [str(Path(doc).resolve()) for doc in named.get("docs", ())]
            if not Path(document).is_relative_to(path.parent.resolve())
        }

    requests = collect(lambda named: {url: url for url in endpoints_of(named)}, "sends questions and documents to {}")
    requests += collect(lambda named: {name_code(code): code for code in code_of(named)}, "runs {} with your rights")
    requests += collect(_servers_of, "starts the MCP servers {} with your rights", files)  # nor may a profile
    requests += collect(_expert_options_of, "sets options of the experts {}")
    requests += collect(_models_of, "loads the models {}, with your tokens where they have to be fetched")
    requests += collect(documents_elsewhere, "reads {}")
    requests += collect(_instructions_of, "adds instructions to the prompts")
    if str(values.get("cache_responses")).lower() in ON:
        requests += collect(
            lambda named: {f"replies-of-{file}": str(file)} if (file := named.get("journal")) else {},
            "answers with replies recorded in its journal",
        )
    if wanted:
        recorded = " names a journal whose run" if len(doubted) > 1 else ""
        raise NotTrusted(
            f"{path.name} of this folder{recorded} {' and '.join(requests)}; you have not allowed it as it is now",
            where=f"in {path}",
            fix=f"to allow it: run hira in a terminal and say yes, or set {TRUST}={','.join(wanted)}",
            allow=lambda: allow(path, wanted, store),
        )


def record_layer(values: Mapping[str, Any], path: Path) -> Layer:
    """Return the settings of a recorded run whose journal the project's file at `path` names, without those that only
    the user may loosen: the author of that file may have written the record."""
    check_litellm(places(values), path)
    kept = {name: value for name, value in values.items() if name not in (*_GUARDS, "mcp", "keys", "profile")}
    return Layer("record", kept, dict.fromkeys(kept, f"the journal of {path}"))


def _instructions_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the instructions by the name under which consent to them is kept: other words need new consent."""
    text = str(values.get("instructions") or "")
    return {f"instructions-{hashlib.sha256(text.encode()).hexdigest()[:12]}": text} if text else {}


def _expert_options_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the experts with options, by the name of their consent: other options need new consent."""
    experts = values.get("experts")
    tables = experts.items() if isinstance(experts, Mapping) else ()
    named = {}
    for name, table in tables:
        if isinstance(table, Mapping) and len(table) > 1:
            text = json.dumps(table, sort_keys=True, default=str)
            named[f"experts.{name}@{digest_text(text)}"] = name
    return named


def _servers_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the MCP servers, each with its command or address, by the names under which consent is kept."""
    servers = {}
    for name, server in (values.get("mcp") or {}).items():
        named = server if isinstance(server, Mapping) else {}
        words = [named.get("command") or named.get("url"), *_list(named, "args")]
        text = without_userinfo(" ".join(map(str, words)))
        cut = "…" if len(text) > _LONGEST_COMMAND else ""
        servers[name_server(name, server)] = f"{name} ({text[:_LONGEST_COMMAND]}{cut})"
    return servers


_LONGEST_COMMAND = 200


def _list(values: Mapping[str, Any], name: str) -> list[Any]:
    value = values.get(name)
    return [*value] if isinstance(value, list | tuple) else []


def name_server(name: str, server: Any) -> str:
    """Return the name under which consent to an MCP server is kept. It ends in a digest of all its settings and of the
    files in this folder that its command names, so that another server of this name needs new consent."""
    from hira.runtime.settings.local_code import digest_local_code  # few runs need it

    named = server if isinstance(server, Mapping) else {}
    words = [str(argument) for argument in (named.get("command") or "", *_list(named, "args"))]
    files = digest_local_code(part for word in words for part in (word, word.partition("=")[2]) if part)
    text = json.dumps(server, sort_keys=True, default=str) + files
    return f"mcp.{name}@{digest_text(text)}"


def name_code(name: str) -> str:
    """Return the name of the consent to code, with a digest of the code in this folder; installed code has none."""
    from hira.runtime.settings.local_code import digest_local_code  # few runs need it

    digest = digest_local_code([name.partition(":")[0]])
    return f"{name}@{digest}" if digest else name


def _models_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the models and adapters that hira itself would load or download."""
    roles = values.get("roles")
    places = [values, *(roles.values() if isinstance(roles, Mapping) else ())]
    tables = [place for place in places if isinstance(place, Mapping)]
    models = [name for table in tables for name in names_of(str(table.get("model") or ""))]
    encoder = str(values.get("embed") or "")
    loaded = [name for name in (*models, encoder) if name.startswith((IN_PROCESS, GGUF)) or name.endswith(".gguf")]
    adapters = [str(table["adapter"]) for table in tables if table.get("adapter")] if loaded or not models else []
    return {name: name for name in (*loaded, *adapters)}


def code_of(values: Mapping[str, Any]) -> list[str]:
    """The objects of modules and of installed packages that these values name."""
    tools, experts = (
        (named,) if isinstance(named, str) else named
        for named in (values.get("tools") or (), values.get("experts") or ())
    )
    if isinstance(experts, Mapping):
        experts = [table.get("object") for table in experts.values() if isinstance(table, Mapping)]
    workflow = str(values.get("workflow") or "")
    code = [str(name) for name in (values.get("verifier"), workflow, *experts) if ":" in str(name)]
    code += list_retrievers(str(values.get("search") or ""))
    if workflow:
        from hira.workflows import WORKFLOWS

        code += [workflow] if workflow not in WORKFLOWS and workflow in find_installed(INSTALLED) else []
    return [*map(str, tools), *code]


def read_allowed(environ: Mapping[str, str], path: Path, store: Path) -> set[str]:
    """The names under which the user has given consent to the project's file at `path`, there or in the environment."""
    named = split_list(environ.get(TRUST, ""), ",")
    return {*named, *map(endpoint, named), *_read_store(store).get(str(path.resolve()), ())}


def allow(path: Path, wanted: Iterable[str], store: Path) -> None:
    """Remember that the project's file at `path` may name these. Only the user can read the store."""
    from hira.core.files import replace_file  # most runs write no consent

    known = _read_store(store)
    known[str(path.resolve())] = sorted({*known.get(str(path.resolve()), ()), *wanted})
    try:
        store.parent.mkdir(parents=True, exist_ok=True)
        replace_file(store, [json.dumps(known, indent=1).encode()], private=True)
    except OSError as error:
        fix = f"set {TRUST} instead"
        raise UsageError(f"{store} cannot be written: {error.strerror}", fix=fix) from None


def _read_store(store: Path) -> dict[str, list[str]]:
    try:
        return _STORE.validate_json(store.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError):
        raise UsageError(f"{store} cannot be read", fix="remove it; hira will ask again") from None
