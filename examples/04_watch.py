"""Watch a run: every fact of it is an event."""

import asyncio

from handwork import Manus, events


async def main() -> None:
    async for event in Manus(max_steps=5).stream("Print the numbers from 1 to 3 with Python."):
        match event:
            case events.TextDelta():
                print(event.text, end="", flush=True)
            case events.ToolCallStarted():
                print(f"\n→ {event.call.function.name} {event.call.function.arguments}")
            case events.ToolCallFinished():
                print(event.observation)
            case events.RunFinished():
                print(f"\n{event.status}: {event.output or event.error}")


asyncio.run(main())
