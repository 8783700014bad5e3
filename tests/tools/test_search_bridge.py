"""The bridges to litellm and ddgs, with the real libraries where they are installed."""

import importlib.util

import pytest

from hira.core.errors import ToolError, UsageError
from hira.testing.web import FakeWeb
from hira.tools.search import open_backend, open_client

INSTALLED = importlib.util.find_spec("litellm") is not None
PAGES = {"/kama": "<title>The Kama</title><p>The Kama is a long river.</p>"}


@pytest.mark.skipif(INSTALLED, reason="litellm is installed")
async def test_without_litellm_it_says_what_to_install():
    async with open_client({}) as client:
        with pytest.raises(UsageError) as raised:
            open_backend("litellm:tavily", client, key="k")
    assert "pip install" in raised.value.fix


@pytest.mark.heavy
@pytest.mark.skipif(not INSTALLED, reason="litellm is an extra")
@pytest.mark.filterwarnings("ignore")
async def test_a_provider_of_litellm_answers_like_any_other_service():
    with FakeWeb(PAGES) as web:
        async with open_client({}) as client:
            (hit,) = await open_backend("litellm:searxng", client, base_url=web.url).search("Kama", 5)
    assert (hit.title, hit.url, hit.backend) == ("The Kama", f"{web.url}/kama", "litellm:searxng")


@pytest.mark.heavy
@pytest.mark.skipif(not INSTALLED, reason="litellm is an extra")
@pytest.mark.filterwarnings("ignore")
async def test_a_failure_of_litellm_is_told_without_the_key():
    with FakeWeb(PAGES, failures=[500] * 9) as web:
        async with open_client({}) as client:
            with pytest.raises(ToolError, match="litellm:searxng failed") as raised:
                await open_backend("litellm:searxng", client, base_url=web.url, key="SECRET").search("Kama", 5)
    assert "SECRET" not in str(raised.value)


@pytest.mark.skipif(importlib.util.find_spec("ddgs") is not None, reason="ddgs is installed")
async def test_without_ddgs_it_says_what_to_install():
    async with open_client({}) as client:
        with pytest.raises(UsageError) as raised:
            open_backend("ddgs", client)
    assert raised.value.fix == "pip install 'hira[ddgs]'"
