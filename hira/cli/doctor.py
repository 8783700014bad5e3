"""`hira doctor`: what is configured and from where, what works, what is off and how to turn it on."""

import asyncio
import platform
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

import hira
from hira.agents.exam import ExamScore, find_score
from hira.cli import ENDPOINT, OK, USAGE, code_of
from hira.cli.running import open_roles
from hira.cli.shell import Shell
from hira.core.errors import HiraError, UsageError, count_of
from hira.core.options import LIMITS, SHARED
from hira.core.sanitize import without_userinfo
from hira.policies.capabilities import WAYS, capabilities
from hira.policies.dialects import FALLBACKS, NATIVE
from hira.policies.facts import DIALECT, EndpointFacts
from hira.policies.names import GGUF, LOCAL_PORTS, OFFLINE, OPENAI_URL, has_own_place, names_of, place_of, resolve_name
from hira.policies.probe import Probe, probe
from hira.runtime.endpoints import find_model
from hira.runtime.registry import make_workflow
from hira.runtime.services import mcp_servers
from hira.runtime.settings import SEARCH_KEYS, Settings, list_retrievers
from hira.tools.documents import Index
from hira.tools.documents.walk import walk
from hira.tools.file_kinds import can_be_sent
from hira.tools.mcp import mcp_tools
from hira.tools.proxies import of_environment, read_proxy
from hira.tools.python import IMAGE, refusal, sandbox_layers
from hira.tools.python.trial import try_sandbox

EXTRAS = {
    "litellm": ("litellm", "models by litellm/PROVIDER/NAME"),
    "local": ("xllamacpp", "models in GGUF files (gguf:FILE)"),
    "export": ("typst", "answers as PDF and Word documents (-o answer.pdf)"),
    "pdf": ("pypdf", "PDF documents"),
    "charsets": ("charset_normalizer", "text files in older encodings than UTF-8"),
    "images": ("PIL", "large pictures, made smaller"),
    "media": ("av", "sounds of any kind, and pictures out of videos"),
    "ddgs": ("ddgs", "web search without a key (--search ddgs)"),
    "mcp": ("mcp", "tools of MCP servers, and hira as an MCP server"),
    "serve": ("starlette", "hira serve: an OpenAI-compatible endpoint and a page"),
    "schema": ("jsonschema", "answers checked against a JSON schema"),
    "tiktoken": ("tiktoken", "exact token counts for OpenAI's models"),
    "embed": ("numpy", "a search of documents with an encoder"),
    "minicheck": ("transformers", "claims checked by MiniCheck"),
    "lettucedetect": ("lettucedetect", "claims checked by LettuceDetect"),
    "completion": ("shtab", "commands completed in a shell"),
    "eval": ("datasets", "public sets of questions for hira eval"),
    "train": ("trl", "hira-train, and models in this process (hf:NAME)"),
    "curate": ("datasketch", "questions that are worth training on"),
    "otel": ("opentelemetry.sdk", "runs as OpenTelemetry spans"),
    "ray": ("ray", "batches and evaluations on a Ray cluster"),
}
"""For each extra, the module by which its presence is seen, and what it is for."""


SHAPING = (
    *("workflow", *SHARED, "temperature", "top_p", "top_k", "seed", "reasoning_effort"),
    *("dialect", "continuation", "max_reply_tokens", *LIMITS),
)


@dataclass(slots=True)
class DoctorReport:
    """A report about `settings`: lines under headings; `off` are things that could be turned on, and how;
    `code` is the exit code. `probing` asks the model."""

    settings: Settings
    probing: bool
    lines: list[str] = field(default_factory=list)
    off: list[str] = field(default_factory=list)
    code: int = OK

    def head(self, title: str) -> None:
        self.lines += ["", title]

    def row(self, name: str, value: str, origin: str = "") -> None:
        self.lines.append(f"  {name:<16}{value}" + (f"  ({origin})" if origin else ""))

    def fail(self, name: str, error: HiraError, origin: str = "") -> None:
        self.row(name, "; ".join(str(error).splitlines()), origin)
        self.code = code_of(error)


@dataclass(frozen=True, slots=True)
class DoctorOptions:
    settings: Mapping[str, Any]
    probe: bool = False


def doctor(options: DoctorOptions, shell: Shell) -> int:
    report = DoctorReport(shell.load_settings(options.settings), options.probe)
    make_workflow(report.settings)
    report.lines.append(f"hira {hira.__version__} · Python {platform.python_version()} · {platform.system()}")
    asyncio.run(_model(report))
    _roles(report)
    asyncio.run(_documents(report))
    _searches(report)
    asyncio.run(_mcp(report))
    asyncio.run(_python(report))
    _extras(report)
    _limits(report)
    report.off += report.settings.withheld
    if report.off:
        report.head("Off, and how to turn it on")
        report.lines += [f"  - {line}" for line in report.off]
    shell.say(without_userinfo("\n".join(report.lines)))
    return report.code


