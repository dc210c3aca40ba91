"""How often the embedded demo model does small tasks right: the real agent and tools, effects checked, one attempt each.

    python bench/local_eval.py MODELS_DIR [--set dev|held-out|fresh|demo] [--repeat N]

The development tasks were used to tune the shots of llm/local/tiny_prompts.py; the held-out ones were written before and only counted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from handwork import Manus
from handwork.config import load_settings
from handwork.llm.asking import close_model
from handwork.llm.base import Model
from handwork.llm.local.engine import open_local_model
from handwork.llm.local.tiny_demo import DEMO_CONTENT, DEMO_FILE, DEMO_TASK
from handwork.session import Session


@dataclass(frozen=True)
class Task:
    """`before` and `after` are files and their text (outer white space aside); `answer` must stand in the output."""

    text: str
    after: Mapping[str, str] = field(default_factory=dict)
    before: Mapping[str, str] = field(default_factory=dict)
    answer: str = ""
    fails: bool = False
    """The right end is a refusal, and nothing changes."""


DEVELOPMENT = (
    Task("Create a file shop.txt with the content milk and eggs", {"shop.txt": "milk and eggs"}),
    Task("Create a file called motto.txt with the content: Never give up", {"motto.txt": "Never give up"}),
    Task("Write 'the dog ran' to animals.txt", {"animals.txt": "the dog ran"}),
    Task("Save the text pay rent in bills.txt", {"bills.txt": "pay rent"}),
    Task("Make a file cities.txt that contains Paris, Rome and Oslo", {"cities.txt": "Paris, Rome and Oslo"}),
    Task('Create settings.json with the content {"level": 3}', {"settings.json": '{"level": 3}'}),
    Task("Create a file hi.py that prints Hi there", {"hi.py": 'print("Hi there")'}),
    Task("Read info.txt", before={"info.txt": "The door is green"}, answer="The door is green"),
    Task("Show me the file memo.txt", before={"memo.txt": "Lunch at one"}, answer="Lunch at one"),
    Task("What is written in names.txt?", before={"names.txt": "Ada and Bob"}, answer="Ada and Bob"),
    Task("Calculate 23 + 19", answer="42"),
    Task("What is 15 times 12?", answer="180"),
    Task("Compute 100 / 8", answer="12.5"),
    Task("How much is 77 minus 31?", answer="46"),
    Task("Append the line 'wash car' to chores.txt", {"chores.txt": "cook\nwash car"}, {"chores.txt": "cook"}),
    Task("Add bananas to list.txt", {"list.txt": "apples\nbananas"}, {"list.txt": "apples\n"}),
    Task("Create x.txt with the content one, then create y.txt with the content two", {"x.txt": "one", "y.txt": "two"}),
    Task("Write good night to bed.txt, then read bed.txt", {"bed.txt": "good night"}, answer="good night"),
    Task("Show gone.txt", fails=True),
    Task("Write new words to old.txt", {"old.txt": "old words"}, {"old.txt": "old words"}, fails=True),
)
HELD_OUT = (
    Task("Create a file called greeting.txt with the content Good morning", {"greeting.txt": "Good morning"}),
    Task("Write 'the cat sat' to story.txt", {"story.txt": "the cat sat"}),
    Task("Make a file colors.txt that contains red, green and blue", {"colors.txt": "red, green and blue"}),
    Task("Save the text buy bread in todo.txt", {"todo.txt": "buy bread"}),
    Task('Create config.json with the content {"debug": true}', {"config.json": '{"debug": true}'}),
    Task("Create a file hello.py that prints Hello World", {"hello.py": 'print("Hello World")'}),
    Task("Read report.txt", before={"report.txt": "Sales went up"}, answer="Sales went up"),
    Task("Show me what is in memo.txt", before={"memo.txt": "Tea at four"}, answer="Tea at four"),
    Task("What does log.txt say?", before={"log.txt": "all is well"}, answer="all is well"),
    Task("Calculate 17*23", answer="391"),
    Task("What is 144 divided by 12?", answer="12"),
    Task("Compute 3.5 + 2.25", answer="5.75"),
    Task("Add 58 and 67", answer="125"),
    Task("Append the line 'call mom' to todo.txt", {"todo.txt": "buy bread\ncall mom"}, {"todo.txt": "buy bread\n"}),
    Task("Add milk to shopping.txt", {"shopping.txt": "eggs\nmilk"}, {"shopping.txt": "eggs"}),
    Task(
        "Create one.txt with the content first, then create two.txt with the content second",
        {"one.txt": "first", "two.txt": "second"},
    ),
    Task("Write hello to a.txt, then read a.txt", {"a.txt": "hello"}, answer="hello"),
    Task("Create list.txt with the content apples, then append pears to list.txt", {"list.txt": "apples\npears"}),
    Task("Open notes.md and show it to me", before={"notes.md": "Ideas for spring"}, answer="Ideas for spring"),
    Task("Put the sentence Tomorrow it will rain. into weather.txt", {"weather.txt": "Tomorrow it will rain."}),
    Task(
        "Create poem.txt with the content: Roses are red, violets are blue",
        {"poem.txt": "Roses are red, violets are blue"},
    ),
    Task("Calculate 12 * 12, then write done to result.txt", {"result.txt": "done"}, answer="144"),
    Task("Show memo.txt", before={"memo.txt": "Keep me"}, after={"memo.txt": "Keep me"}, answer="Keep me"),
    Task("Read missing.txt", fails=True),
)
FRESH = (
    Task("Create a file named song.txt with the content: La la la", {"song.txt": "La la la"}),
    Task("Make a file pets.txt with the text dog and hamster", {"pets.txt": "dog and hamster"}),
    Task("Write the words open at nine to hours.txt", {"hours.txt": "open at nine"}),
    Task("Store 'blue whale' in whale.txt", {"whale.txt": "blue whale"}),
    Task('Create user.json with the content {"name": "Eve"}', {"user.json": '{"name": "Eve"}'}),
    Task("Create a file start.py that prints Starting now", {"start.py": 'print("Starting now")'}),
    Task("Please create address.txt containing 5 Main Street", {"address.txt": "5 Main Street"}),
    Task("Read rules.txt", before={"rules.txt": "Be kind"}, answer="Be kind"),
    Task("Show the contents of menu.txt", before={"menu.txt": "Soup and salad"}, answer="Soup and salad"),
    Task("What is in plan.md?", before={"plan.md": "Step one: rest"}, answer="Step one: rest"),
    Task("Print out diary.txt", before={"diary.txt": "It snowed"}, answer="It snowed"),
    Task("Calculate 41 * 19", answer="779"),
    Task("What is 250 minus 75?", answer="175"),
    Task("How much is 9 times 8?", answer="72"),
    Task("Sum 19 and 23", answer="42"),
    Task("Compute 81 / 9", answer="9"),
    Task("Append the line 'see dentist' to week.txt", {"week.txt": "work\nsee dentist"}, {"week.txt": "work\n"}),
    Task("Add rice to pantry.txt", {"pantry.txt": "beans\nrice"}, {"pantry.txt": "beans"}),
    Task(
        "Create red.txt with the content rose, then create yellow.txt with the content tulip",
        {"red.txt": "rose", "yellow.txt": "tulip"},
    ),
    Task("Write good luck to card.txt and then read card.txt", {"card.txt": "good luck"}, answer="good luck"),
    Task("Calculate 7 * 6, then create answer.txt with the content done", {"answer.txt": "done"}, answer="42"),
    Task("Display nothing.txt", fails=True),
    Task("Create taken.txt with the content new", {"taken.txt": "old"}, {"taken.txt": "old"}, fails=True),
    Task("Read one.txt, then read two.txt", before={"one.txt": "uno", "two.txt": "due"}, answer="due"),
)
"""Written after the last change to the shots, and counted once."""
DEMO = (Task(DEMO_TASK, {DEMO_FILE: DEMO_CONTENT}),)
SETS = {"dev": DEVELOPMENT, "held-out": HELD_OUT, "fresh": FRESH, "demo": DEMO}


def files_of(folder: Path) -> dict[str, str]:
    """The files of a workspace and their text."""
    return {path.name: path.read_text().strip() for path in sorted(folder.iterdir()) if path.is_file()}


async def attempt(task: Task, model: Model, home: Path) -> tuple[bool, str, float]:
    """One run in a fresh workspace: whether its effects are right, what was seen, and its seconds."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Path(folder)
        for name, text in task.before.items():
            (workspace / name).write_text(text)
        started = time.monotonic()
        settings = load_settings(environ={"HANDWORK_HOME": str(home)})
        async with Session.open(settings, workspace) as session:
            result = await Manus(llm=model, session=session, settings=settings).run(task.text)
        seconds = time.monotonic() - started
        found = files_of(workspace)
        expected = dict(task.before) | dict(task.after)
        right = (
            result.status == ("failed" if task.fails else "finished")
            and found == {name: text.strip() for name, text in expected.items()}
            and task.answer in result.output
        )
        return right, f"{result.status}: {result.output!r} {json.dumps(found)} {result.error or ''}", seconds


async def evaluate(tasks: tuple[Task, ...], models_dir: Path, repeat: int) -> None:
    """Run and count."""
    model = open_local_model("smollm2-135m", models_dir)
    right, times = 0, []
    with tempfile.TemporaryDirectory() as home:
        for task in tasks * repeat:
            good, seen, seconds = await attempt(task, model, Path(home))
            right += good
            times.append(seconds)
            print(
                f"{'ok  ' if good else 'MISS'} {seconds:5.1f} s  {task.text}" + ("" if good else f"\n       {seen}"),
                flush=True,
            )
    await close_model(model)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{right} of {len(times)} right; first {times[0]:.1f} s, median {sorted(times)[len(times) // 2]:.1f} s; {memory:.0f} MB"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models_dir", type=Path)
    parser.add_argument("--set", choices=SETS, default="fresh")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    asyncio.run(evaluate(SETS[options.set], options.models_dir, options.repeat))
