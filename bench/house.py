"""Measures the structure of the code: its rooms, functions, checks and classes.

``python -m bench.house [--before REV]`` reads the Python files of the working tree, and those of a revision
beside them, and writes docs/house.md.
"""

import argparse
import ast
import io
import re
import subprocess
import tarfile
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

ROOT: Final = Path(__file__).parent.parent
PAGE: Final = ROOT / "docs" / "house.md"
PARTS: Final = ("service", "accuracy", "bench", "tests")
LONG, COMPLEX, TANGLED, SHOWN, WIDTH = 40, 10, 25, 10, 105
MOST_SHORT_NAMES, MOST_ASSERTS, MOST_LOOSE, MOST_LINES = 0.3, 20, 4, 0.9
KINDS: Final = {
    "pydantic.BaseModel": "pydantic",
    "pydantic.RootModel": "pydantic",
    "pydantic_settings.BaseSettings": "pydantic",
    "typing.NamedTuple": "NamedTuple",
}
NOQA: Final = re.compile(r"# noqa(?:: *(?P<codes>[A-Z]+\d+(?:, *[A-Z]+\d+)*))?")

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.While)
_DECISIONS: Final = (*_LOOPS, ast.If, ast.IfExp, ast.ExceptHandler, ast.match_case, ast.Assert)


class CodeFunction(NamedTuple):
    """A function and the file that it stands in, its lines from ``def`` to its last one."""

    path: str
    name: str
    lines: int
    complexity: int

    @property
    def place(self) -> str:
        """Place of the function in the code."""
        return f"`{self.path}:{self.name}`"

    @property
    def has_short_name(self) -> bool:
        """True if its name is one word."""
        return "_" not in self.name.rpartition(".")[2].strip("_")

    @property
    def is_dunder(self) -> bool:
        """True if Python defines its name."""
        name = self.name.rpartition(".")[2]
        return name.startswith("__") and name.endswith("__")


class CodeFigures(NamedTuple):
    """Figures of one state of the code. Those without a part in their name are of `service`."""

    lines: Mapping[str, int]
    functions: Mapping[str, Sequence[CodeFunction]]
    comments: Counter[str]
    asserts: int
    classes: Counter[str]
    workload_checks: int
    missing_checks: int

    def count_lines(self, room: str) -> int:
        """Lines of a package or module, by its path without a suffix."""
        return sum(
            lines for path, lines in self.lines.items() if path == f"{room}.py" or path.startswith(f"{room}/")
        )

    def list_rooms(self, package: str) -> set[str]:
        """Returns the paths of the packages and modules directly in a package."""
        inside = (path for path in self.lines if path.startswith(f"{package}/"))
        return {f"{package}/{path.split('/')[package.count('/') + 1].removesuffix('.py')}" for path in inside}

    def count_loose(self, package: str) -> int:
        """Returns the files directly in a package."""
        paths = map(Path, self.lines)
        return sum(path.parent == Path(package) and path.name != "__init__.py" for path in paths)

    def count_longer(self, part: str, lines: int = LONG) -> int:
        """Returns the functions with more lines than this."""
        return sum(one.lines > lines for one in self.functions[part])

    def count_above(self, part: str, complexity: int) -> int:
        """Returns the functions that are more complex than this."""
        return sum(one.complexity > complexity for one in self.functions[part])

    def count_short_names(self, part: str) -> int:
        """Returns the functions whose name is one word, without those that Python names."""
        return sum(one.has_short_name and not one.is_dunder for one in self.functions[part])

    def share_short_names(self, part: str) -> float:
        """Returns their share of all functions that Python does not name."""
        return self.count_short_names(part) / sum(not one.is_dunder for one in self.functions[part])


class FigureLine(NamedTuple):
    """A line of a table: its name and how it is read off a house."""

    name: str
    show: Callable[[CodeFigures], str]


class FigureBound(NamedTuple):
    """A limit that the project sets for a figure."""

    figure: FigureLine
    limit: str
    is_met: Callable[[CodeFigures], bool]


def _read_tree() -> dict[str, str]:
    """Python files of the working tree by their paths."""
    paths = (path for part in PARTS for path in sorted((ROOT / part).rglob("*.py")))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _run_git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True).stdout  # noqa: S607


def _read_revision(revision: str) -> dict[str, str]:
    """Python files of a revision by their paths."""
    texts = {}
    with tarfile.open(fileobj=io.BytesIO(_run_git("archive", "--format=tar", revision))) as archive:
        for member in archive:
            is_ours = member.name.split("/")[0] in PARTS and member.name.endswith(".py")
            if is_ours and (file := archive.extractfile(member)) is not None:
                texts[member.name] = file.read().decode()
    return texts


