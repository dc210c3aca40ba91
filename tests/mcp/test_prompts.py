"""Prompts of a server: what is typed becomes arguments, what comes becomes a request."""

from __future__ import annotations

import base64

import pytest

from handwork.errors import ConfigError
from handwork.mcp.content import Embedded, Link, Media, PromptMessage, Text, Unknown
from handwork.mcp.offer import PromptArgument, PromptOffer
from handwork.mcp.prompts import MOST_PICTURES, arguments_of, request_of, usage

ONE = PromptOffer(name="review", arguments=(PromptArgument(name="code", description="What to look at", required=True),))
TWO = PromptOffer(
    name="translate",
    arguments=(PromptArgument(name="text", required=True), PromptArgument(name="to", description="A language")),
)


@pytest.mark.parametrize(
    ("typed", "arguments"),
    [
        ("hello", {"text": "hello"}),
        ("hello German", {"text": "hello", "to": "German"}),
        ('"hello there" German', {"text": "hello there", "to": "German"}),
        ("'hello there'  German ", {"text": "hello there", "to": "German"}),
        ("to=German hello", {"text": "hello", "to": "German"}),
        ('to="High German" text=hello', {"text": "hello", "to": "High German"}),
        ("x=1 German", {"text": "x=1", "to": "German"}),
        ('"to=German"', {"text": "to=German"}),
        ("it's German", {"text": "it's", "to": "German"}),
        ('"" German', {"text": "", "to": "German"}),
        ("to= hello", {"text": "hello", "to": ""}),
        ('say"x" y', {"text": 'say"x"', "to": "y"}),
        ('"open German', {"text": '"open', "to": "German"}),
        ("日本語 ドイツ語", {"text": "日本語", "to": "ドイツ語"}),
    ],
)
def test_values_come_in_order_or_by_name(typed: str, arguments: dict[str, str]) -> None:
    assert arguments_of("s", TWO, typed) == arguments


@pytest.mark.parametrize("typed", ["def f(): return 'x'", "fix the bug, don't ask", "a  b"])
def test_a_prompt_with_one_argument_gets_all_of_the_text(typed: str) -> None:
    assert arguments_of("s", ONE, f" {typed} ") == {"code": typed}


def test_one_quoted_value_loses_its_quotes() -> None:
    assert arguments_of("s", ONE, '"a b"') == {"code": "a b"}
    assert arguments_of("s", ONE, "code=x") == {"code": "x"}


def test_what_is_missing_is_named_with_its_description() -> None:
    with pytest.raises(ConfigError, match=r"s:review needs code \(What to look at\)") as caught:
        arguments_of("s", ONE, "  ")
    assert caught.value.hint == "/s:review code"


@pytest.mark.parametrize("typed", ["a b c", "to=x a b"])
def test_too_many_values_are_an_error_that_shows_how_it_is_typed(typed: str) -> None:
    with pytest.raises(ConfigError, match="one too many") as caught:
        arguments_of("s", TWO, typed)
    assert "/s:translate text [to]" in caught.value.hint


def test_a_name_given_twice_is_an_error() -> None:
    with pytest.raises(ConfigError, match="twice"):
        arguments_of("s", TWO, "to=a to=b x")


def test_a_prompt_without_arguments_takes_none() -> None:
    assert arguments_of("s", PromptOffer(name="p"), "") == {}
    with pytest.raises(ConfigError, match="takes no arguments"):
        arguments_of("s", PromptOffer(name="p"), "x")


def test_names_of_a_server_are_shown_without_what_acts_on_the_terminal() -> None:
    assert "\x1b" not in usage("s", PromptOffer(name="p\x1b[2J", arguments=(PromptArgument(name="a\nb"),)))


def test_words_of_the_user_alone_are_the_request_as_they_are() -> None:
    assert request_of([PromptMessage("user", Text("Look at this.")), PromptMessage("user", Text("Now."))]) == (
        "Look at this.\n\nNow.",
        (),
    )


def test_who_speaks_is_said_where_two_do() -> None:
    messages = [PromptMessage("user", Text("Hi")), PromptMessage("assistant", Text("Hello, what is it?"))]
    assert request_of(messages)[0] == "User: Hi\n\nAssistant: Hello, what is it?"


def test_pictures_go_along_and_what_cannot_is_named() -> None:
    data = base64.b64encode(b"png").decode()
    text, pictures = request_of(
        [
            PromptMessage("user", part)
            for part in (
                Media("image", data, "image/png"),
                Media("image", "?", "image/png"),
                Media("audio", data, "audio/wav"),
                Link("x://a", "A"),
                Embedded("x://b", text="content"),
                Embedded("x://c", blob=data, media_type="application/pdf"),
                Unknown("hologram"),
            )
        ]
    )
    assert pictures == (b"png",)
    assert "[a picture (image/png) that is none is left out]" in text
    assert "[a sound (audio/wav) is left out]" in text
    assert "[the resource x://a (A)]" in text
    assert "Resource x://b:\ncontent" in text
    assert "[the resource x://c (application/pdf) is left out]" in text
    assert "hologram" in text


def test_what_nobody_sees_is_no_part_of_a_request() -> None:
    text, _ = request_of([PromptMessage("user", Text("a\x1b[2J\U000e0041\ud800b"))])
    assert text == "a␛[2J\ufffdb"


def test_more_pictures_than_a_request_should_have_are_named() -> None:
    text, pictures = request_of([PromptMessage("user", Media("image", "AAAA", "image/png"))] * (MOST_PICTURES + 2))
    assert len(pictures) == MOST_PICTURES
    assert text.count("is left out: there are more than 20]") == 2
