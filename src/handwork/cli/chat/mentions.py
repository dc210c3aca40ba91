"""`@file` in a message: the file's text, or its picture, goes along with it."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from handwork.cli.chat.pasted import IMAGES, mention
from handwork.errors import ConfigError, PictureError
from handwork.schema.visible import seen
from handwork.tool.pictures import picture_of_file

TEXT_LIMIT = 256_000
"""Bytes of one file's text."""
ALL_LIMIT = 1_000_000
_ENTRIES = 200
"""Names of a mentioned folder."""
_MENTION = re.compile(r'(?<!\S)@(?:"([^"\n]+)"|(\S+))')
_AFTER = ".,;:!?)]}'\"»›…"
"""What may stand right behind a mention in a sentence."""
_FILE_NAME = re.compile(
    r"[\w./+-]+\.(?:c|cc|cfg|conf|cpp|cs|css|csv|docx|env|gif|go|h|hpp|html|ini|ipynb|java|jpe?g|js|json|jsx|kt|lock|log|lua|md|pdf|php|pl"
    r"|png|py|pyi|r|rb|rs|rst|scss|sh|sql|svg|swift|tex|toml|ts|tsv|tsx|txt|webp|xlsx|xml|ya?ml)",
    re.IGNORECASE,
)
"""Names that end so are meant as files, even where there is none."""


@dataclass
class Mentioned:
    """A message with what it mentions: `text` is what the model reads, `images` are files of pictures, `plain` are words behind an
    @ that name no file."""

    text: str
    images: list[Path] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)


def with_files(message: str, folder: Path) -> Mentioned:
    """The message, and the files that it mentions below it; any other @ stays text.

    Raises ConfigError for a file that is meant and missing, unreadable, too large or neither text nor a picture.
    """
    found = Mentioned(message)
    blocks: list[str] = []
    for name, path in dict(_mentions(message, folder)).items():
        if path is None:
            found.plain.append(name)
            continue
        if path.is_dir():
            blocks.append(f'<folder path="{name}">\n{_listing(path)}\n</folder>')
        elif path.suffix.lower() in IMAGES:
            found.images.append(path)
        else:
            shown = seen(_text(name, path))
            blocks.append(f'<file path="{name}">\n{shown.text}\n</file>')
            blocks += [f"({shown.note_with_advice})"] if shown.note else []
        found.files.append(name)
    if sum(map(len, blocks)) > ALL_LIMIT:
        raise ConfigError(
            f"The mentioned files are more than {ALL_LIMIT // 1000} KB together",
            hint="name them without @: the agent reads what it needs",
        )
    found.text = "\n\n".join([message, *blocks])
    return found


def picture_at(named: str, folder: Path) -> str:
    """The mention of a picture that was named by its path alone. Raises ConfigError for what is none."""
    name = named.strip().removeprefix("@").strip("\"'")
    path = _path(name, folder)
    if path is None or not _exists(path):
        raise ConfigError(
            f"There is no file {name}", hint="/image PATH: the path as it is from the workspace, or whole"
        )
    if path.suffix.lower() not in IMAGES or path.is_dir():
        raise ConfigError(
            f"{name} is no picture",
            hint=f"/image takes {', '.join(sorted(IMAGES))}; @path puts any other file into a message",
        )
    try:
        picture_of_file(_followed(name, path, folder))
    except PictureError as error:
        raise ConfigError(error.message) from None
    return mention(name)


def _mentions(message: str, folder: Path) -> Iterator[tuple[str, Path | None]]:
    """(name as written, path) of what is there, (name, None) of what stays text. Raises ConfigError for a file that is meant and gone."""
    for quoted, bare in _MENTION.findall(message):
        names = [quoted] if quoted else _candidates(bare)
        for name in names:
            path = _path(name, folder)
            if path is not None and _exists(path):
                yield name, _followed(name, path, folder)
                break
        else:
            if quoted or _is_meant(names[-1], folder):
                raise ConfigError(
                    f"There is no file {names[-1]}", hint="write it as it is in the workspace, or leave out the @"
                )
            if re.search(r"\w", names[-1]):
                yield names[-1], None


def _candidates(bare: str) -> list[str]:
    """The word, then the word without what the sentence puts behind it."""
    names = [bare]
    while bare and bare[-1] in _AFTER:
        bare = bare[:-1]
        names.append(bare)
    return [name for name in names if name] or [bare]


def _path(name: str, folder: Path) -> Path | None:
    try:
        return folder / (Path(name).expanduser() if name.startswith("~") else name)
    except (RuntimeError, ValueError):
        return None


def _followed(name: str, path: Path, folder: Path) -> Path:
    """Where a path leads. Raises ConfigError if it looks like one of the workspace and is a link out of it: a cloned project
    must not pass on what the human keeps elsewhere."""
    real = path.resolve()
    inside = not name.startswith(("/", "~")) and ".." not in Path(name).parts
    if inside and not real.is_relative_to(folder.resolve()):
        raise ConfigError(
            f"{name} is a link that leads out of the workspace", hint=f"if it is to be read: {mention(str(real))}"
        )
    return real


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _is_meant(name: str, folder: Path) -> bool:
    """Whether a name that is no file was meant as one: an e-mail's domain, a decorator and a package are not."""
    if name.startswith(("./", "../", "~/", "/")):
        return True
    head, slash, _ = name.partition("/")
    if slash and _exists(folder / head):
        return True
    return _FILE_NAME.fullmatch(name) is not None


def _bytes(name: str, path: Path) -> bytes:
    try:
        handle = os.open(
            path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )  # a pipe without a writer would wait for ever
        with os.fdopen(handle, "rb") as file:
            facts = os.fstat(handle)
            if not stat.S_ISREG(facts.st_mode):
                raise ConfigError(f"{name} is no file that can be read")
            if facts.st_size > TEXT_LIMIT:
                raise ConfigError(
                    f"{name} has {facts.st_size / 1000:,.0f} KB; at most {TEXT_LIMIT // 1000:,} KB go into a message",
                    hint="name it without @: the agent reads what it needs",
                )
            return file.read(TEXT_LIMIT)
    except OSError as error:
        raise ConfigError(f"{name} cannot be read: {error.strerror}") from error


def _text(name: str, path: Path) -> str:
    data = _bytes(name, path)
    hint = "name it without @: the agent has tools for it"
    if b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise ConfigError(f"{name} is no text", hint=hint)
    for encoding in ("utf-16",) if data.startswith((b"\xff\xfe", b"\xfe\xff")) else ("utf-8-sig",):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    text = data.decode("cp1252", "replace")
    if sum(char < " " and char not in "\t\n\r\f" for char in text) > len(text) / 100:
        raise ConfigError(f"{name} is no text", hint=hint)
    return text


def _listing(path: Path) -> str:
    try:
        names = sorted(entry.name + ("/" if entry.is_dir() else "") for entry in os.scandir(path))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    more = [f"… {len(names) - _ENTRIES} more"] if len(names) > _ENTRIES else []
    return "\n".join([*(seen(name).text.replace("\n", "␊") for name in names[:_ENTRIES]), *more])
