"""A role of your own: tools and two prompts."""

import asyncio

from handwork import SWEAgent


class Reviewer(SWEAgent):
    name = "reviewer"
    system_prompt = "You review the code in {directory}. Read it with your tools and never change a file."
    next_step_prompt = "Look at one more place, or terminate with your findings beside the call."
    max_steps = 12


async def main() -> None:
    result = await Reviewer().run("Review the newest file here.")
    print(result.status, result.output)


asyncio.run(main())
