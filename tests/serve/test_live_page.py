"""The live page in a real browser, on real runs."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from browser import Browser, missing
from serving import ASK, go, served, until

from hira.core.policy import Request
from hira.runtime.settings import Settings
from hira.testing import Endpoint, calling

pytestmark = [pytest.mark.heavy, pytest.mark.skipif(bool(missing()), reason=missing())]


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    (folder / "towers.md").write_text(
        "# Towers\n\nThe tower of Alta was built by Edda Brand. The tower of Alta is 31 metres high.\n\n"
        "Edda Brand studied in Lund. She kept bees.\n",
        encoding="utf-8",
    )
    return folder


def test_a_question_grows_into_an_answer_whose_passage_can_be_opened_and_is_found_again(
    driven: Browser, docs: Path, tmp_path: Path
) -> None:
    settings = Settings(model="offline", docs=(docs,), journal=tmp_path / "j.sqlite", workflow="hira")
    with served(settings) as server:
        go(driven, f"{server.url}/")
        driven.run(ASK, "How high is the tower of Alta?")
        until(driven, "return document.querySelectorAll('.subtask').length >= 1")
        answer = until(driven, "return document.querySelector('.answer:not([hidden])')?.textContent")
        assert "31 metres" in answer
        assert until(driven, "return document.querySelectorAll('.facts li').length") >= 1
        driven.run("document.querySelector('.cite').click()")
        assert "31 metres" in until(driven, "return document.querySelector('#source:not([hidden]) mark')?.textContent")
        driven.press("\ue00c")
        until(driven, "return document.getElementById('source').hidden")
        driven.run("location.reload()")
        assert "31 metres" in until(driven, "return document.querySelector('.answer:not([hidden])')?.textContent")
        assert driven.run("return document.querySelector('.status').textContent") == "answered"
        assert until(driven, "return document.querySelectorAll('#runs a, #past').length") >= 1
    with served(settings) as again:  # another process: the run is in the journal
        (run,) = httpx.get(f"{again.url}/api/runs").json()["runs"]
        go(driven, f"{again.url}/#/{run['id']}")
        assert "31 metres" in until(driven, "return document.querySelector('.answer:not([hidden])')?.textContent")
        assert driven.run("return document.querySelectorAll('.subtask').length") >= 1


def answer_without_marks(request: Request) -> str:
    return "\\boxed{The tower of Alta is 31 metres high. The mayor of Alta was Edda Brand.}"


def test_a_claim_that_the_answer_cites_nothing_for_has_its_verdict_missing_words_quotation_and_place(
    driven: Browser, docs: Path, tmp_path: Path
) -> None:
    with Endpoint(answer_without_marks) as endpoint:
        settings = Settings(
            model="m", base_url=endpoint.base_url, api_key="k", docs=(docs,), verify="lexical",
            journal=tmp_path / "j.sqlite",
        )  # fmt: skip
        with served(settings) as server:
            body = {"question": "How high is the tower of Alta?", "workflow": "rag"}
            run = httpx.post(f"{server.url}/api/runs", json=body).json()["id"]
            go(driven, f"{server.url}/#/{run}")
            shown = until(driven, "return document.querySelector('.claims[open]')?.textContent")
            assert shown.startswith("2 claims: 1 supported, 1 unsupported")
            assert "“The tower of Alta is 31 metres high.” 1 · Towers" in shown
            assert "the quotation does not say: mayor" in shown
            assert "cites no source for this claim" in shown
            assert "(unsupported; the quotation does not say: mayor)" in driven.run(
                "return document.querySelector('.answer').textContent"
            )
            driven.run("document.querySelector('.claims .where').click()")
            until(driven, "return document.querySelector('#source:not([hidden]) mark')?.textContent")
            driven.press("\ue00c")
            driven.size(360, 740)
            assert driven.run("return document.documentElement.scrollWidth") <= 360
            driven.size(1280, 900)


def test_the_page_names_model_and_documents_then_how_a_role_is_getting_on_then_takes_a_follow_up_question(
    driven: Browser, docs: Path, tmp_path: Path
) -> None:
    asked: list[str] = []

    def answer(request: Request) -> str:
        asked.append(request.messages[-1].text)
        return "\\boxed{The tower of Alta is 31 metres high. [s1]}"

    with Endpoint(answer, delay=2.0) as endpoint:
        settings = Settings(
            model="small-1",
            base_url=endpoint.base_url,
            api_key="k",
            docs=(docs,),
            verify="off",
            journal=tmp_path / "j.sqlite",
            workflow="hira",
        )
        with served(settings) as server:
            go(driven, f"{server.url}/")
            shown = until(driven, "return document.querySelector('.setup')?.textContent")
            assert shown == f"small-1 · reads {docs.name}"
            body = {"question": "How high is the tower of Alta?", "workflow": "rag"}
            run = httpx.post(f"{server.url}/api/runs", json=body).json()["id"]
            go(driven, f"{server.url}/#/{run}")
            until(
                driven,
                "return document.querySelector('.pace')?.textContent.match(/ s · reads about [0-9.]+K? tokens$/)",
            )
            until(
                driven,
                "return !document.querySelector('.follow')?.hidden && document.querySelector('.answer:not([hidden])')",
            )
            ask = "const [form] = document.getElementsByClassName('follow'); form.firstElementChild.value = arguments[0]; form.requestSubmit()"
            driven.run(ask, "Who built it?")
            link = until(driven, "return document.querySelector('.follows:not([hidden]) a')?.hash")
            assert link == f"#/{run}"
            until(driven, "return document.querySelector('.answer:not([hidden])')?.textContent")
            assert driven.run("return document.querySelector('h1').textContent") == "Who built it?"
    assert "How high is the tower of Alta?" in asked[-1]


def scripted(request: Request) -> Any:
    """A planner that hands out a subtask, and answers once it has to."""
    return "\\boxed{nothing yet}" if request.choose == "none" else calling("subtask", task="Find the tower's height.")


def slow_but_for_the_planner(request: Request) -> float:
    return 0.0 if "subtask" in str(request.tools) else 20.0


def test_subtasks_are_seen_before_the_answer_and_stop_answers_now(driven: Browser, docs: Path, tmp_path: Path) -> None:
    with Endpoint(scripted, delay=slow_but_for_the_planner) as endpoint:
        settings = Settings(
            model="m", base_url=endpoint.base_url, api_key="k", docs=(docs,), journal=tmp_path / "j.sqlite",
            workflow="hira",
        )  # fmt: skip
        with served(settings) as server:
            go(driven, f"{server.url}/")
            driven.run(ASK, "How high is the tower of Alta?")
            until(driven, "return document.querySelector('.subtask.busy')?.textContent")
            assert driven.run("return document.querySelector('.answer').hidden")
            driven.run("document.querySelector('.stop').click()")
            until(driven, "return document.querySelector('.answer:not([hidden])')?.textContent")
            state = driven.run("return document.querySelector('.status').textContent")
            assert state in ("interrupted", "partial", "insufficient evidence")


def test_the_page_asks_for_the_key_where_one_is_needed(driven: Browser, docs: Path) -> None:
    keys: Any = {"ada": {"key": "key-of-ada-1"}}
    with served(Settings(model="offline", docs=(docs,), keys=keys, workflow="hira")) as server:
        go(driven, f"{server.url}/")
        until(driven, "return document.getElementById('key').open")
        use = "document.getElementById('secret').value = arguments[0]; document.querySelector('#key button').click()"
        driven.run(use, "key-of-eve-1")
        assert until(driven, "return !document.getElementById('wrong').hidden && document.getElementById('key').open")
        driven.press("\ue00c")
        assert "needs a key" in until(driven, "return document.getElementById('trouble').textContent")
        driven.run("location.reload()")
        until(driven, "return document.getElementById('key').open")
        driven.run(use, "key-of-ada-1")
        until(driven, "return document.querySelectorAll('#workflows input').length > 10")


HOSTILE = '<img src=x onerror="window.hit=1"><script>window.hit=1</script> [x](javascript:alert(1))'


def test_markup_in_questions_names_and_documents_stays_text(driven: Browser, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    text = f"# {HOSTILE}\n\nThe tower of Alta is 31 metres high. {HOSTILE}\n"
    (docs / "<img src=x onerror=window.hit=1>.md").write_text(text, encoding="utf-8")
    with served(Settings(model="offline", docs=(docs,), journal=tmp_path / "j.sqlite", workflow="hira")) as server:
        go(driven, f"{server.url}/")
        driven.run(ASK, f"How high is the tower of Alta? {HOSTILE}")
        until(driven, "return document.querySelector('.answer:not([hidden])')?.textContent")
        assert HOSTILE in driven.run("return document.querySelector('h1').textContent")
        driven.run("document.getElementById('past').click()")
        until(driven, "return document.querySelectorAll('#runs a').length")
        driven.run("document.querySelector('.sources button').click()")
        assert "onerror" in until(driven, "return document.querySelector('#source:not([hidden])')?.textContent")
        found = "return document.querySelectorAll('body img, body script, body a[href^=javascript]').length"
        assert driven.run(found) == 0
        assert driven.run("return window.hit ?? 0") == 0
        go(driven, f"{server.url}/#/<img src=x onerror=window.hit=1>")
        assert "cannot be shown" in until(driven, "return document.querySelector('h1')?.textContent")
        assert driven.run(found) + (driven.run("return window.hit") or 0) == 0


def test_nothing_is_loaded_from_elsewhere(docs: Path) -> None:
    with served(Settings(model="offline", docs=(docs,), workflow="hira")) as server:
        reply = httpx.get(f"{server.url}/")
        assert "default-src 'none'" in reply.headers["content-security-policy"]
        assert "http://" not in reply.text
        assert "https://" not in reply.text
