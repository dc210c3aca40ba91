"""A store whose files are deleted or replaced while it is open: the next gate says so, and a new store can be made."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from handwork.errors import JournalError
from handwork.store.journal import Journal
from handwork.store.keep import keep_open
from handwork.store.sqlite import Store
from tests.store.samples import begin, notice, texts


async def _write(journal: Journal, text: str = "hello") -> None:
    journal.append(notice(journal, text))
    await journal.commit()


def _delete(path: Path, pattern: str = "store.db*") -> None:
    for file in list(path.parent.glob(pattern)):
        file.unlink()


@pytest.mark.parametrize("pattern", ["store.db*", "store.db", "store.db-wal", "store.db-shm", "store.db-lock"])
async def test_the_gate_after_a_file_was_deleted_is_an_error_that_names_it(path: Path, pattern: str) -> None:
    store = Store.open(path)
    journal = begin(store)
    await _write(journal)
    _delete(path, pattern)
    for _ in range(2):
        with pytest.raises(JournalError, match=rf"{pattern.rstrip('*')} was deleted while it was open.*new session"):
            await _write(journal)
    journal.close()
    store.close()


async def test_a_deleted_folder_and_a_copy_in_the_files_place_are_noticed(path: Path) -> None:
    store = Store.open(path)
    journal = begin(store)
    await _write(journal)
    home = path.parent
    home.rename(home.with_name("away"))
    with pytest.raises(JournalError, match="was deleted"):
        await _write(journal, "while it is away")
    shutil.copytree(home.with_name("away"), home)
    with pytest.raises(JournalError, match="was replaced"):
        await _write(journal, "while a copy is there")
    shutil.rmtree(home)
    home.with_name("away").rename(home)
    await _write(journal, "back")
    assert texts(store, journal.session_id) == ["hello", "while it is away", "while a copy is there", "back"]
    store.close()


async def test_a_store_is_opened_anew_when_its_files_are_gone_and_the_old_one_harms_it_not(path: Path) -> None:
    old = Store.open(path)
    lost = begin(old, "lost")
    await _write(lost)
    _delete(path)
    new = Store.open(path)
    assert new is not old
    journal = begin(new, "kept")
    await _write(journal)
    with pytest.raises(JournalError, match="was replaced"):
        await _write(lost)
    lost.close()
    old.close()
    assert Store.open(path) is new
    new.close()
    await _write(journal)
    new.close()
    store = Store.open(path)
    assert texts(store, "kept") == ["hello", "hello"]
    assert [info.id for info in store.sessions()] == ["kept"]
    store.close()


async def test_a_store_of_which_a_part_is_gone_is_refused_instead_of_mixed_with_a_new_one(path: Path) -> None:
    store = Store.open(path)
    await _write(begin(store, "mine"))
    _delete(path, "store.db-wal")
    with pytest.raises(JournalError, match="store.db-wal was deleted"):
        Store.open(path)
    store.close()  # folds the deleted log, which it still holds, into the file
    store = Store.open(path)
    assert texts(store, "mine") == ["hello"]
    store.close()


def test_a_store_that_is_kept_for_the_loop_is_not_used_again_when_its_files_are_gone(path: Path) -> None:
    stores: list[Store] = []

    async def session() -> None:
        store = Store.open(path)
        keep_open(store, path, synchronous="normal")
        journal = begin(store)
        await _write(journal)
        journal.close()
        store.close()
        stores.append(store)

    async def work() -> None:
        for _ in range(2):
            await session()
        _delete(path)
        for _ in range(2):
            await session()
        assert stores[0] is stores[1] is not stores[2] is stores[3]
        assert [store._users for store in stores] == [0, 0, 1, 1]

    asyncio.run(work())
    assert stores[2]._users == 0
    store = Store.open(path)
    assert len(store.sessions()) == 2
    store.close()
