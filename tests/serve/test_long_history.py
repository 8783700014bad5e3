"""A client that sends its whole conversation each time: what no longer fits is summed up once, not at every question."""

from typing import Any

from serving import post, served

from hira.runtime.settings import RoleSettings, Settings
from hira.testing import Endpoint

SHIP = "My ship is called Rosalinde. What is a ketch?"
LONG = " ".join(f"Ketch number {number} has two masts." for number in range(54))
SUMMARY = "The user's ship is called Rosalinde."


def test_the_summary_of_a_chat_client_is_made_once_and_used_again(settings: Settings) -> None:
    with Endpoint({"scripted": [f"{number}: {LONG}" for number in range(7)], "small": [SUMMARY]}) as endpoint:
        chosen = {"base_url": endpoint.base_url, "model": "scripted", "workflow": "direct", "docs": ()}
        chosen |= {"verify": "off", "roles": {"evidence": RoleSettings(model="small")}}
        messages: list[dict[str, Any]] = []
        with served(settings.model_copy(update=chosen)) as server:
            for question in (SHIP, *(f"Question {number}?" for number in range(2, 8))):
                messages.append({"role": "user", "content": question})
                body = {"model": "direct", "messages": messages}
                reply = post(f"{server.url}/v1/chat/completions", json=body).json()
                messages.append(reply["choices"][0]["message"])
        asked = [call.body for call in endpoint.calls]
    small = [body for body in asked if body["model"] == "small"]
    texts = ["\n".join(message["content"] for message in body["messages"]) for body in asked if body not in small]
    assert len(small) == 1
    assert [SUMMARY in text for text in texts] == [False] * 5 + [True] * 2
