"""The two doors to the human in a chat: questions and approvals stand above the prompt and are answered in it."""

from __future__ import annotations

from handwork.cli.approval import decide
from handwork.cli.chat.face import Face
from handwork.cli.clean import clean_for_terminal
from handwork.schema import Approval, ApprovalRequest, Question

_PROMPT = 2
"""Rows that the answer's line and the line of facts take."""


class ChatDoors:
    """Shows what is asked above the prompt, whole, and takes one answer at a time."""

    def __init__(self, face: Face) -> None:
        self._face = face

    async def ask(self, question: Question) -> str:
        """The human's answer."""
        with self._face.screen.asking() as write:
            write(f"? {clean_for_terminal(question.text)}\n", "bold magenta")
            answer = await self._face.ask("Your answer:")
            write("".join(f"  > {row}\n" for row in clean_for_terminal(answer).split("\n")), "bold")
            return answer

    async def approve(self, request: ApprovalRequest) -> Approval:
        """The human's decision about exactly what is shown."""
        size = self._face.output.get_size()
        with self._face.screen.asking() as write:
            return await decide(request, write, self._face.ask, columns=size.columns, rows=size.rows - _PROMPT)
