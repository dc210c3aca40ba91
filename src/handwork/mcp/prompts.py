"""A server's prompt that a person asks for: from the words typed in the chat to the request of a run."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence

from handwork.errors import ConfigError
from handwork.mcp.cleaning import clean, one_line
from handwork.mcp.content import Embedded, Link, Media, Part, PromptMessage, Text, Unknown
from handwork.mcp.names import for_people
from handwork.mcp.offer import PromptArgument, PromptOffer

LONGEST = 400_000
"""Characters of a request that a prompt makes."""
MOST_PICTURES = 20


def request_of(messages: Sequence[PromptMessage]) -> tuple[str, tuple[bytes, ...]]:
    """The text and the pictures of a run's request. Who says what is said where it is not the user alone; a picture that is none,
    a sound, and other data are named in the text."""
    texts: list[str] = []
    pictures: list[bytes] = []
    alone = all(message.role == "user" for message in messages)
    for message in messages:
        text = _text(message.part, pictures)
        if text:
            texts.append(text if alone else f"{message.role.capitalize()}: {text}")
    return clean("\n\n".join(texts), LONGEST), tuple(pictures)


def arguments_of(server: str, prompt: PromptOffer, text: str) -> dict[str, str]:
    """The arguments of a prompt in what stands behind its name: values in the order of the prompt's arguments, or `name=value`; words
    with spaces in quotes. What a prompt with one argument gets is all of the text.

    Raises ConfigError that names what is missing, or is too much.
    """
    known = [each.name for each in prompt.arguments]
    named, values = _sorted(known, _words(text))
    free = [name for name in known if name not in named]
    if len(known) == 1 and values:
        values = [text.strip() if len(values) > 1 else values[0]]
    if len(values) > len(free):
        takes = f"takes {', '.join(map(one_line, known))}" if known else "takes no arguments"
        raise ConfigError(
            f"{for_people(server, prompt.name)} {takes}; {one_line(values[len(free)], 40)!r} is one too many",
            hint=f"put a value with spaces in quotes: {usage(server, prompt)}" if known else usage(server, prompt),
        )
    found = named | dict(zip(free, values, strict=False))
    if missing := [each for each in prompt.arguments if each.required and each.name not in found]:
        raise ConfigError(
            f"{for_people(server, prompt.name)} needs {'; '.join(map(_described, missing))}", hint=usage(server, prompt)
        )
    return {name: found[name] for name in known if name in found}


def usage(server: str, prompt: PromptOffer) -> str:
    """How a prompt is typed: `/server:prompt NEEDED [OPTIONAL]`."""
    words = [one_line(each.name) if each.required else f"[{one_line(each.name)}]" for each in prompt.arguments]
    return " ".join((f"/{for_people(server, prompt.name)}", *words))


def _described(argument: PromptArgument) -> str:
    text = one_line(argument.description)
    return one_line(argument.name) + (f" ({text})" if text else "")


def _sorted(known: Sequence[str], words: Sequence[tuple[str, int]]) -> tuple[dict[str, str], list[str]]:
    """Values by name, and those without; `=` makes a name only of one that the prompt has."""
    named: dict[str, str] = {}
    values: list[str] = []
    for word, plain in words:
        name, equals, value = word.partition("=")
        if equals and name in known and len(name) < plain:
            if name in named:
                raise ConfigError(f"{one_line(name)} is given twice", hint="give each argument once")
            named[name] = value
        else:
            values.append(word)
    return named, values


def _words(text: str) -> list[tuple[str, int]]:
    """The words of a text, each with how many of its characters stood before its first quote; an apostrophe in a word is one."""
    words: list[tuple[str, int]] = []
    word, plain, quote, begun = "", -1, "", False
    for at, char in enumerate(text):
        if quote:
            if char == quote:
                quote = ""
            else:
                word += char
        elif char in "\"'" and (not word or word.endswith("=")) and char in text[at + 1 :]:
            quote, begun, plain = char, True, len(word) if plain < 0 else plain
        elif char.isspace():
            if word or begun:
                words.append((word, len(word) if plain < 0 else plain))
            word, plain, begun = "", -1, False
        else:
            word += char
    return [*words, (word, len(word) if plain < 0 else plain)] if word or begun else words


def _text(part: Part, pictures: list[bytes]) -> str:
    match part:
        case Text(text):
            return text
        case Media(kind="image", media_type=media_type) if len(pictures) >= MOST_PICTURES:
            return f"[a picture ({one_line(media_type)}) is left out: there are more than {MOST_PICTURES}]"
        case Media(kind="image", data=data, media_type=media_type):
            try:
                pictures.append(base64.b64decode("".join(data.split()), validate=True))
            except (binascii.Error, ValueError):
                return f"[a picture ({one_line(media_type)}) that is none is left out]"
            return ""
        case Media(media_type=media_type):
            return f"[a sound ({one_line(media_type)}) is left out]"
        case Link(uri, name):
            return f"[the resource {one_line(uri)}" + (f" ({one_line(name)})]" if name else "]")
        case Embedded(uri, text=str(text)):
            return f"Resource {one_line(uri)}:\n{text}"
        case Embedded(uri, media_type=media_type):
            return f"[the resource {one_line(uri)} ({one_line(media_type) or 'data'}) is left out]"
        case Unknown(kind):
            return f"[a part of an unknown kind ({one_line(kind)}) is left out]"
    return ""
