"""The server: `/v1/models`, `/v1/chat/completions` and `/v1/responses` as OpenAI has them, `/api/…` for the page, and
the page at `/`.

>>> async with application(settings) as app: ...  # an ASGI app, for any ASGI server or mounted into another app
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from hira.core.page import add_palette, make_page
from hira.core.policy import Policy
from hira.core.sanitize import without_userinfo
from hira.policies.names import OPENAI_URL, has_own_place, names_of
from hira.policies.probe import Probe, ask_for_token, probe
from hira.runtime.factory import open_session
from hira.runtime.registry import WorkflowUnion, make_workflow
from hira.runtime.settings import RoleSettings, Settings
from hira.runtime.settings.keys import find_place
from hira.server.answering import complete_chat, create_response, delete_response, retrieve_response
from hira.server.keys import Clients
from hira.server.outside import PathScrubber
from hira.server.page_requests import approve, begin, events, list_runs, one_run, resume, stop
from hira.server.runs import Runs
from hira.server.state import LOCAL, AppState, Handler, guard, unknown
from hira.workflows import WORKFLOWS

SCRIPTS = ("page.js", "server.js", "run.js", "written.js", "element.js", "source.js")
FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    **{f"/{name}": (name, "text/javascript") for name in SCRIPTS},
}
HEAD = """<link rel="stylesheet" href="/page.css">
<link rel="icon" href="data:,">
<script type="module" src="/page.js"></script>"""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
REFUSED, BROKEN = (401, 403), 500
_SHOWN = 5


async def unready(settings: Settings) -> list[str]:
    """A line for each endpoint that does not answer, refuses its key, lacks the model, or fails to write one token."""
    models: dict[tuple[str, str], set[str]] = {}  # by base URL and key
    for role, role_settings in {"*": RoleSettings(), **settings.roles}.items():
        for name in names_of(role_settings.model or settings.model):
            place = find_place(name, role, role_settings, settings)
            if not has_own_place(place.model):
                models.setdefault((place.base_url or OPENAI_URL, place.secret), set()).add(place.model)
    lines = await asyncio.gather(*(_find_problem(url, key, sorted(named)) for (url, key), named in models.items()))
    return [line for line in lines if line]


async def _find_problem(url: str, key: str, models: Sequence[str]) -> str:
    if problem := _describe_problem(url, await probe(url, key), models):
        return problem
    statuses = await asyncio.gather(*(ask_for_token(url, key, model) for model in models))
    failing = {model: status for model, status in zip(models, statuses, strict=True) if status >= BROKEN}
    if not failing:
        return ""
    found = ", ".join(map(str, dict.fromkeys(failing.values())))
    return f"{without_userinfo(url)} answers a chat with status {found}: questions to {', '.join(failing)} may fail"


def _describe_problem(url: str, endpoint: Probe, models: Sequence[str]) -> str:
    """Describe why the endpoint is not ready; empty if it is, or if it does not list its models."""
    named, url = ", ".join(models), without_userinfo(url)
    if not endpoint.ok and not endpoint.status:
        why = "nothing listens there" if "onnect call failed" in endpoint.error else endpoint.error
        return f"{url} does not answer ({why}): questions to {named} fail until it does"
    if endpoint.status in REFUSED:
        return f"{url} refuses the key, and questions to {named} fail; hira doctor shows where the key comes from"
    if endpoint.status >= BROKEN:
        return f"{url} answers with status {endpoint.status}: questions to {named} may fail"
    if endpoint.lacks_v1:
        right = without_userinfo(endpoint.base_url)
        return f"the base URL {url} lacks /v1: questions to {named} fail; set it to {right}"
    if endpoint.models and (unknown := [name for name in models if name not in endpoint.models]):
        has = ", ".join(endpoint.models[:_SHOWN]) + (", …" if len(endpoint.models) > _SHOWN else "")
        return f"{url} lists no model {', '.join(unknown)}; it has {has}"
    return ""


@asynccontextmanager
async def application(
    settings: Settings,
    *,
    policies: Mapping[str, Policy] | None = None,
    hosts: frozenset[str] | None = LOCAL,
) -> AsyncIterator[Starlette]:
    """The app; its sessions are open as long as the context lasts. Raises the faults of the settings."""
    names = sorted(WORKFLOWS, key=lambda name: name != settings.workflow)  # the default comes first
    made = {name: make_workflow(settings.with_values({"workflow": name}, "hira serve")) for name in names}
    common = await open_session(settings, workflow=WorkflowUnion(made), policies=policies)
    sessions = {name: common.beside(workflow) for name, workflow in made.items()}
    with tempfile.TemporaryDirectory(prefix="hira-serve-") as folder:
        scrub = PathScrubber(settings, Path(folder))
        state = AppState(Runs(sessions, scrub.hidden), Clients(settings.keys), scrub, Path(folder), hosts)
        try:
            routes = [Route(path, guard(state, handler), methods=[method]) for method, path, handler in HANDLERS]
            routes += [Route(path, _serve_file(name, kind), methods=["GET"]) for path, (name, kind) in FILES.items()]
            app = Starlette(routes=routes, exception_handlers={404: unknown, 405: unknown})
            app.state.session, app.state.models = common, list(sessions)
            yield app
        finally:
            await state.runs.aclose()
            await common.aclose()


async def healthy(_state: AppState, _request: Request) -> Response:
    """Report, without a key, that this server takes requests; its model is not asked."""
    return JSONResponse({"status": "ok"})


MODEL = {"object": "model", "created": 0, "owned_by": "hira"}


async def models(state: AppState, request: Request) -> Response:
    state.client(request)
    return JSONResponse({"object": "list", "data": [{"id": name, **MODEL} for name in state.runs.sessions]})


async def model(state: AppState, request: Request) -> Response:
    state.client(request)
    return JSONResponse({"id": state.runs.session(request.path_params["model"]).workflow.name, **MODEL})


async def describe_setup(state: AppState, request: Request) -> Response:
    """Describe the models and the documents for the page."""
    state.client(request)
    session = state.session
    documents = [path.name or str(path) for path in map(Path.absolute, session.settings.docs)]
    models = dict.fromkeys(role.policy.model for role in session.roles.values())
    return JSONResponse(state.scrub({"models": [*models], "documents": documents}))


HANDLERS: list[tuple[str, str, Handler]] = [
    ("GET", "/healthz", healthy),
    ("GET", "/health", healthy),
    ("GET", "/v1/models", models),
    ("GET", "/v1/models/{model:path}", model),
    ("POST", "/v1/chat/completions", complete_chat),
    ("POST", "/v1/responses", create_response),
    ("GET", "/v1/responses/{response}", retrieve_response),
    ("DELETE", "/v1/responses/{response}", delete_response),
    ("GET", "/api/setup", describe_setup),
    ("GET", "/api/runs", list_runs),
    ("POST", "/api/runs", begin),
    ("GET", "/api/runs/{run}", one_run),
    ("GET", "/api/runs/{run}/events", events),
    ("POST", "/api/runs/{run}/stop", stop),
    ("POST", "/api/runs/{run}/approve", approve),
    ("POST", "/api/runs/{run}/resume", resume),
]
"""The requests that a client sends, each with its method."""


def _serve_file(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def respond(_request: Request) -> Response:
        text = (Path(__file__).with_name("page") / name).read_text(encoding="utf-8")
        if kind == "text/css":
            text = add_palette(text)
        elif kind == "text/html":
            text = make_page("hira", HEAD, text)
        headers = {"content-security-policy": POLICY, "x-content-type-options": "nosniff", "cache-control": "no-cache"}
        return Response(text, media_type=kind, headers=headers)

    return respond
