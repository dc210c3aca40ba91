"""KeyLines: the right line for every way in which TOML and JSON write a key."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handwork.config.key_lines import KeyLines, Path

NAMES = st.sampled_from(["a", "b-1", "model", "with blank", "dot.ted", 'quo"te', "ünï", "#", "", "a\\b", "[x]", "="])
SCALARS = st.sampled_from(
    [
        "1",
        "-0.5e3",
        "true",
        "1979-05-27 07:32:00",
        "1979-05-27T07:32:00Z",
        '"a = 1 # no comment"',
        "'[llm]'",
        '"\\"]\\\\"',
        '"""\n[llm]\nb-1 = 2\n\\""x \\\n"""',
        '""""quoted"""""',
        "'''\na = 1\n''''",
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
TABLES = st.recursive(
    st.dictionaries(NAMES, VALUES, max_size=3),
    lambda inner: st.dictionaries(NAMES, st.one_of(VALUES, inner), max_size=3),
    max_leaves=4,
)


class Writer:
    """Writes tables as TOML in ways that it draws, and remembers the line on which it first named each key."""

    def __init__(self, draw: Any) -> None:
        self.draw, self.text = draw, ""
        self.lines: dict[Path, int] = {}

    def table(self, values: dict[str, Any], path: Path) -> None:
        tables = {name: value for name, value in values.items() if isinstance(value, dict) and self.coin()}
        for name, value in values.items():
            if name not in tables:
                self.blank()
                self.mention((*path, name))
                self.text += f"{self.key(name)}{self.gap()}={self.gap()}"
                self.value(value, (*path, name))
                self.text += self.draw(st.sampled_from(["\n", " # a = 1\n", "\n\n"]))
        for name, value in tables.items():
            if self.coin():
                self.text += "\t"
            for end in range(1, len(path) + 2):
                self.mention((*path, name)[:end])
            self.text += f"[{self.gap()}{' . '.join(map(self.key, (*path, name)))}]\n"
            self.table(value, (*path, name))

    def value(self, value: Any, path: Path) -> None:
        match value:
            case str():
                self.text += value
            case list():
                self.text += "["
                for number, inner in enumerate(value):
                    self.blank()
                    self.mention((*path, str(number)))
                    self.value(inner, (*path, str(number)))
                    self.blank()
                    self.text += ","
                self.text += "]"
            case dict():
                self.text += "{"
                for number, (name, inner) in enumerate(value.items()):
                    self.text += ", " if number else " "
                    self.mention((*path, name))
                    self.text += f"{self.key(name)} = "
                    self.value(inner, (*path, name))
                self.text += "}"

    def mention(self, path: Path) -> None:
        self.lines.setdefault(path, self.text.count("\n") + 1)

    def key(self, name: str) -> str:
        if name and name.isascii() and name.replace("-", "").isalnum() and self.coin():
            return name
        if "'" not in name and self.coin():
            return f"'{name}'"
        return json.dumps(name, ensure_ascii=self.coin())

    def blank(self) -> None:
        self.text += self.draw(st.sampled_from(["", " ", "\n", "# [x] '\n"]))

    def gap(self) -> str:
        return str(self.draw(st.sampled_from(["", " ", "\t"])))

    def coin(self) -> bool:
        return bool(self.draw(st.booleans()))


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TABLES, st.data())
def test_every_key_of_a_toml_file_is_found_on_the_line_that_names_it_first(values: dict[str, Any], data: Any) -> None:
    writer = Writer(data.draw)
    writer.table(values, ())
    tomllib.loads(writer.text)
    lines = KeyLines(writer.text)
    assert {path: lines.line(path) for path in writer.lines} == writer.lines
    assert lines.repeated() is None


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(), JSON), st.booleans())
def test_every_key_of_a_json_file_is_found(values: dict[str, Any], ascii: bool) -> None:
    text = json.dumps(values, indent=1, ensure_ascii=ascii)
    lines, written = KeyLines(text, json=True), text.split("\n")
    for path in _paths(values, ()):
        if path and not path[-1].isdigit():
            assert json.dumps(path[-1], ensure_ascii=ascii) in written[lines.line(path) - 1]


def _paths(value: Any, path: Path) -> list[Path]:
    inner = enumerate(value) if isinstance(value, list) else value.items() if isinstance(value, dict) else ()
    return [path] + [each for name, child in inner for each in _paths(child, (*path, str(name)))]


def test_dotted_keys_and_elements_of_arrays_of_tables_have_their_own_lines() -> None:
    lines = KeyLines("a.b.c = 1\na.b.d = 2\n[[x]]\ny = 1\n[[x]]\ny = 2\n[x.z]\nw = {p.q = 1}\n")
    found = {
        ("a",): 1,
        ("a", "b", "d"): 2,
        ("x", "0", "y"): 4,
        ("x", "1", "y"): 6,
        ("x", "1", "z"): 7,
        ("x", "1", "z", "w", "p", "q"): 8,
    }
    assert {path: lines.line(path) for path in found} == found
    assert lines.repeated() is None


def test_what_does_not_stand_there_has_the_line_of_its_table() -> None:
    assert KeyLines("\n[llm]\nmodel = 1").line(("llm", "vision", "model")) == 2
    assert KeyLines("").line(("llm",)) == 1


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet="ab.=[]{}\"'\n#,1\\ :"), st.booleans())
def test_no_text_at_all_breaks_it(text: str, json: bool) -> None:
    lines = KeyLines(text, json=json)
    assert 1 <= lines.line(("a",)) <= text.count("\n") + 1
    lines.repeated()
    lines.too_deep()


def test_a_key_of_endless_parts_is_cut() -> None:
    lines = KeyLines("\n" + "a." * 100_000 + "a = 1\nb = 2")
    assert (lines.too_deep(), lines.line(("b",))) == (2, 3)


def test_a_large_file_is_read_once() -> None:
    text = "".join(f"[t{number}]\nkey = 'v'\n" for number in range(20_000))
    lines = KeyLines(text)
    assert all(lines.line((f"t{number}", "key")) == 2 * number + 2 for number in range(20_000))
