"""The live page: plain files of this package, served as they are."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from hira.core.page_policy import add_palette

SCRIPTS = ("page.js", "server.js", "run.js", "written.js", "element.js", "source.js")
FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    **{f"/{name}": (name, "text/javascript") for name in SCRIPTS},
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


def page_routes() -> list[Route]:
    return [Route(path, _file(name, kind), methods=["GET"]) for path, (name, kind) in FILES.items()]


def _file(name: str, kind: str) -> Callable[[Request], Awaitable[Response]]:
    async def served(_request: Request) -> Response:
        text = Path(__file__).with_name(name).read_text(encoding="utf-8")
        if kind == "text/css":
            text = add_palette(text)
        headers = {"content-security-policy": POLICY, "x-content-type-options": "nosniff", "cache-control": "no-cache"}
        return Response(text, media_type=kind, headers=headers)

    return served
