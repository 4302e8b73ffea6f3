"""What Jinja says it used against what `dbt_ripple.jinja` says it may use.

    python python/tests/jinja/rendered_macros.py FOLDER ... [--rounds N] [--seed S]

Every model, macro, materialization and test in ``.sql`` files below the folders (clones of public
projects, say) is rendered by dbt's own environment of Jinja, in which every name that a text does not
set stands for an object that notes what is done with it, and whose conditions fall as a die does. What
was called, which var and environment variable was asked for, which property of a node and which flag
was read: each has to be among the facts of the text. It prints how much was compared, and every
use that is not told; it exits with 1 where there is one.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dbt_common.clients.jinja import extract_toplevel_blocks, get_environment, get_template
from jinja2 import meta

from dbt_ripple.jinja.facts import ANY, asks, asks_the_graph, facts_of
from dbt_ripple.jinja.reads import reads_of

JINJAS_OWN: Final = frozenset(
    {"range", "dict", "lipsum", "cycler", "joiner", "namespace", "caller"}
)
BLOCKS: Final = frozenset({"macro", "materialization", "test", "data_test"})
Path_ = tuple[str, ...]


class Seen:
    """What happened in one rendering.

    Attributes:
        calls: the path of what was called, with the arguments that were plain strings.
        steps: every attribute and key that was taken of something.
    """

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.calls: set[tuple[Path_, str | None]] = set()
        self.steps: set[Path_] = set()
        self.budget = 3_000


class TooMuch(Exception):  # noqa: N818 - it says what happened
    """A rendering that does not come to an end."""


class Recorder(str):
    """Stands for a value nobody knows: a text, a relation, a list, a function."""

    __slots__ = ("_path", "_seen")

    _path: Path_
    _seen: Seen

    def __new__(cls, path: Path_, seen: Seen) -> Recorder:
        self = super().__new__(cls, "_".join(p for p in path if p.isidentifier()) or "x")
        self._path, self._seen = path, seen
        return self

    def _to(self, step: str) -> Recorder:
        self._seen.budget -= 1
        if self._seen.budget < 0:
            raise TooMuch
        path = (*self._path, step)[-12:] if len(self._path) > 40 else (*self._path, step)
        self._seen.steps.add(path)
        return Recorder(path, self._seen)

    def __getattr__(self, name: str) -> Recorder:
        if name.startswith("__") or name in ("unsafe_callable", "alters_data", "contextfunction"):
            raise AttributeError(name)
        return self._to(name)

    def __getitem__(self, key: Any) -> Any:
        return self._to(str(key) if type(key) is str else "[]")

    def __call__(self, *args: Any, **kwargs: Any) -> Recorder:
        given = args[0] if args else next(iter(kwargs.values()), None)
        self._seen.calls.add((self._path, given if type(given) is str else None))
        return self._to("()")

    def items(self) -> list[tuple[Recorder, Recorder]]:
        of = self._to("items")
        return [(of._to("()"), of._to("()"))]

    def __iter__(self) -> Iterator[Any]:
        return iter([self._to("[]") for _ in range(self._seen.rng.randint(1, 2))])

    def _die(self, *_: object) -> bool:
        return self._seen.rng.random() < 0.5

    __bool__ = __eq__ = __ne__ = __lt__ = __gt__ = __le__ = __ge__ = __contains__ = _die  # type: ignore[assignment]

    def __hash__(self) -> int:
        return hash(self._path)

    def __len__(self) -> int:
        return 2

    def __index__(self) -> int:
        return self._seen.rng.randint(0, 3)

    __int__ = __index__

    def __float__(self) -> float:
        return 1.0

    def __add__(self, other: Any) -> Any:
        return str(self) + other if isinstance(other, str) else other

    __radd__ = __sub__ = __rsub__ = __rmul__ = __mul__ = __truediv__ = __rtruediv__ = (  # type: ignore[assignment]
        lambda self, other: other
    )
    __mod__ = __floordiv__ = lambda self, other: self  # type: ignore[assignment]


def render(text: str, seen: Seen) -> None:
    """Render a text, or call the one macro that it is; raises whatever it raises."""
    context: dict[str, Any] = {}
    names = meta.find_undeclared_variables(get_environment(None).parse(text)) - JINJAS_OWN
    context = {name: Recorder((name,), seen) for name in names}
    template = get_template(text, context)
    module = template.make_module(vars=context)
    for name, value in vars(module).items():
        if name.startswith("dbt_macro__"):
            arguments = [Recorder((f"%{a}",), seen) for a in value.arguments]
            more: dict[str, Any] = {}
            if value.catch_varargs:
                arguments.append(Recorder(("varargs", "[]"), seen))
            if value.catch_kwargs:
                more["anything"] = Recorder(("kwargs", "[]"), seen)
            if value.caller:
                more["caller"] = Recorder(("caller",), seen)
            value(*arguments, **more)


def texts_in(sql: str) -> Iterator[str]:
    """The macros of a file, each as dbt keeps it; the file itself where there is none."""
    blocks = extract_toplevel_blocks(sql, allowed_blocks=set(BLOCKS), collect_raw_data=False)
    found = False
    for block in blocks:
        found = True
        yield block.full_block
    if not found and ("{{" in sql or "{%" in sql):
        yield sql


OF_OTHER_RUNS: Final = frozenset({"is_incremental", "should_full_refresh"})


def untold(text: str, seen: Seen) -> Iterator[str]:
    """What happened and is not among the facts of the text."""
    facts, reads = facts_of(text), reads_of(text, ())
    if not facts.readable:
        return
    read = reads.names | {name for name, _ in reads.parts}
    for path, given in seen.calls:
        name, said = path[-1], ".".join(path)
        own = path[0].startswith("%") or not name.isidentifier()
        own = own or (name == "keys" and name not in text)  # Python asks a mapping for them
        if not own and name not in facts.words and not facts.calls_any_macro:
            yield f"calls {said}"
        by_caller = {ANY} if facts.asked_by else set[str]()
        for function, told in (
            ("var", facts.variables | by_caller),
            ("env_var", facts.environment),
        ):
            asked = path in {(function,), ("builtins", function)}
            if asked and ANY not in told and (given is None or given not in told):
                yield f"asks for {function}({given})"
        if path[0] in OF_OTHER_RUNS and len(path) == 1 and not facts.asks_whether_it_exists():
            yield f"asks {path[0]}()"
        of_config = path in {("config", "get"), ("config", "require"), ("model", "config", "get")}
        if (
            of_config
            and not reads.everything
            and given not in read | {key for _, key in reads.parts}
        ):
            yield f"reads config.get({given})"
    for path in seen.steps:
        match path:
            case ("flags", "WHICH" | "EMPTY" as flag, *_) if not facts.asks_which_command():
                yield f"asks flags.{flag}"
            case ("flags", "FULL_REFRESH", *_) if not facts.asks_for_full_refresh():
                yield "asks flags.FULL_REFRESH"
            case ("graph", *_) if not asks(text, asks_the_graph):
                yield "reads the graph"
            case ("model", "config", name, *_) | ("model", name, *_) if not reads.everything:
                if name not in read | {"config", "get", "()"}:
                    yield f"reads {'.'.join(path)}"


@dataclass
class Result:
    """What was compared."""

    texts: int = 0
    unreadable: int = 0
    rendered: int = 0
    renderings: int = 0
    uses: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, set[str]] = field(default_factory=dict)


def compare(texts: Iterable[tuple[str, str]], rounds: int, seed: int = 1) -> Result:
    """Render each text several times, and compare; texts come with a name."""
    result = Result()
    for name, text in texts:
        result.texts += 1
        readable = facts_of(text).readable
        result.unreadable += not readable
        came_to_its_end = False
        for number in range(rounds):
            seen = Seen(random.Random(f"{seed}/{number}/{text}"))
            try:
                render(text, seen)
                came_to_its_end = True
                if not readable:
                    result.wrong.setdefault(name, set()).add("cannot be read, and dbt can")
            except TooMuch:
                result.errors["TooMuch"] += 1
            except Exception as error:
                result.errors[type(error).__name__] += 1
            result.renderings += 1
            result.uses += len(seen.calls) + len(seen.steps)
            for what in untold(text, seen):
                result.wrong.setdefault(name, set()).add(what)
        result.rendered += came_to_its_end
    return result


def of_folders(folders: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """All texts below folders."""
    for folder in folders:
        for file in sorted(folder.rglob("*.sql")):
            if "dbt_packages" in file.parts or "target" in file.parts:
                continue
            sql = file.read_text(encoding="utf-8", errors="replace")
            try:
                texts = [*texts_in(sql)]
            except Exception:  # dbt itself refuses it
                continue
            for number, text in enumerate(texts):
                yield f"{file.relative_to(folder.parent)}#{number}", text


def main() -> int:
    """Compare the texts of folders."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    result = compare(of_folders(given.folders), given.rounds, given.seed)
    for name, wrong in sorted(result.wrong.items()):
        print(f"{name}: {'; '.join(sorted(wrong))}")
    print(
        f"{result.texts} texts ({result.unreadable} that cannot be read), {result.rendered} rendered to their end, "
        f"{result.renderings} renderings, {result.uses} uses; {len(result.wrong)} texts with an untold one"
    )
    print("renderings that broke off:", dict(result.errors.most_common(8)))
    return 1 if result.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
