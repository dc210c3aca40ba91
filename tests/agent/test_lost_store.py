"""A store that is taken away in the middle of a run: no effect follows whose journal nobody could read."""

from __future__ import annotations

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import Settings
from handwork.llm.scripted import ScriptedModel, call
from handwork.schema import Status
from handwork.tool.function import tool
from handwork.tool.terminate import Terminate


async def test_after_the_store_was_deleted_no_effect_runs_and_the_next_session_is_kept(settings: Settings) -> None:
    effects: list[int] = []

    @tool
    def work(number: int) -> str:
        """Do the work of a number."""
        effects.append(number)
        if number == 3:
            for file in list(settings.store_path.parent.glob("store.db*")):
                file.unlink()
        return "done"

    script = [*(call("work", number=number) for number in range(1, 7)), call("terminate", status="success")]
    agent = ToolCallAgent(settings=settings, llm=ScriptedModel(script), available_tools=[work, Terminate])
    result = await agent.run("work")
    assert effects == [1, 2, 3]
    assert result.status is Status.ERROR
    assert "deleted" in str(result.error)
    again = ToolCallAgent(
        settings=settings, llm=ScriptedModel(script[:2] + script[-1:]), available_tools=[work, Terminate]
    )
    assert (await again.run("work")).status is Status.FINISHED
    assert settings.store_path.exists()
