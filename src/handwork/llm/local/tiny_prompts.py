"""The shots and grammars of the tiny-model policy: text for a 135M model, tuned on bench/local_eval.py's development tasks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from handwork.llm.local.tiny_request import unquoted, words_in

WRITE, APPEND, READ, COMPUTE, TALK = " write", " append", " read", " compute", " talk"
LABELS = (WRITE, APPEND, READ, COMPUTE, TALK)
"""Each is one token of the model's vocabulary."""

_ROUTES: tuple[tuple[str, str], ...] = (
    ("Create a file plan.txt with the content: Meet at noon", WRITE),
    ("What is 14 plus 9?", COMPUTE),
    ("Show me diary.txt", READ),
    ("Append the line 'feed the cat' to jobs.txt", APPEND),
    ("Why is the sky blue?", TALK),
    ("Write the words big red barn to farm.txt", WRITE),
    ("What does the file recipe.txt say?", READ),
    ("Calculate 6 * 31", COMPUTE),
    ("Display letter.md", READ),
    ("Add sugar to groceries.txt", APPEND),
    ("Who painted this?", TALK),
    ("Read poem.txt", READ),
)
ORDERS = 3
BIAS = {WRITE: 0.0, APPEND: -0.3, READ: 0.2, COMPUTE: 0.2, TALK: 0.2}
"""Added to the mean log probabilities: how much the model favours a label whatever the task is."""

_WRITES = (
    ("Create a file plan.txt with the content: Meet at noon", "plan.txt", "Meet at noon"),
    ("Write big red barn to farm.txt", "farm.txt", "big red barn"),
    ("Make a file fruit.csv that contains plum, fig", "fruit.csv", "plum, fig"),
    ("Save the text call home in jobs.txt", "jobs.txt", "call home"),
    ("Write 'so be it' to end.txt", "end.txt", "so be it"),
    ('Create data.json with the content {"size": 4}', "data.json", '{"size": 4}'),
    ("Put the sentence The sun is out. into sky.txt", "sky.txt", "The sun is out."),
)
_SCRIPTS = (
    ("Create a file bye.py that prints Goodbye Moon", "bye.py", 'print("Goodbye Moon")'),
    ("Write a script sum.py that prints 4 + 5", "sum.py", "print(4 + 5)"),
    ("Create x.py with the content a = 1", "x.py", "a = 1"),
    ("Write a program ok.py which outputs 'All good'", "ok.py", 'print("All good")'),
)
_APPENDS = (
    ("Append the line 'feed the cat' to jobs.txt", "jobs.txt", "feed the cat"),
    ("Add sugar to groceries.txt", "groceries.txt", "sugar"),
    ("Append The end. to story.txt", "story.txt", "The end."),
    ("Add the text see you soon at the end of letter.md", "letter.md", "see you soon"),
)
_SUMS = (
    ("What is 14 plus 9?", "14 + 9"),
    ("Calculate 6 * 31", "6 * 31"),
    ("Divide 90 by 5", "90 / 5"),
    ("Subtract 3 from 20", "20 - 3"),
    ("What is 2.5 times 8 minus 1?", "2.5 * 8 - 1"),
    ("Work out (7 + 5) * 3", "(7 + 5) * 3"),
    ("What is the product of 4 and 11?", "4 * 11"),
)


def route_prompt(part: str, order: int) -> str:
    """The question which tool fits; the answer is the next token. Orders 0 to ORDERS - 1 turn the shots."""
    turned = _turned(order)
    shots = "".join(f"Task: {task}\nTool:{label}\n\n" for task, label in turned)
    return f"{shots}Task: {_flat(part)}\nTool:"


def _turned(order: int) -> Sequence[tuple[str, str]]:
    if order == 0:
        return _ROUTES
    if order == 1:
        return _ROUTES[::-1]
    return (*_ROUTES[5:], *_ROUTES[:5])


