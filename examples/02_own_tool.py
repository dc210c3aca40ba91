"""A plain function is a tool: its docstring is the description, its signature the schema."""

import asyncio

from handwork import Action, Manus, Terminate, tool


@tool(actions=[Action(kind="read", resource="stock", repeatable=True)])
def stock(item: str) -> int:
    """How many pieces of an item are in stock."""
    return {"bolt": 120, "nut": 80}.get(item, 0)


async def main() -> None:
    result = await Manus(available_tools=[stock, Terminate]).run("How many bolts and nuts are there together?")
    print(result.raise_for_status().output)


asyncio.run(main())
