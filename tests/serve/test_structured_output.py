"""`response_format` of the chat API: the answer as JSON that fits a schema."""

from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from serving import post, served

from hira.runtime.settings import Settings
from hira.testing import ScriptedPolicy

ANSWER = r"\boxed{The tower of Alta is 31 metres high [s1].}"


class Tower(BaseModel):
    height: int


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "alta.txt").write_text("The tower of Alta is 31 metres high.\n", encoding="utf-8")
    return Settings(docs=(tmp_path / "alta.txt",), verify="lexical", journal=None)


def test_the_official_client_parses_a_model_whole_and_streamed(settings: Settings) -> None:
    speaks = ScriptedPolicy([ANSWER, '{"height": 31}'] * 2)
    asked: list[Any] = [{"role": "user", "content": "How high is the tower of Alta?"}]
    with (
        served(settings, {"*": speaks}) as server,
        openai.OpenAI(api_key="none", base_url=f"{server.url}/v1") as client,
    ):
        whole = client.chat.completions.parse(model="rag", messages=asked, response_format=Tower)
        with client.chat.completions.stream(model="rag", messages=asked, response_format=Tower) as stream:
            streamed = stream.get_final_completion()
    assert [one.choices[0].message.parsed for one in (whole, streamed)] == [Tower(height=31)] * 2
    assert whole.model_extra
    assert whole.model_extra["hira"]["output_sources"] == {"height": ["s1"]}


def test_without_a_value_the_text_is_a_refusal(settings: Settings) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "tower", "schema": Tower.model_json_schema()}}
    asked = {"model": "rag", "messages": [{"role": "user", "content": "How high?"}], "response_format": form}
    with served(settings, {"*": ScriptedPolicy([ANSWER, "tall", "very tall"])}) as server:
        message = post(f"{server.url}/v1/chat/completions", json=asked).json()["choices"][0]["message"]
    assert message["content"] is None
    assert "31 metres" in message["refusal"]