def _count_decisions(node: ast.AST) -> int:
    """Returns the decisions in a node, without those of the functions and classes defined in it."""
    if isinstance(node, _DEFINITIONS):
        return 0
    own = int(isinstance(node, _DECISIONS))
    if isinstance(node, ast.BoolOp):
        own = len(node.values) - 1
    elif isinstance(node, ast.comprehension):
        own = 1 + len(node.ifs)
    return own + sum(map(_count_decisions, ast.iter_child_nodes(node)))


def _list_functions(node: ast.AST, scope: str = "") -> Iterator[tuple[str, FunctionNode]]:
    """Yields all functions in a node, including methods and nested ones, by their qualified names."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{scope}{child.name}", child
        inner = f"{scope}{child.name}." if isinstance(child, _DEFINITIONS) else scope
        yield from _list_functions(child, inner)


def _measure_functions(path: str, tree: ast.Module) -> Iterator[CodeFunction]:
    for name, node in _list_functions(tree):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        yield CodeFunction(path, name, lines, 1 + sum(map(_count_decisions, node.body)))


def _list_codes(texts: Iterable[str]) -> Iterator[str]:
    """Codes of the ``noqa`` comments, one after another."""
    for found in (found for text in texts for found in NOQA.finditer(text)):
        yield from re.split(r", *", found["codes"] or "all")


def _name_module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _list_imports(module: str, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """Returns the names that a module imports, and their names there."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield f"{module}.{alias.asname or alias.name}", f"{node.module}.{alias.name}"


def _list_bases(module: str, node: ast.ClassDef) -> Iterator[str]:
    """Returns the bases of a class, as named in its module."""
    for base in node.bases:
        yield f"{module}.{ast.unparse(base.value if isinstance(base, ast.Subscript) else base)}"