async def _model(report: DoctorReport) -> None:
    report.head("Model")
    try:
        report.settings = settings = await find_model(report.settings, LOCAL_PORTS)
    except HiraError as error:
        report.fail("problem", error)
        return
    report.row("model", settings.model, settings.origin("model"))
    if settings.model == OFFLINE:
        report.off.append(
            "a model: --model NAME with OPENAI_API_KEY or --base-url URL, --model gguf:FILE, or start a "
            "server on one of the ports " + ", ".join(map(str, LOCAL_PORTS))
        )
        return
    name = names_of(settings.model)[0]
    first, elsewhere = place_of(name if settings.base_url else resolve_name(name))
    if first.startswith(GGUF):
        await _file(report, first.removeprefix(GGUF))
    if has_own_place(first) or elsewhere:
        return
    base_url, key = settings.base_url or OPENAI_URL, settings.api_key.get_secret_value()
    report.row("endpoint", base_url, settings.origin("base_url"))
    report.row("key", "set" if key else "none", settings.origin("api_key") if key else "")
    endpoint = await probe(base_url, key)
    report.row("reachable", _describe_reach(endpoint, settings.model))
    await _exam(report, taking=report.probing and endpoint.ok)
    if not endpoint.ok:
        report.code = ENDPOINT
    elif report.probing:
        await _capabilities(report, base_url, key)
    else:
        why = "the endpoint's capabilities are not tested"
        report.off.append(f"{why}: hira doctor --probe tests them with a few tiny requests")


async def _file(report: DoctorReport, name: str) -> None:
    """Report how a GGUF file is served here. Only probing loads the file."""
    from hira.policies.llama import LlamaPolicy

    try:
        policy = LlamaPolicy(name)
        config = policy.config
        report.row("file", config.path)
        report.row("llama.cpp", f"threads: {config.threads}, requests at once: {config.slots}, window: {config.window}")
        if report.probing:
            server = (await policy.hold()).server
            await _capabilities(report, await server.base_url(), server.key)
            await policy.aclose()
        await _exam(report, taking=report.probing)
    except HiraError as error:
        report.fail("problem", error)


async def _exam(report: DoctorReport, *, taking: bool) -> None:
    """Report whether the verdicts of the model that verifies count; it takes the exam if it has not yet."""
    if not needs_exam(report.settings):
        counts = not report.settings.verifier_exam
        report.row("verifier", "its verdicts count without an exam" if counts else "not a model")
        return
    notes: list[str] = []
    score = await examine(report.settings, notes.append, taking=taking, again=taking)
    report.row("verifier", score.conclude() if score else "not examined yet")
    if score is None:
        report.off += notes
        if not taking:
            report.off.append("the verifier's exam: hira doctor --probe takes it, else the first answer does")


def needs_exam(settings: Settings) -> bool:
    """Return whether a model verifies answers that has to pass the exam."""
    return settings.verifier_exam and settings.verify not in ("lexical", "off") and not settings.verifier


async def examine(
    settings: Settings, tell: Callable[[str], None], *, taking: bool = True, again: bool = False
) -> ExamScore | None:
    """Return the score of the model that verifies answers, as `find_score` does. `tell` is given the notices."""
    async with open_roles(settings, tell) as context:
        return await find_score(context, taking=taking, again=again)


def _describe_reach(endpoint: Probe, model: str) -> str:
    if not endpoint.ok:
        return f"no: {endpoint.error}"
    count = count_of(len(endpoint.models), "model")
    lines = ["yes", endpoint.server or "server unknown", count]
    if endpoint.lacks_v1:
        lines.append(f"but the base URL lacks /v1: set it to {endpoint.base_url}")
    here = [name for name in names_of(model) if not (place_of(name)[1] or has_own_place(name))]
    lines += [f"{name!r} is not listed" for name in here if name not in endpoint.models]
    return ", ".join(lines)


async def _capabilities(report: DoctorReport, base_url: str, key: str) -> None:
    """Report the capabilities that the endpoint showed, and the settings that fit it better."""
    settings = report.settings
    model = names_of(settings.model)[0]
    abilities = await capabilities(model, base_url, key)
    for name, value in abilities.items():
        report.row(name, value if isinstance(value, str) else "yes" if value else "no")
    native = abilities["native tools"] is True
    instead = FALLBACKS[NATIVE.name]
    EndpointFacts(settings.cache).about(base_url, model).keep(DIALECT, "" if native else instead)
    if not native:
        report.off.append(
            f'the endpoint returned no native tool calls: set dialect = "{instead}"'
            if settings.dialect == NATIVE.name
            else f"the endpoint returned no native tool calls: calls of this model are text (dialect {instead})"
        )
    if abilities["pictures"] is not True:
        report.off.append('the model did not see pictures: [roles.look] model = "NAME" names a model that sees')
    if settings.continuation == "turns" and (way := abilities["continuation"]) in WAYS:
        lines = f'continuation = "{way}" and dialect = "tags"'
        report.off.append(f"reasoning in one chain, as in the HiRA paper: {lines}, both in hira.toml")


