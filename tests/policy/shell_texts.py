"""Texts of the shell's language, made at random, and what bash would run of them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from hypothesis import strategies as st

NAMES = ("c1", "c2", "c3", "c4")
"""Commands that are nowhere to be found."""
PIECES = (
    *(
        "'",
        '"',
        "\\",
        "#",
        "$",
        "$'",
        "=",
        "[",
        "]",
        "!",
        "~",
        "*",
        "{",
        "}",
        ",",
        "\t",
        "\r",
        "\\\n",
        "`",
        "(",
        ")",
        "<",
        ">",
    ),
    *(
        " ",
        "\n",
        ";",
        "&",
        "|",
        "$(",
        "${",
        "$((",
        "))",
        "<(",
        "<<E\n",
        "<<'E'\n",
        "\nE\n",
        ";;",
        "c1",
        " c2 ",
        "esac",
        "fi",
    ),
)
"""What may be thrown into a text to make something else of it."""
_RUN = r"""command_not_found_handle() { printf '%q\0' "$1" >&9; return 0; }
exec 9>&1 1>/dev/null 2>&1 </dev/null; enable -n kill; f() { :; }; PATH=/nowhere
"""
_BASH = shutil.which("bash") or "bash"


def run_by_bash(text: str, folder: Path) -> set[str]:
    """The commands of NAMES that bash looks for; none of them is there, so nothing runs."""
    # Quoted, each name is written in one go: of one with a newline the sides of a pipeline would mix the parts.
    script = "".join((_RUN, "eval '", text.replace("'", "'\\''"), "'\n"))
    try:
        done = subprocess.run([_BASH, "--norc", "-c", script], cwd=folder, capture_output=True, timeout=2)
    except subprocess.TimeoutExpired as ended:  # an endless loop
        out = ended.stdout or b""
    else:
        out = done.stdout
    return {name for name in out.decode(errors="replace").split("\0") if name in NAMES}


def _word(name: str) -> st.SearchStrategy[str]:
    forms = [
        name,
        f"'{name}'",
        f'"{name}"',
        f"c\\{name[1]}",
        f"$'{name}'",
        f'c""{name[1]}',
        f"$'\\x63'{name[1]}",
        f"c\\\n{name[1]}",
    ]
    return st.sampled_from(forms)


def _commands(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Commands that may hold other texts."""
    argument = st.one_of(
        st.sampled_from(
            ["a", "'a b'", '"a;b"', "$x", "-x", "a#b", "\\;", "''", "*", "{a,b}", "~", "${x}", "$((1+2))", "a=b"]
        ),
        *(
            inner.map(form.format)
            for form in ("$({0}\n)", '"$({0}\n)"', "${{x:-$({0}\n)}}", "<({0}\n)", "$(( $({0}\n) + 1 ))")
        ),
        st.sampled_from([f"`{name} a`" for name in NAMES]),
    )
    redirection = st.sampled_from(["", "", " >f", " 2>&1", " </dev/null", " &>f", " 3<&0", " <<<x", " <<E\n$(c3)\nE\n"])
    front = st.sampled_from(["", "", "", "x=1 ", ">f ", "x+=(a b) ", "! ", "time ", "x=$(c4) ", "a[1]=b ", "2>&1 "])
    name = st.sampled_from(NAMES).flatmap(_word)
    simple = st.tuples(
        front,
        name,
        st.lists(argument, max_size=2).map(lambda found: "".join(f" {each}" for each in found)),
        redirection,
    )
    forms = (
        *("( {0}\n)", "{{ {0}\n}}", "if {0}\nthen {0}\nelse c1\nfi", "for x in a $({0}\n); do {0}\ndone", "f() {{ {0}\n}}; f"),
        *("case a in b|c) {0}\n;; (*) {0}\n;; esac", "while {0}\nfalse; do c1; done", "[[ a == b && -n $({0}\n) ]]", "eval '{0}'"),
        *("function g {{ {0}\n}}\ng", "x=( a $({0}\n) )", "cat <<'E'\n$(no)\nE\n{0}", "until {0}\ntrue; do c2; done"),
        "(( x = $({0}\n) + 1 ))",
        *("{0} | {0}", "{0} && {0}", "{0} || {0}", "{0}; {0}", "{0} &\n{0}", "{0} # remark ' \"\n{0}", "echo \"{0}\" > f; {0}"),
    )  # fmt: skip
    return st.one_of(simple.map("".join), *(inner.map(form.format) for form in forms))


_WHOLE = st.recursive(st.sampled_from(NAMES).flatmap(_word), _commands, max_leaves=6)


@st.composite
def shell_texts(draw: st.DrawFn) -> str:
    """A text that bash accepts, or one into which something was thrown."""
    text = draw(_WHOLE)
    for piece in draw(st.lists(st.sampled_from(PIECES), max_size=2)):
        at = draw(st.integers(0, len(text)))
        text = text[:at] + piece + text[at:]
    return text