def write_prompt(part: str, path: str) -> str:
    """The question what to put into a new file; the answer is the rest of the line, as in the next ones."""
    return _file_prompt(_WRITES, "Holds", part, path)


def script_prompt(part: str, path: str) -> str:
    """The question what code a script holds."""
    return _file_prompt(_SCRIPTS, "Code", part, path)


def append_prompt(part: str, path: str) -> str:
    """The question which line to add."""
    return _file_prompt(_APPENDS, "Text", part, path)


def _file_prompt(shots: Sequence[tuple[str, str, str]], field: str, part: str, path: str) -> str:
    # The file is named before the field: else the model's first thought is to write the name there.
    shown = "".join(f"Task: {task}\nFile: {file}\n{field}: {value}\n\n" for task, file, value in shots)
    return f"{shown}Task: {_flat(part)}\nFile: {path}\n{field}:"


def sum_prompt(part: str) -> str:
    """The question which expression computes the answer."""
    shown = "".join(f"Task: {task}\nPython: {value}\n\n" for task, value in _SUMS)
    return f"{shown}Task: {_flat(part)}\nPython:"


def path_prompt(part: str, label: str) -> str:
    """The question which of several files is meant."""
    return f"Task: {_flat(part)}\nThe file to{label} is:"


def _flat(text: str) -> str:
    return " ".join(text.split())


# ---- grammars (GBNF)


def one_of(options: Sequence[str]) -> str:
    """A grammar for a space and one of the options, then the end of the line."""
    return f'root ::= " " ({" | ".join(map(_literal, options))}) "\\n"'


def a_span(text: str, path: str) -> str:
    """A grammar for a space and any run of the text's words that does not hold the path, then the end of the line."""
    return f'root ::= " " span "\\n"\n{_span_rules(text, path)}'


def a_script(text: str, path: str, numbers: Sequence[str]) -> str:
    """A grammar for a span of the text, or one printed expression of its words or numbers."""
    sums = " | sum" if numbers else ""
    rules = f'root ::= " " (printed | span) "\\n"\nprinted ::= "print(" ("\\"" span "\\""{sums}) ")"\n'
    return rules + _span_rules(text, path) + (f"\n{_sum_rules(numbers)}" if numbers else "")


def a_sum(numbers: Sequence[str]) -> str:
    """A grammar for arithmetic over these numbers."""
    return f'root ::= " " sum "\\n"\n{_sum_rules(numbers)}'


def _sum_rules(numbers: Sequence[str]) -> str:
    number = " | ".join(map(_literal, numbers))
    return (
        f"number ::= {number}\n"
        'sum ::= term (" " operator " " term)?  (" " operator " " term)? (" " operator " " term)?\n'
        'term ::= number | "(" number " " operator " " number ")"\n'
        'operator ::= "+" | "-" | "*" | "/" | "**" | "%"'
    )


def _span_rules(text: str, path: str) -> str:
    """Rule s<i> is a run that begins at word i: the word, and perhaps what stands after it up to the end of the next ones."""
    spans = words_in(text, path)
    rules = [f"span ::= {' | '.join(f's{at}' for at in range(len(spans)))}"]
    for at, ((begin, end), after) in enumerate(zip(spans, (*islice(spans, 1, None), None), strict=True)):
        between = text[end : after[0]] if after else None
        goes_on = between is not None and not between.strip()  # else the path stands between
        more = f" ({_literal(between or '')} s{at + 1})?" if goes_on else ""
        rules.append(f"s{at} ::= {_word_rule(text[begin:end])}{more}")
    return "\n".join(rules)


def _word_rule(word: str) -> str:
    """A word; what stands in quotes may also be taken without them."""
    bare = unquoted(word)
    return _literal(word) if bare == word else f"({_literal(word)} | {_literal(bare)})"


def _literal(text: str) -> str:
    escaped = (
        text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return f'"{escaped}"'
