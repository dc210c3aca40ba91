"""Give an agent a task and print the answer. Any model: set OPENAI_API_KEY, or see `handwork model list`."""

import asyncio

from handwork import Manus


async def main() -> None:
    result = await Manus().run("What is 6 * 7?")
    print(result.raise_for_status().output)


asyncio.run(main())
