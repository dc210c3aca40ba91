"""`mcp serve`: the options of our own server."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from handwork.cli.commands.parameters import AllowNet, Config, Net, SandboxName, WorkHere


def serve(
    transport: Annotated[
        Literal["stdio", "http"],
        typer.Option("--transport", help="How clients speak with it: the one that starts it, or any with the token."),
    ] = "stdio",
    tools: Annotated[
        str | None, typer.Option("--tools", metavar="A,B", help="Serve these tools only (default: all).")
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="H", help="With http: where to listen (default: 127.0.0.1).")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=0, max=65535, help="With http: the port (default: a free one)."),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option("--token-file", metavar="F", help="With http: holds the bearer token; made if it is not there."),
    ] = None,
    workspace: WorkHere = None,
    sandbox: SandboxName = None,
    net: Net = False,
    allow_net: AllowNet = None,
    approve: Annotated[
        Literal["ask", "auto", "read-only"] | None,
        typer.Option("--approve", help="Who approves calls: ask asks through the client, if that can ask."),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", metavar="P:M", help="For run_task: provider:model, such as openai:gpt-5.")
    ] = None,
    base_url: Annotated[
        str | None, typer.Option("--base-url", metavar="URL", help="For run_task: any OpenAI-compatible server.")
    ] = None,
    max_steps: Annotated[int | None, typer.Option("--max-steps", min=1, help="For run_task: at most so many.")] = None,
    budget: Annotated[
        float | None,
        typer.Option("--budget", metavar="USD", min=0, help="For run_task: what all tasks together may cost."),
    ] = None,
    max_total_tokens: Annotated[
        int | None, typer.Option("--max-total-tokens", min=1, help="For run_task: tokens of all tasks together.")
    ] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="S", min=0.001, help="For run_task: seconds at most.")
    ] = None,
    config: Config = None,
) -> None:
    """Serve our tools, and an agent as run_task, to another program (an MCP client)."""
    from handwork.cli.mcp.serve import serve as run_server
    from handwork.cli.options import RunOptions
    from handwork.schema import Mode

    options = RunOptions(
        workspace=workspace,
        sandbox=sandbox,
        net=net,
        allow_net=tuple(allow_net or ()),
        approve=Mode(approve) if approve else None,
        model=model,
        base_url=base_url,
        max_steps=max_steps,
        budget=budget,
        max_total_tokens=max_total_tokens,
        timeout=timeout,
        config=config,
    )
    raise typer.Exit(run_server(options, transport=transport, tools=tools, host=host, port=port, token_file=token_file))
