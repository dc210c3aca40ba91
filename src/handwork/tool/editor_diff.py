"""Which lines two texts have in common, in a number of steps that is bounded by their length."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence

Block = tuple[int, int, int]
"""Where equal items begin in one and in the other sequence, and how many they are."""
Change = tuple[int, int, int, int]
"""From where to where in one sequence, and in the other, they differ."""
_STEPS_PER_ITEM = 8


def common_start(one: Sequence[object], two: Sequence[object]) -> int:
    """The length of the common beginning, by halves: comparing slices is far faster than comparing items one by one."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == two[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_end(one: Sequence[object], two: Sequence[object], start: int = 0) -> int:
    """The length of the common end that does not reach into the first `start` items of either."""
    return min(common_start(one[::-1], two[::-1]), len(one) - start, len(two) - start)


def changes(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Change]:
    """The places where two sequences differ, in order; between them they are equal.

    Anchors are the items that occur once in both (patience diff); between two of them the same is done again. What has no
    anchors, or comes when the steps are used up, is one place: correct, only not the smallest.
    """
    found: list[Change] = []
    i = j = 0
    for a, b, size in [*_blocks(old, new), (len(old), len(new), 0)]:
        if a > i or b > j:
            found.append((i, a, j, b))
        i, j = a + size, b + size
    return found


def _blocks(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Block]:
    blocks: list[Block] = []
    steps = _STEPS_PER_ITEM * (len(old) + len(new)) + 1000
    todo = [(0, len(old), 0, len(new))]
    while todo:
        a, b, c, d = todo.pop()
        head = common_start(old[a:b], new[c:d])
        tail = common_end(old[a:b], new[c:d], head)
        blocks += [(a, c, head), (b - tail, d - tail, tail)]
        a, b, c, d = a + head, b - tail, c + head, d - tail
        if a == b or c == d or steps < 0:
            continue
        steps -= b - a + d - c
        last = (a, c)
        anchors = list(_anchors(old, new, (a, b, c, d)))
        for x, y in anchors:
            todo.append((last[0], x + 1, last[1], y + 1))
            last = (x + 1, y + 1)
        if anchors:
            todo.append((last[0], b, last[1], d))
    return sorted(block for block in blocks if block[2])


def _anchors(old: Sequence[Hashable], new: Sequence[Hashable], span: Change) -> Iterator[tuple[int, int]]:
    """The longest rising row of items that occur once on either side."""
    a, b, c, d = span
    here, there = _once(old, a, b), _once(new, c, d)
    pairs = [(x, there[item]) for item, x in here.items() if item in there]
    ends: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for index, (_, y) in enumerate(pairs):
        at = bisect_left(ends, y)
        before.append(places[at - 1] if at else -1)
        ends[at : at + 1] = [y]
        places[at : at + 1] = [index]
    row: list[tuple[int, int]] = []
    index = places[-1] if places else -1
    while index >= 0:
        row.append(pairs[index])
        index = before[index]
    return reversed(row)


def _once(items: Sequence[Hashable], low: int, high: int) -> dict[Hashable, int]:
    """The items that occur once in this range, in order, with their places."""
    places: dict[Hashable, int] = {}
    for place in range(low, high):
        item = items[place]
        places[item] = -1 if item in places else place
    return {item: place for item, place in places.items() if place >= 0}


def with_context(places: Sequence[Change], size: int) -> Iterator[list[Change]]:
    """Changes in groups of which `size` equal items around them do not meet."""
    group: list[Change] = []
    for change in places:
        if group and change[0] - group[-1][1] > 2 * size:
            yield group
            group = []
        group.append(change)
    if group:
        yield group
