"""Stored keys: in a keyring that works, else in a private file; whatever is wrong with either is said and stops nobody else."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from handwork.config import keys as module
from handwork.config.keys import FILE, KeyStore
from handwork.config.setup_file import delete_choice, write_choice
from handwork.errors import ConfigError

URL = "https://api.openai.com/v1"
KEY = "sk-proj-" + "a1B2" * 10


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    return KeyStore(tmp_path / "config")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


# ---- the file


def test_a_store_of_nothing_reads_and_makes_nothing(store: KeyStore) -> None:
    assert store.entries() == ()
    assert store.get("openai") == ""
    assert store.key_for("https://api.openai.com:443", "openai") == ""
    assert not store.delete("openai")
    assert not store.path.parent.exists()


def test_a_key_is_kept_in_a_file_that_only_its_user_may_read(store: KeyStore) -> None:
    where = store.set("openai", KEY, base_url=URL, model="gpt-5.4")
    assert where == str(store.path)
    assert (mode(store.path), mode(store.path.parent)) == (0o600, 0o700)
    again = KeyStore(store.path.parent)
    assert again.get("openai") == KEY
    (entry,) = again.entries()
    assert (entry.name, entry.model, entry.base_url) == ("openai", "gpt-5.4", URL)
    assert list(store.path.parent.iterdir()) == [store.path]


def test_the_newest_key_is_the_last_entry_and_a_key_is_replaced(store: KeyStore) -> None:
    for name, key in (("openai", "first-key-of-openai"), ("groq", "a-key-of-groq-here"), ("openai", KEY)):
        store.set(name, key, base_url=URL)
    assert [entry.name for entry in store.entries()] == ["groq", "openai"]
    assert store.get("openai") == KEY
    assert store.delete("openai")
    assert [entry.name for entry in store.entries()] == ["groq"]


def test_a_key_goes_to_the_origin_that_it_was_stored_for_and_to_no_other(store: KeyStore) -> None:
    store.set("openai", KEY, base_url=URL)
    assert store.key_for("https://api.openai.com:443", "openai") == KEY
    for other in ("http://api.openai.com:80", "https://api.openai.com:8443", "https://api.openai.com.evil.org:443"):
        assert store.key_for(other, "openai") == ""


def test_of_two_keys_for_one_origin_the_provider_of_that_name_has_its_own(store: KeyStore) -> None:
    store.set(URL, "the-one-of-the-address", base_url=URL)
    store.set("openai", KEY, base_url=URL)
    assert store.key_for("https://api.openai.com:443", "openai") == KEY
    assert store.key_for("https://api.openai.com:443", URL) == "the-one-of-the-address"


def test_no_key_is_in_what_the_store_and_its_entries_say_of_themselves(store: KeyStore) -> None:
    store.set("openai", KEY, base_url=URL)
    assert KEY not in repr(store.entries()) + repr(store) + str(store.entries())


@pytest.mark.parametrize("permissions", [0o644, 0o640, 0o666, 0o604])
def test_permissions_that_others_can_use_are_mended_and_told(store: KeyStore, permissions: int) -> None:
    store.set("openai", KEY, base_url=URL)
    store.path.chmod(permissions)
    assert store.get("openai") == KEY
    assert mode(store.path) == 0o600
    (notice,) = store.take_notices()
    assert str(store.path) in notice
    assert store.take_notices() == []


def test_keys_that_are_stored_at_the_same_time_are_all_kept(store: KeyStore) -> None:
    names = [f"provider{number}" for number in range(8)]
    together = threading.Barrier(len(names))

    def keep(name: str) -> None:
        own = KeyStore(store.path.parent)
        together.wait()
        own.set(name, KEY, base_url=URL)

    threads = [threading.Thread(target=keep, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.name for entry in store.entries()) == names


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/full")], ids=["pipe", "endless"])
def test_a_file_that_is_none_is_never_waited_for(store: KeyStore, make: Callable[[Path], object]) -> None:
    store.path.parent.mkdir(parents=True, exist_ok=True)
    make(store.path)
    with pytest.raises(ConfigError, match="cannot be read: it is no regular file"):
        store.entries()
    assert store.notices == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '{"keys": []}',
        '{"keys": {"openai": "sk"}}',
        '{"keys": {"openai": {"key": 7}}}',
        '{"keys": {"openai": {"key": "k", "base_url": 7}}}',
        "[" * 100_000,
        "\ufffd\x00",
    ],
)
def test_a_damaged_file_is_named_with_what_to_do_and_is_never_written_over(store: KeyStore, text: str) -> None:
    store.path.parent.mkdir()
    store.path.write_text(text)
    store.path.chmod(0o600)
    with pytest.raises(ConfigError, match=FILE) as caught:
        store.entries()
    assert "delete" in caught.value.hint
    if text != '{"keys": {"openai": "sk"}}' and '"openai": {' not in text:
        with pytest.raises(ConfigError, match=FILE):
            store.set("groq", KEY, base_url=URL)
        assert store.path.read_text() == text
    assert store.readable() == frozenset()


def test_a_folder_in_place_of_the_file_is_said(store: KeyStore) -> None:
    store.path.mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        store.entries()


def test_a_link_to_the_file_stays_a_link(store: KeyStore, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    store.path.parent.mkdir()
    store.path.symlink_to(real)
    store.set("openai", KEY, base_url=URL)
    assert store.path.is_symlink()
    assert KEY in real.read_text()


def test_a_file_in_place_of_the_folder_is_said(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("")
    with pytest.raises(ConfigError, match="cannot be stored"):
        KeyStore(tmp_path / "config").set("openai", KEY, base_url=URL)
    with pytest.raises(ConfigError, match="cannot be written"):
        write_choice(tmp_path / "config", "openai:gpt-5.4")


# ---- the keyring


class InMemory(KeyringBackend):
    """A keyring of the real library that keeps its passwords in this process."""

    priority = 5
    kept: dict[tuple[str, str], str]
    failing: Exception | None = None

    def __init__(self) -> None:
        super().__init__()
        self.kept = {}

    def get_password(self, service: str, username: str) -> str | None:
        self._fail()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._fail()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._fail()
        del self.kept[service, username]

    def _fail(self) -> None:
        if self.failing is not None:
            raise self.failing


class Forgetful(InMemory):
    """Takes passwords and keeps none."""

    priority = 5

    def set_password(self, service: str, username: str, password: str) -> None:
        pass


class Unsafe(InMemory):
    """A backend that its own library does not recommend, such as a file without encryption."""

    priority = 0.5


@pytest.fixture
def ring() -> Iterator[InMemory]:
    before, made = keyring.get_keyring(), InMemory()
    keyring.set_keyring(made)
    yield made
    keyring.set_keyring(before)


def test_a_working_keyring_has_the_key_and_the_file_only_says_so(store: KeyStore, ring: InMemory) -> None:
    where = store.set("openai", KEY, base_url=URL, model="gpt-5.4")
    assert "keyring" in where
    assert ring.kept == {("handwork", "openai"): KEY}
    assert KEY not in store.path.read_text()
    again = KeyStore(store.path.parent)
    assert again.get("openai") == KEY
    assert again.used == {KEY}
    assert again.delete("openai")
    assert ring.kept == {}


def test_a_locked_keyring_is_told_and_the_file_takes_the_key(store: KeyStore, ring: InMemory) -> None:
    ring.failing = KeyringLocked("the collection is locked")
    assert store.set("openai", KEY, base_url=URL) == str(store.path)
    assert KeyStore(store.path.parent).get("openai") == KEY
    (notice,) = store.take_notices()
    assert "keyring" in notice
    assert "locked" in notice


@pytest.mark.parametrize("failure", [KeyringLocked("locked"), RuntimeError("no bus"), OSError(13, "denied")])
def test_a_key_that_the_keyring_does_not_give_is_said_with_the_way_on(
    store: KeyStore, ring: InMemory, failure: Exception
) -> None:
    store.set("openai", KEY, base_url=URL)
    ring.failing = failure
    with pytest.raises(ConfigError, match="keyring") as caught:
        store.get("openai")
    assert "handwork setup" in caught.value.hint
    assert store.delete("openai")
    assert any("may still be" in text for text in store.take_notices())
    assert store.entries() == ()


def test_a_key_that_is_gone_from_the_keyring_is_said(store: KeyStore, ring: InMemory) -> None:
    store.set("openai", KEY, base_url=URL)
    ring.kept.clear()
    with pytest.raises(ConfigError, match="no longer"):
        store.get("openai")


def test_a_keyring_that_keeps_nothing_is_not_trusted(store: KeyStore, ring: InMemory) -> None:
    keyring.set_keyring(Forgetful())
    assert store.set("openai", KEY, base_url=URL) == str(store.path)
    assert store.get("openai") == KEY


def test_a_keyring_without_encryption_is_not_used(store: KeyStore, ring: InMemory) -> None:
    keyring.set_keyring(Unsafe())
    assert store.set("openai", KEY, base_url=URL) == str(store.path)
    assert store.take_notices() == []


def test_a_key_that_moves_to_the_file_leaves_the_keyring(store: KeyStore, ring: InMemory) -> None:
    store.set("openai", "the-key-of-before", base_url=URL)
    keyring.set_keyring(Unsafe())
    store.set("openai", KEY, base_url=URL)
    assert store.get("openai") == KEY


def test_a_keyring_that_never_answers_is_given_up(
    store: KeyStore, ring: InMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, let_go = threading.Event(), threading.Event()

    def wait(*_: Any) -> None:
        asked.set()
        let_go.wait(20)

    store.set("openai", KEY, base_url=URL)
    monkeypatch.setattr(module, "_PATIENCE", 0.05)
    monkeypatch.setattr(ring, "get_password", wait)
    with pytest.raises(ConfigError, match="no answer"):
        store.get("openai")
    assert asked.is_set()
    let_go.set()


# ---- the choice


def test_the_choice_is_a_private_file_that_can_be_forgotten(tmp_path: Path) -> None:
    path = write_choice(tmp_path, 'odd "name" \\ ü😀', "http://127.0.0.1:1/v1")
    assert mode(path) == 0o600
    import tomllib

    assert tomllib.loads(path.read_text()) == {
        "llm": {"model": 'odd "name" \\ ü😀', "base_url": "http://127.0.0.1:1/v1"}
    }
    assert delete_choice(tmp_path)
    assert not delete_choice(tmp_path)


def test_what_is_in_the_file_can_be_read_by_people(store: KeyStore) -> None:
    store.set("openai", KEY, base_url=URL, model="gpt-5.4")
    assert json.loads(store.path.read_text())["keys"]["openai"]["model"] == "gpt-5.4"
