"""LangGraph's ReAct agent with one tool."""

import warnings
from contextlib import asynccontextmanager

from langchain_openai import ChatOpenAI
from langgraph.prebuilt import create_react_agent
from measure import ANSWER, QUESTION, SYSTEM, lookup

warnings.simplefilter("ignore")  # it moved to another package, which brings more with it


@asynccontextmanager
async def open_asker(base_url, _many, _option):
    model = ChatOpenAI(model="m", base_url=base_url, api_key="k", max_retries=0, timeout=300)
    agent = create_react_agent(model, [lookup], prompt=SYSTEM)
    talker = create_react_agent(model, [])
    told = {"messages": [("user", QUESTION)]}

    async def ask():
        assert (await agent.ainvoke(told))["messages"][-1].content == ANSWER

    async def stream(tell):
        async for piece, _ in talker.astream(told, stream_mode="messages"):
            tell(piece.content)

    yield ask, stream
