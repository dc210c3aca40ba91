"""The two doors to the human in a chat: questions and approvals stand above the prompt and are answered in it."""

from __future__ import annotations

from handwork.cli.calls import exactly
from handwork.cli.chat.face import Face
from handwork.cli.clean import clean_for_terminal, one_line
from handwork.cli.doors import decision_of
from handwork.schema import Approval, ApprovalRequest, Question

_CHOICES = "Run it? [y]es, [a]lways in this session, [n]o – or say why not"


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
        with self._face.screen.asking() as write:
            name = one_line(request.call.function.name, 80)
            write(f"? {name} wants to run – {clean_for_terminal(request.why)}\n", "bold magenta")
            write("".join(f"  │ {row}\n" for row in exactly(request.call).split("\n")), "")
            while True:
                decision = decision_of(await self._face.ask(_CHOICES))
                if decision is not None:
                    return decision
