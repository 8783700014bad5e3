"""Research over a database: typed answers, follow-ups, and a person who approves each change. A script plays the model.

python examples/database.py [MODEL]
"""

import asyncio
import sqlite3
import sys
from queue import Queue

from pydantic import BaseModel

from hira import Context, Hira, Refusal, ToolUse, tool
from hira.core.errors import HookError, ToolError
from hira.testing import ScriptedPolicy, calling

SCRIPT = ScriptedPolicy(
    [
        calling(
            "query", sql="SELECT customer, sum(price) FROM orders WHERE NOT paid GROUP BY customer ORDER BY 2 DESC"
        ),
        r"\boxed{The orders of Ada sum to 45.5 [s1].}",
        '{"customer": "Ada", "amount": 45.5}',
        calling("change", sql="UPDATE orders SET paid = 1 WHERE customer = 'Ada' RETURNING item"),
        r"\boxed{The lamp and the bulb of Ada are paid now [s2].}",
    ]
)
Pool = Queue[sqlite3.Connection]


class Debt(BaseModel):
    customer: str
    amount: float


def execute(pool: Pool, sql: str, *, write: bool = False) -> str:
    connection = pool.get()
    try:
        with connection:
            connection.execute(f"PRAGMA query_only = {not write}")
            return "\n".join(map(str, connection.execute(sql).fetchmany(100)))
    except sqlite3.Error as error:
        raise ToolError(str(error)) from error
    finally:
        pool.put(connection)


@tool
def query(ctx: Context[Pool], sql: str) -> str:
    """Read the table orders(customer, item, price, paid) with one SELECT."""
    return execute(ctx.deps, sql)


@tool(needs_approval=True)
def change(ctx: Context[Pool], sql: str) -> str:
    """Change the table orders(customer, item, price, paid) with one INSERT, UPDATE or DELETE, and RETURNING."""
    return execute(ctx.deps, sql, write=True)


async def confirm(call: ToolUse) -> ToolUse | Refusal:
    reply = await asyncio.to_thread(input, f"{call.arguments['sql']}\nRun it? [y/n] ")
    return call if reply == "y" else Refusal("the owner of the database said no")


pool = Pool()
for _ in range(3):
    pool.put(sqlite3.connect("file:shop?mode=memory&cache=shared", uri=True, check_same_thread=False))
with pool.queue[0] as first:
    first.execute("CREATE TABLE orders (customer, item, price, paid)")
    orders = [("Ada", "lamp", 40.0), ("Ada", "bulb", 5.5), ("Bert", "oar", 20.0)]
    first.executemany("INSERT INTO orders VALUES (?, ?, ?, 0)", orders)
model, played = (sys.argv[1], {}) if sys.argv[1:] else ("offline", {"*": SCRIPT})
with Hira(model, workflow="react", tools=[query, change], deps=pool, approve_tool=confirm, policies=played) as hira:
    chat = hira.chat()
    print(chat.ask_sync("Which customer owes most?", output_type=Debt).output)
    try:
        print(chat.ask_sync("They have paid by bank transfer. Mark their orders as paid.").text)
    except HookError:
        sys.exit("\nNothing was changed: nobody answered. Run it in a terminal.")