def _roles(report: DoctorReport) -> None:
    changed = {role: settings for role, settings in report.settings.roles.items() if settings.model_fields_set}
    if changed:
        report.head("Roles")
    for role, settings in changed.items():
        lines = [f"{name} {getattr(settings, name)}" for name in sorted(settings.model_fields_set - {"api_key"})]
        lines += ["key set"] if "api_key" in settings.model_fields_set else []
        report.row(role, ", ".join(lines))


async def _documents(report: DoctorReport) -> None:
    """Report how many documents can be read, and why the others cannot. It reads them as a run does."""
    settings = report.settings
    report.head("Sources of answers")
    if not settings.docs:
        report.row("documents", "none")
        report.off.append('documents: --docs PATH, or docs = ["PATH"] in hira.toml')
        return
    listing = walk(settings.docs, settings.exclude)
    files, media = len(listing.files), sum(map(can_be_sent, listing.media))
    with closing(Index(settings.docs, settings.cache, exclude=settings.exclude)) as index:
        await index.refresh()
        read = len(await index.names())
    named = ", ".join(map(str, settings.docs))
    count = f"{count_of(files, 'file')}, {read} read"
    count += f", {media} to be looked at or listened to" if media else ""
    report.row("documents", f"{named}: {count}", settings.origin("docs"))
    report.off += index.warnings
    if not (read or media):
        report.code = USAGE


def _searches(report: DoctorReport) -> None:
    settings, searches = report.settings, report.settings.web_searches
    if retrievers := list_retrievers(settings.search):
        report.row("retriever", ", ".join(retrievers), settings.origin("search"))
    report.row("web search", ", ".join(searches) or "off", settings.origin("search") if settings.search else "")
    if proxy := of_environment("https", "example.org"):
        report.row("proxy", without_userinfo(proxy))
        try:
            read_proxy(proxy)
        except UsageError as error:
            report.off.append(f"pages: {error.what}; {error.fix}")
    for name in SEARCH_KEYS:
        if name in settings.search_keys:
            report.row(f"key {name}", "set", settings.origin(f"search_keys.{name}"))
    if not searches:
        keys = ", ".join(list(SEARCH_KEYS.values())[:3])
        report.off.append(
            f"web search: --search NAME with a key ({keys}, …), SEARXNG_BASE_URL, or --search wikipedia without a key"
        )


async def _mcp(report: DoctorReport) -> None:
    """Start the MCP servers for a moment and report their tools."""
    settings = report.settings
    if settings.mcp:
        report.head("MCP servers")
    for server in mcp_servers(settings):
        server_settings = settings.mcp[server.name]
        try:
            async with mcp_tools(server, report.off.append) as tools:
                count = count_of(len(tools), "tool")
                names = ", ".join(tool.name for tool in tools)
            report.row(server.name, f"{count}: {names}" if tools else count, settings.origin(f"mcp.{server.name}"))
        except HiraError as error:
            report.fail(server.name, error, settings.origin(f"mcp.{server.name}"))
        if server_settings.roles:
            report.row("", f"for {', '.join(server_settings.roles)}")


async def _python(report: DoctorReport) -> None:
    """The layers that this machine has, and what came of a program that tried to pass them."""
    report.head("Python sandbox")
    mode, image = report.settings.sandbox, report.settings.sandbox_image or IMAGE
    for layer in sandbox_layers(mode, image):
        report.row(layer.name, f"{'on' if layer.active else 'off'}: {layer.note}")
    if why := refusal(mode, image):
        instead = "" if mode == "container" else "HIRA_SANDBOX=container needs docker or podman, "
        report.off.append(f"{why}: {instead}HIRA_SANDBOX=process needs only a separate process")
        return
    tried = await try_sandbox(mode, image)
    if tried.trouble:
        report.row("tried", f"code cannot run: {tried.trouble}")
        report.off.append(f"Python code: {tried.trouble}")
    elif tried.through:
        report.row("tried", f"a program could {', '.join(tried.through)} outside: do not run untrusted code here")
        report.code = USAGE
    else:
        held = f"a test program was blocked from all it tried outside its folder: {', '.join(tried.tried)}"
        report.row("tried", held if tried.tried else "code runs, and can access your files and the network")


def _extras(report: DoctorReport) -> None:
    report.head("Extras")
    there = {extra: _is_installed(module) for extra, (module, _) in EXTRAS.items()}
    for is_installed, name in ((True, "installed"), (False, "not installed")):
        report.row(name, ", ".join(extra for extra, is_there in there.items() if is_there is is_installed) or "none")
    report.off += [f"{use}: pip install 'hira[{extra}]'" for extra, (_, use) in EXTRAS.items() if not there[extra]]


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package above it is missing
        return False


def _limits(report: DoctorReport) -> None:
    """Report the settings that shape a run."""
    report.head("A run")
    for name in SHAPING:
        value = getattr(report.settings, name)
        if value not in (None, frozenset()):
            text = ", ".join(sorted(value)) if isinstance(value, frozenset) else str(value)
            report.row(name, text, report.settings.origin(name))
