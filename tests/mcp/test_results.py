"""Answers of servers as results: texts as they were, every picture, other data as files, and no doubt about failures."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from handwork.errors import MCPLoginNeeded, MCPLost, MCPRefused, MCPServerError, MCPUnavailable
from handwork.mcp.content import Answer, Embedded, Link, Media, Part, Text, Unknown
from handwork.mcp.results import LARGEST, MOST_FILES, MOST_PARTS, MOST_PICTURES, failure, result_of, text_of_resource
from handwork.schema import Artifact, ToolResult

DATA = base64.b64encode(b"some bytes").decode()


class Files:
    """Keeps what it is given."""

    def __init__(self, problem: OSError | None = None) -> None:
        self.kept: list[tuple[str, bytes, str]] = []
        self._problem = problem

    async def __call__(self, name: str, data: bytes, media_type: str) -> tuple[str, Artifact]:
        if self._problem:
            raise self._problem
        self.kept.append((name, data, media_type))
        return f"/artifacts/{name}", Artifact(path=f"/host/{name}", media_type=media_type)


async def of(*parts: Part, files: Files | None = None, **fields: Any) -> ToolResult:
    return await result_of(Answer(parts, **fields), "mcp_s_t", files)


async def test_text_parts_are_joined_by_commas() -> None:
    assert await of(Text("a"), Text("b")) == ToolResult(output="a, b")


async def test_an_answer_without_anything_says_so() -> None:
    assert await of() == ToolResult(output="No output returned.")
    assert (await of(Text(""))).output == "No output returned."


async def test_a_failed_call_is_an_error() -> None:
    result = await of(Text("no such file"), failed=True)
    assert result == ToolResult(error="Error executing tool: no such file")
    assert str(result) == "Error: Error executing tool: no such file"
    assert (await of(failed=True)).error == "Error executing tool: the server does not say why"


def test_a_server_that_is_not_there_is_an_error_and_says_why_beside_it() -> None:
    result = failure(MCPUnavailable("The MCP server s cannot be started", hint="install it"))
    assert result.error == "Not connected to MCP server"
    assert result.system == "The MCP server s cannot be started. install it"


def test_a_login_that_is_needed_names_the_command() -> None:
    result = failure(MCPLoginNeeded("s wants a login", hint="handwork mcp login s"))
    assert "handwork mcp login s" in (result.system or "")


@pytest.mark.parametrize("error", [MCPRefused("no such tool", code=-32602), MCPLost("The MCP server s died")])
def test_a_call_that_a_server_had_is_not_told_to_have_never_reached_it(error: MCPServerError) -> None:
    assert failure(error) == ToolResult(error=f"Error executing tool: {error.what}")


async def test_every_picture_is_kept() -> None:
    result = await of(Media("image", "b25l", "image/png"), Text("two"), Media("image", "dHdv", "image/jpeg"))
    assert result.images == ("b25l", "dHdv")
    assert result.output == "two"


async def test_an_answer_without_text_is_no_output_also_with_pictures_or_files_which_are_told_behind() -> None:
    alone = await of(Media("image", "b25l", "image/png"))
    assert (alone.output, alone.images, alone.system) == ("No output returned.", ("b25l",), "1 picture")
    sound = await of(Media("audio", DATA, "audio/wav"), files=Files())
    assert (sound.output or "").splitlines() == [
        "No output returned.",
        "Sound: audio/wav, 10 bytes, kept in /artifacts/mcp_s_t.wav",
    ]
    refused = await of(Media("image", "b25l", "image/png"), failed=True)
    assert refused.error == "Error executing tool: the server does not say why"


async def test_a_hundred_pictures_are_kept_and_more_are_told() -> None:
    result = await of(*[Media("image", "b25l", "image/png")] * (MOST_PICTURES + 5))
    assert len(result.images) == MOST_PICTURES
    assert result.system == "Only the first 100 pictures are kept"


async def test_a_hundred_files_are_kept_and_of_more_it_is_said_that_they_are_left_out() -> None:
    files = Files()
    result = await of(*[Embedded("x://y", blob=DATA)] * (MOST_FILES + 5), files=files)
    assert (len(files.kept), len(result.artifacts)) == (MOST_FILES, MOST_FILES)
    assert str(result).count(", left out") == 5


async def test_sounds_and_other_data_become_files_that_the_text_names() -> None:
    files = Files()
    result = await of(
        Text("done"),
        Media("audio", DATA, "audio/wav"),
        Embedded("x://report", blob=DATA, media_type="application/pdf"),
        files=files,
    )
    assert files.kept == [
        ("mcp_s_t.wav", b"some bytes", "audio/wav"),
        ("mcp_s_t.pdf", b"some bytes", "application/pdf"),
    ]
    assert result.output == (
        "done\nSound: audio/wav, 10 bytes, kept in /artifacts/mcp_s_t.wav\n"
        "Resource x://report: application/pdf, 10 bytes, kept in /artifacts/mcp_s_t.pdf"
    )
    assert [artifact.path for artifact in result.artifacts] == ["/host/mcp_s_t.wav", "/host/mcp_s_t.pdf"]


async def test_data_that_cannot_be_kept_is_told() -> None:
    audio = Media("audio", DATA, "audio/wav")
    assert "audio/wav, 10 bytes, left out" in (await of(audio)).output
    full = Files(OSError(28, "No space left on device"))
    assert "could not be kept: No space left on device" in (await of(audio, files=full)).output
    broken = Media("audio", "%%%", "audio/wav")
    assert "is no base64 and is left out" in (await of(broken, files=Files())).output


async def test_a_media_type_decides_over_no_path() -> None:
    files = Files()
    await of(Media("audio", DATA, "../../etc/passwd\x1b[2J"), files=files)
    assert files.kept[0][0] == "mcp_s_t.bin"


async def test_resources_are_lines_with_their_addresses() -> None:
    result = await of(
        Embedded("x://a", text="its text"),
        Link("x://b", "B", "a thing", "text/plain"),
        Link("x://c"),
        Embedded("x://d", blob="b25l", media_type="image/png"),
        Unknown("hologram"),
    )
    assert result.output == (
        "No output returned.\nResource x://a:\nits text\nLink to the resource x://b (B, text/plain, a thing)\n"
        "Link to the resource x://c\nResource x://d: a picture\n[a part of an unknown kind (hologram) is left out]"
    )
    assert result.images == ("b25l",)


@pytest.mark.parametrize(
    ("texts", "structured"),
    [
        (["3"], {"result": 3}),
        (["three"], {"result": "three"}),
        (["a\nlong\nfile"], {"content": "a\nlong\nfile"}),
        (['{"a": 1, "b": [2]}'], {"b": [2], "a": 1}),
        (["so be it", '{"a": 1}'], {"a": 1}),
        (["a", "b"], {"result": ["a", "b"]}),
        (["[1, 2]"], {"result": [1, 2]}),
        (['"x"', "x"], "x"),
        (["null"], {"result": None}),
    ],
)
async def test_structured_content_that_the_text_says_is_not_said_twice(texts: list[str], structured: Any) -> None:
    result = await of(*map(Text, texts), structured=structured)
    assert result.output == ", ".join(texts)
    assert result.details == {"structured": structured}


@pytest.mark.parametrize(
    "structured", [{"a": 1}, {"result": ["a", "c"]}, [], 0, False, {"é": "ö"}, {"x": "a", "y": "b"}]
)
async def test_other_structured_content_stands_in_the_text_as_json(structured: Any) -> None:
    result = await of(Text("a"), Text("b"), structured=structured)
    assert result.output == f"a, b\n{json.dumps(structured, ensure_ascii=False)}"
    assert result.details == {"structured": structured}
    assert (await of(structured={"a": 1})).output == '{"a": 1}'


async def test_structured_content_that_is_too_deep_or_too_large_does_no_harm() -> None:
    deep: Any = 1
    for _ in range(5000):
        deep = [deep]
    assert await of(Text("a"), structured=deep) == ToolResult(output="a")
    large = await of(Text("a"), structured={"x": "y" * 2_000_000})
    assert large.details is None


async def test_an_answer_is_bounded_in_parts_and_in_size() -> None:
    many = await of(*[Text("a")] * (MOST_PARTS + 7))
    assert many.output.count("a") == MOST_PARTS
    assert many.system == "7 parts of the answer left out: it is too large"
    half = "x" * (LARGEST // 2)
    large = await of(Text(half), Text(half), Text("more"), Media("image", "b25l", "image/png"))
    assert len(large.output) == LARGEST + 2
    assert large.system == "2 parts of the answer left out: it is too large"


async def test_the_content_of_a_resource_is_told_like_a_result() -> None:
    assert (await text_of_resource([Embedded("x://a", text="t")], "n")).output == "Resource x://a:\nt"
    assert (await text_of_resource([], "n")).output == "No output returned."