def _count_classes(trees: Mapping[str, ast.Module]) -> Counter[str]:
    """Classes by kind: pydantic models and named tuples by their ancestors, dataclasses by decorator."""
    imports, bases, counts = dict[str, str](), dict[str, list[str]](), Counter[str]()
    for path, tree in trees.items():
        module = _name_module(path)
        imports.update(_list_imports(module, tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases.setdefault(f"{module}.{node.name}", []).extend(_list_bases(module, node))
                decorators = (ast.unparse(one).partition("(")[0] for one in node.decorator_list)
                counts["dataclass"] += "dataclass" in {one.rpartition(".")[2] for one in decorators}

    def find_kind(name: str) -> str | None:
        while name in imports and name not in bases:
            name = imports[name]
        kinds = (find_kind(base) for base in bases.get(name, ()))
        return KINDS.get(name) or next((kind for kind in kinds if kind), None)

    counts.update(kind for kind in map(find_kind, bases) if kind)
    return counts


def _is_workload_check(node: ast.AST) -> bool:
    """Returns true if a node checks for an instance of a kind of workload."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"):
        return False
    return re.search(r"Workload(Input)?\b", ast.unparse(node.args[1])) is not None


def _is_missing_check(node: ast.AST) -> bool:
    """Returns true if a node compares something with ``MISSING``."""
    return isinstance(node, ast.Compare) and any(
        ast.unparse(one).rpartition(".")[2] == "MISSING" for one in (node.left, *node.comparators)
    )


def _measure(texts: Mapping[str, str]) -> CodeFigures:
    """Computes all figures of a state of the code."""
    trees = {path: ast.parse(text, path) for path, text in texts.items()}
    service = {path: tree for path, tree in trees.items() if path.startswith("service/")}
    functions: dict[str, list[CodeFunction]] = {part: [] for part in PARTS}
    for path, tree in trees.items():
        functions[path.split("/")[0]].extend(_measure_functions(path, tree))
    nodes = [node for tree in service.values() for node in ast.walk(tree)]
    estimates = [tree for path, tree in service.items() if path.startswith("service/estimates/")]
    return CodeFigures(
        lines={path: text.count("\n") for path, text in texts.items()},
        functions=functions,
        comments=Counter(_list_codes(texts[path] for path in service)),
        asserts=sum(isinstance(node, ast.Assert) for node in nodes),
        classes=_count_classes(service),
        workload_checks=sum(map(_is_workload_check, nodes)),
        missing_checks=sum(any(map(_is_missing_check, ast.walk(tree))) for tree in estimates),
    )


def _list_bounds(before: CodeFigures | None) -> Iterator[FigureBound]:
    """Returns the bounds of the project. The one on lines needs another state to compare with."""
    yield FigureBound(
        FigureLine("functions named by one word", lambda house: f"{house.share_short_names('service'):.1%}"),
        f"at most {MOST_SHORT_NAMES:.0%}",
        lambda house: house.share_short_names("service") <= MOST_SHORT_NAMES,
    )
    yield FigureBound(
        FigureLine("`assert` statements", lambda house: f"{house.asserts}"),
        f"at most {MOST_ASSERTS}",
        lambda house: house.asserts <= MOST_ASSERTS,
    )
    yield FigureBound(
        FigureLine("`# noqa: S101` comments", lambda house: f"{house.comments['S101']}"),
        "none",
        lambda house: not house.comments["S101"],
    )
    yield FigureBound(
        FigureLine("loose files in `service/`", lambda house: f"{house.count_loose('service')}"),
        f"at most {MOST_LOOSE}",
        lambda house: house.count_loose("service") <= MOST_LOOSE,
    )
    yield FigureBound(
        FigureLine(
            f"functions above complexity {TANGLED}", lambda house: f"{house.count_above('service', TANGLED)}"
        ),
        "none",
        lambda house: not house.count_above("service", TANGLED),
    )
    if before is not None:
        most = int(MOST_LINES * before.count_lines("service"))
        yield FigureBound(
            FigureLine("lines of `service`", lambda house: f"{house.count_lines('service'):,}"),
            f"a tenth fewer: at most {most:,}",
            lambda house: house.count_lines("service") <= most,
        )


def _list_function_figures(part: str) -> Iterator[FigureLine]:
    """Figures of the functions of a part."""
    yield FigureLine(f"functions of `{part}`", lambda house: f"{len(house.functions[part]):,}")
    yield FigureLine(f"over {LONG} lines", lambda house: f"{house.count_longer(part):,}")
    yield FigureLine(
        "their share", lambda house: f"{house.count_longer(part) / max(len(house.functions[part]), 1):.1%}"
    )
    yield FigureLine(f"above complexity {COMPLEX}", lambda house: f"{house.count_above(part, COMPLEX):,}")
    yield FigureLine(f"above complexity {TANGLED}", lambda house: f"{house.count_above(part, TANGLED):,}")
    if part == "service":
        yield FigureLine("named by one word", lambda house: f"{house.count_short_names(part):,}")
        yield FigureLine("their share", lambda house: f"{house.share_short_names(part):.1%}")


def _make_lines_figure(room: str) -> FigureLine:
    """Returns the lines of a room, empty if a state does not have it."""
    return FigureLine(f"`{room}`", lambda house: f"{lines:,}" if (lines := house.count_lines(room)) else "")


def _make_code_figure(code: str) -> FigureLine:
    return FigureLine(f"`# noqa: {code}`", lambda house: f"{house.comments[code]:,}")


def _list_room_figures(houses: Iterable[CodeFigures], package: str) -> Iterator[FigureLine]:
    """Lines of each room of a package that any of the houses has."""
    rooms = {room for house in houses for room in house.list_rooms(package)}
    yield from map(_make_lines_figure, sorted(rooms))


def _list_part_figures() -> Iterator[FigureLine]:
    """Returns the lines of each part, and of the two between which code moves."""
    yield from map(_make_lines_figure, PARTS)
    yield FigureLine(
        "`service` and `accuracy`", lambda house: f"{sum(map(house.count_lines, ('service', 'accuracy'))):,}"
    )


def _list_loose_figures() -> Iterator[FigureLine]:
    """Files outside of the rooms of a package."""
    yield FigureLine("loose files in `service/`", lambda house: f"{house.count_loose('service')}")
    yield FigureLine(
        "loose files in `service/planning/`", lambda house: f"{house.count_loose('service/planning')}"
    )


def _list_check_figures(houses: Iterable[CodeFigures]) -> Iterator[FigureLine]:
    """Figures of comments, checks and classes."""
    codes = {code for house in houses for code in house.comments} - {"S101"}
    yield from map(_make_code_figure, ["S101", *sorted(codes)])
    yield FigureLine("`# noqa`, all codes", lambda house: f"{house.comments.total():,}")
    yield FigureLine("`assert` statements", lambda house: f"{house.asserts:,}")
    yield FigureLine("pydantic models", lambda house: f"{house.classes['pydantic']:,}")
    yield FigureLine("named tuples", lambda house: f"{house.classes['NamedTuple']:,}")
    yield FigureLine("dataclasses", lambda house: f"{house.classes['dataclass']:,}")
    yield FigureLine("`isinstance` of a kind of workload", lambda house: f"{house.workload_checks:,}")
    yield FigureLine(
        "files of `service/estimates` that test `MISSING`", lambda house: f"{house.missing_checks}"
    )


def _write_table(houses: Mapping[str, CodeFigures], figures: Iterable[FigureLine]) -> Iterator[str]:
    """A table with one column for each house."""
    yield f"| | {' | '.join(houses)} |"
    yield f"|---|{'---:|' * len(houses)}"
    for figure in figures:
        yield f"| {figure.name} | {' | '.join(map(figure.show, houses.values()))} |"
    yield ""


def _write_highest(houses: Mapping[str, CodeFigures], field: Callable[[CodeFunction], int]) -> Iterator[str]:
    """The functions of `service` with the highest values of a field, of each house."""
    for name, house in houses.items():
        yield f"| {name} | |"
        yield "|---|---:|"
        for one in sorted(house.functions["service"], key=lambda one: (-field(one), one.place))[:SHOWN]:
            yield f"| {one.place} | {field(one)} |"
        yield ""


def _write_bounds(houses: Mapping[str, CodeFigures], bounds: Iterable[FigureBound]) -> Iterator[str]:
    """Returns the bounds, the measured figures and the result."""
    yield f"| | bound | {' | '.join(houses)} | |"
    yield f"|---|---:|{'---:|' * len(houses)}---|"
    met, unmet = list[str](), list[str]()
    for bound in bounds:
        is_met = bound.is_met(houses["now"])
        shown = " | ".join(map(bound.figure.show, houses.values()))
        yield f"| {bound.figure.name} | {bound.limit} | {shown} | {'met' if is_met else 'not yet'} |"
        (met if is_met else unmet).append(bound.figure.name)
    yield ""
    yield from textwrap.wrap(f"Bounds that are met: {', '.join(met) or 'none'}.", WIDTH)
    yield ""
    yield from textwrap.wrap(f"Bounds that are not met yet: {', '.join(unmet) or 'none'}.", WIDTH)
    yield ""


def _write_page(houses: Mapping[str, CodeFigures], revision: str | None) -> Iterator[str]:
    """All lines of the page."""
    yield from (
        "# Structure of the code",
        "",
        "`python -m bench.house [--before REV]` writes this page. The page counts the lines of each package,",
        "the length and complexity of functions, and the checks and classes that the code relies on.",
    )
    yield (
        "`now` is the working tree."
        if revision is None
        else f"`before` is `{revision}`; `now` is the working tree."
    )
    yield from ("", "## Bounds", "", "The project holds `service` to these bounds.", "")
    yield from _write_bounds(houses, _list_bounds(houses.get("before")))
    yield from (
        "## Lines by room",
        "",
        "A room is a package or a module. Blank lines and comments count. Code that moves from `service` to",
        "`accuracy` lowers the lines of `service`, and leaves those of the two together as they are.",
        "",
    )
    yield from _write_table(houses, _list_part_figures())
    yield from _write_table(houses, _list_room_figures(houses.values(), "service"))
    yield from _write_table(houses, _list_room_figures(houses.values(), "service/planning"))
    yield from ("A loose file stands directly in a package. `__init__.py` is not one.", "")
    yield from _write_table(houses, _list_loose_figures())
    yield from (
        "## Functions",
        "",
        "Every `def` is a function: methods, properties and nested functions too. The lines of a function",
        "run from `def` to the end of its body. Its complexity is one more than its decisions: each `if`,",
        "`elif`, loop, `except`, `case`, `assert` and conditional expression, each `for` and `if` of a",
        "comprehension, and each `and` and `or`. The decisions of a nested function are its own, not those",
        "of the function around it. The decisions of a lambda are those of the function that it stands in.",
        "A name is one word if there is no underscore inside it. The share leaves out methods that Python",
        "names, as `__len__`.",
        "",
    )
    for part in ("service", "accuracy"):
        yield from _write_table(houses, _list_function_figures(part))
    yield from ("The longest functions of `service`, in lines:", "")
    yield from _write_highest(houses, lambda one: one.lines)
    yield from ("The most complex functions of `service`:", "")
    yield from _write_highest(houses, lambda one: one.complexity)
    yield from (
        "## Comments, checks and classes",
        "",
        "These figures are of `service`. A comment with several codes counts once for each. A class counts",
        "as a pydantic model or a named tuple if one of its ancestors does. A dataclass has the decorator",
        "itself.",
        "",
    )
    yield from _write_table(houses, _list_check_figures(houses.values()))


def main() -> None:
    """Measure, and write the page."""
    parser = argparse.ArgumentParser(prog="house", description=__doc__.splitlines()[0])
    parser.add_argument("--before", metavar="REV", help="a revision to show beside the working tree")
    given = parser.parse_args()
    houses = {"now": _measure(_read_tree())}
    revision: str | None = None
    if given.before is not None:
        houses = {"before": _measure(_read_revision(given.before)), **houses}
        revision = _run_git("rev-parse", "--short", given.before).decode().strip()
    PAGE.write_text("\n".join(_write_page(houses, revision)).rstrip() + "\n", encoding="utf-8")
    for line in _write_bounds(houses, _list_bounds(houses.get("before"))):
        print(line)


if __name__ == "__main__":
    main()
