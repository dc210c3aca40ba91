"""Requests with pictures: to a model that sees, to one that does not, and to a provider that refuses them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from handwork.agent.toolcall import ToolCallAgent
from handwork.config import LLMSettings, Settings
from handwork.errors import (
    AuthenticationError,
    BadRequestError,
    ImageRefusedError,
    NoVisionError,
    RateLimitError,
    ServerError,
    TokenLimitExceeded,
)
from handwork.llm.failures import Source, error_of
from handwork.llm.llm import LLM
from handwork.llm.scripted import ScriptedModel
from handwork.llm.sight import Sight
from handwork.schema import (
    Image,
    Message,
    ModelNotice,
    Reply,
    Request,
    Rerouted,
    Role,
    Status,
    StreamItem,
    Tail,
    TextDelta,
)
from tests.agent.conftest import Seen
from tests.support.fault_server import Answer, error_answer
from tests.support.pictures import png, png_base64
from tests.support.strict_server import StrictServer

ONE, TWO = (Image.from_base64(png_base64(number)) for number in (1, 2))


def shows(*images: Image, text: str = "look") -> Message:
    return Message(role=Role.USER, content=text, images=images)


def said(text: str = "seen") -> Message:
    return Message.assistant_message(text)


async def items_of(model: Any, *messages: Message, tail: Tail | None = None) -> list[StreamItem]:
    return [item async for item in model.stream(Request(messages=messages, tail=tail))]


def notices(items: list[StreamItem]) -> list[str]:
    return [item.text for item in items if isinstance(item, ModelNotice)]


def hashes(request: Request) -> list[str]:
    return [image.hash for message in request.messages for image in message.images]


# ---- a model that is known to see, or not to


async def test_a_request_without_images_is_passed_on_as_it_is() -> None:
    model = ScriptedModel(["ok"])
    items = await items_of(Sight(model, sees=False), Message.user_message("hi"))
    assert not notices(items)
    assert isinstance(items[-1], Reply)


async def test_a_model_that_sees_gets_the_images() -> None:
    model = ScriptedModel(["ok"])
    assert not notices(await items_of(Sight(model), shows(ONE)))
    assert hashes(model.requests[0]) == [ONE.hash]


async def test_a_blind_model_gets_a_note_for_each_image_and_a_person_is_told_once() -> None:
    model = ScriptedModel(["a", "b"])
    sight = Sight(model, sees=False)
    history = [shows(ONE, TWO)]
    [told] = notices(await items_of(sight, *history, tail=Tail("next", (ONE,))))
    assert "takes no images" in told
    assert "[llm.vision]" in told
    assert not notices(await items_of(sight, *history, said()))
    assert [hashes(request) for request in model.requests] == [[], []]
    assert (model.requests[0].messages[0].content or "").count("left out") == 2
    tail = model.requests[0].tail
    assert tail is not None
    assert (tail.text.count("left out"), tail.images) == (1, ())
    assert model.requests[0].messages[0] is model.requests[1].messages[0]  # encoded once


# ---- the model of [llm.vision]


async def test_requests_with_new_images_go_to_the_vision_model_and_the_rest_to_the_blind_one() -> None:
    main, eyes = ScriptedModel(["main"] * 3, name="p:main"), ScriptedModel(["eyes"] * 3, name="p:eyes")
    sight = Sight(main, sees=False, eyes=eyes)
    for messages, tail, expected in (
        ([shows(ONE)], None, "p:eyes"),
        ([shows(ONE), said(), Message.user_message("and?")], None, "p:main"),
        ([shows(ONE), said(), shows(TWO), Message.user_message("and?")], None, "p:eyes"),
        ([Message.user_message("x")], Tail("page", (ONE,)), "p:eyes"),
        ([Message.user_message("x")], None, "p:main"),
    ):
        assert sight.goes_to(Request(messages=messages, tail=tail)) == expected
        items = await items_of(sight, *messages, tail=tail)
        assert isinstance(items[-1], Reply)
        assert items[-1].content == expected.partition(":")[2]
    assert hashes(main.requests[0]) == []
    assert hashes(eyes.requests[1]) == [ONE.hash, TWO.hash]


# ---- refusals


async def test_a_provider_that_says_its_model_is_blind_is_believed_and_the_request_goes_on_without_images() -> None:
    model = ScriptedModel([NoVisionError("no images here"), "ok", "again"])
    sight = Sight(model)
    items = await items_of(sight, shows(ONE))
    assert isinstance(items[-1], Reply)
    assert len(notices(items)) == 1
    assert not notices(await items_of(sight, shows(ONE), said(), shows(TWO)))
    assert [hashes(request) for request in model.requests] == [[ONE.hash], [], []]


async def test_a_model_that_turns_out_blind_hands_over_to_the_vision_model() -> None:
    main, eyes = ScriptedModel([NoVisionError("no")], name="p:main"), ScriptedModel(["eyes"], name="p:eyes")
    items = await items_of(Sight(main, eyes=eyes), shows(ONE))
    assert [item.model for item in items if isinstance(item, Rerouted)] == ["p:eyes"]
    assert items.index(Rerouted("p:eyes")) < len(items) - 2
    assert hashes(eyes.requests[0]) == [ONE.hash]


async def test_one_bad_image_is_left_out_for_good_and_others_are_still_sent() -> None:
    model = ScriptedModel(["ok", ImageRefusedError("could not process image"), "fine", "more"])
    sight = Sight(model)
    await items_of(sight, shows(ONE))
    [told] = notices(await items_of(sight, shows(ONE), said(), shows(TWO)))
    assert "could not process image" in told
    three = Image.from_base64(png_base64(3))
    await items_of(sight, shows(ONE), said(), shows(TWO), said(), shows(three))
    assert [hashes(request) for request in model.requests] == [
        [ONE.hash],
        [ONE.hash, TWO.hash],
        [ONE.hash],
        [ONE.hash, three.hash],
    ]
    assert "refused" in (model.requests[3].messages[2].content or "")


async def test_if_only_images_that_were_taken_before_are_there_all_of_them_go() -> None:
    model = ScriptedModel(["ok", ImageRefusedError("too many images"), "fine"])
    sight = Sight(model)
    await items_of(sight, shows(ONE))
    await items_of(sight, shows(ONE), said(), Message.user_message("and?"))
    assert hashes(model.requests[2]) == []


async def test_an_unexplained_refusal_is_tried_without_the_new_images_once() -> None:
    model = ScriptedModel([BadRequestError("HTTP 400: bad parameter"), "ok", "again"])
    sight = Sight(model)
    assert isinstance((await items_of(sight, shows(ONE)))[-1], Reply)
    await items_of(sight, shows(ONE), said(), shows(TWO))
    assert [hashes(request) for request in model.requests] == [[ONE.hash], [], [TWO.hash]]


async def test_if_that_does_not_help_the_first_error_stands_and_nothing_was_learned() -> None:
    model = ScriptedModel([BadRequestError("first"), BadRequestError("second"), "ok"])
    sight = Sight(model)
    with pytest.raises(BadRequestError, match="first"):
        await items_of(sight, shows(ONE))
    await items_of(sight, shows(ONE))
    assert hashes(model.requests[2]) == [ONE.hash]


async def test_pictures_are_blamed_only_once_an_answer_came_without_them() -> None:
    model = ScriptedModel([BadRequestError("first"), ServerError("down"), "ok"])
    sight = Sight(model)
    with pytest.raises(ServerError):
        await items_of(sight, shows(ONE))
    await items_of(sight, shows(ONE))
    assert hashes(model.requests[2]) == [ONE.hash]


async def test_a_refusal_behind_the_first_words_is_not_about_pictures() -> None:
    class Halfway:
        name, asked = "p:m", 0

        async def stream(self, request: Request) -> AsyncIterator[StreamItem]:
            self.asked += 1
            yield TextDelta("I see")
            raise BadRequestError("bad block")

    model = Halfway()
    with pytest.raises(BadRequestError, match="bad block"):
        await items_of(Sight(model), shows(ONE))
    assert model.asked == 1


@pytest.mark.parametrize(
    "error", [TokenLimitExceeded("full"), AuthenticationError("no"), RateLimitError("slow"), ServerError("oops")]
)
async def test_other_errors_are_not_blamed_on_images(error: Exception) -> None:
    model = ScriptedModel([error])
    with pytest.raises(type(error)):
        await items_of(Sight(model), shows(ONE))


async def test_a_refusal_of_images_that_were_all_taken_before_is_what_it_says() -> None:
    model = ScriptedModel(["ok", BadRequestError("bad tool")])
    sight = Sight(model)
    await items_of(sight, shows(ONE))
    with pytest.raises(BadRequestError, match="bad tool"):
        await items_of(sight, shows(ONE), said(), Message.user_message("x"))


NO_VISION = [
    (400, "Failed to deserialize the JSON body: messages[1]: unknown variant `image_url`, expected `text` at line 1"),
    (400, "this model does not support image input (ref: b8bd)"),
    (400, "Model do not support image input. Request id: 02"),
    (404, "No endpoints found that support image input"),
    (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
    (500, "this model is missing data required for image input"),
    (400, "Model does not support images. Please use a model that does."),
    (400, "Invalid content type. image_url is only supported by certain models."),
    (400, "At most 0 image(s) may be provided in one prompt."),
    (400, "llama-3 is not a multimodal model"),
    (400, "Vision is not supported by this model"),
    (422, "This model only supports text"),
]
BAD_IMAGE = [
    (
        400,
        "messages.2.content.1.image.source.base64.data: At least one of the image dimensions exceed max allowed size",
    ),
    (400, "Could not process image"),
    (400, "Unable to process input image. Please retry or report"),
    (400, "Invalid image data"),
    (400, "You uploaded an unsupported image. Please make sure your image is valid."),
    (400, "The image was specified using the image/png media type, but the image appears to be corrupt"),
    (400, "Too many images in request"),
    (400, "image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes"),
]
OTHERS = [
    (400, "Invalid value for temperature", BadRequestError),
    (400, "This model does not support tools", BadRequestError),
    (404, "The model image-gen does not exist", None),
    (401, "image input is not supported", AuthenticationError),
    (400, "prompt is too long: 210000 tokens > 200000 maximum, with 3 images", TokenLimitExceeded),
]


@pytest.mark.parametrize(("status", "text"), NO_VISION)
def test_a_provider_says_in_its_own_words_that_a_model_takes_no_images(status: int, text: str) -> None:
    assert type(error_of(Source(), status, {"error": {"message": text}})) is NoVisionError


@pytest.mark.parametrize(("status", "text"), BAD_IMAGE)
def test_a_provider_says_in_its_own_words_that_an_image_is_not_taken(status: int, text: str) -> None:
    assert type(error_of(Source(), status, {"error": {"message": text}})) is ImageRefusedError


@pytest.mark.parametrize(("status", "text", "kind"), OTHERS)
def test_other_refusals_keep_their_type(status: int, text: str, kind: type | None) -> None:
    error = error_of(Source(), status, {"error": {"message": text}})
    assert not isinstance(error, ImageRefusedError)
    assert kind is None or type(error) is kind


# ---- over the wire, with an agent


def pictures_in(request: dict[str, Any]) -> int:
    contents = [message["content"] for message in request["messages"] if isinstance(message["content"], list)]
    return sum(part["type"] == "image_url" for content in contents for part in content)


def blind_server(reply: str = "ok") -> Callable[[dict[str, Any]], str | Answer]:
    def answer(request: dict[str, Any]) -> str | Answer:
        if pictures_in(request):
            return error_answer(500, "image input is not supported - hint: you may need to provide the mmproj")
        return reply

    return answer


def wired(settings: Settings, server: StrictServer, **tables: LLMSettings) -> Settings:
    default = LLMSettings(model="unheard-of", base_url=server.url)
    return settings.model_copy(update={"llm": {"default": default, **tables}})


async def test_a_server_that_refuses_images_costs_one_request_and_the_history_lives(home: Path, tmp_path: Path) -> None:
    seen = Seen()
    async with StrictServer(blind_server()) as server:
        agent = ToolCallAgent(settings=wired(Settings(), server), workspace=tmp_path)
        for request in ("look", "and?"):
            result = await agent.run(request, images=[png(1)] if request == "look" else (), listener=seen)
            assert result.status is Status.FINISHED
        assert [pictures_in(request) for request in server.requests] == [1, 0, 0]
        assert "left out" in str(server.requests[2]["messages"])
    [told] = [event.text for event in seen.of("notice") if "images" in event.text]
    assert "takes no images (so its provider says)" in told
    assert not seen.of("retry_scheduled")


@pytest.mark.parametrize("known", [True, False])
async def test_the_vision_model_is_asked_and_events_name_the_model_that_was(
    known: bool, home: Path, tmp_path: Path
) -> None:
    seen = Seen()
    async with StrictServer(blind_server("main")) as server, StrictServer(lambda request: "eyes") as eyes:
        main = LLMSettings(model="main", base_url=server.url, sees_images=False if known else None)
        tables = {"default": main, "vision": LLMSettings(model="eyes", base_url=eyes.url)}
        agent = ToolCallAgent(settings=Settings(llm=tables), workspace=tmp_path)
        first = await agent.run("look", images=[png(1)], listener=seen)
        second = await agent.run("and?", listener=seen)
        assert (first.output, second.output) == ("eyes", "main")
        assert pictures_in(eyes.requests[0]) == 1
        assert "left out" in str(server.requests[-1]["messages"])
        assert eyes.refused == server.refused == []
    asked = [event.model for event in seen.of("request_sent")]
    assert asked == [*([] if known else ["custom:main"]), "custom:eyes", "custom:main"]
    assert [event.model for event in seen.of("run_started")] == ["custom:main", "custom:main"]


async def test_the_configuration_says_who_sees(home: Path) -> None:
    async with StrictServer(lambda request: "ok") as server:

        async def images_sent(name: str, **tables: LLMSettings) -> int:
            llm = LLM(name, Settings(llm={"default": LLMSettings(model="llama3", base_url=server.url), **tables}))
            await llm.ask([Message.user_message("look", png_base64())])
            await llm.aclose()
            return pictures_in(server.requests[-1])

        def table(**fields: Any) -> LLMSettings:
            return LLMSettings(base_url=server.url, **fields)

        assert await images_sent("default") == 0
        assert await images_sent("swe", swe=table(model="llama3", sees_images=True)) == 1
        assert await images_sent("swe", swe=table(model="new-one")) == 1
        assert await images_sent("swe", swe=table(model="new-one", sees_images=False)) == 0
        assert await images_sent("vision", vision=table(model="llama3")) == 1
        assert await images_sent("default", vision=table(model="llama3")) == 0  # the same model: nothing
        assert await images_sent("default", vision=table(model="qwen3")) == 1
        assert server.requests[-1]["model"] == "qwen3"
        assert await images_sent("default", vision=table(model="qwen3", sees_images=False)) == 0


async def test_a_vision_model_that_cannot_be_used_is_told_and_the_blind_one_goes_on(home: Path) -> None:
    told: list[str] = []
    async with StrictServer(lambda request: "ok") as server:
        tables = {
            "default": LLMSettings(model="llama3", base_url=server.url),
            "vision": LLMSettings(model="openai:gpt-5.4"),
        }
        llm = LLM("swe", Settings(llm=tables, environ={}), notify=lambda level, text: told.append(text))
        assert await llm.ask([Message.user_message("look", png_base64())]) == "ok"
        await llm.aclose()
    [text] = told
    assert "[llm.vision]" in text
    assert "OPENAI_API_KEY" in text
