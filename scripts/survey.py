"""Measures the shape of ``src/``: files, lines, long functions, wide classes, many parameters, ``Any``, lone modules,
repeated passages.

``python scripts/survey.py [FOLDER …]`` prints one column for each folder that holds a ``src/seatrial``.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter, defaultdict
from pathlib import Path

_LONG_FUNCTION, _WIDE_CLASS, _MANY_PARAMETERS, _SHORT_FILE, _PASSAGE, _FULLEST = 60, 15, 8, 30, 6, 5


def survey(root: Path) -> dict[str, int | str]:
    files = sorted((root / "src/seatrial").rglob("*.py"))
    trees = {file: ast.parse(file.read_text()) for file in files}
    functions = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    classes = [node for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    folders = Counter(file.parent for file in files if file.name != "__init__.py")
    return {
        "files": len(files),
        "files in the fullest folder": max(folders.values()),
        f"the {_FULLEST} fullest folders": ", ".join(
            f"{folder.relative_to(root / 'src/seatrial')} {count}" for folder, count in folders.most_common(_FULLEST)
        ),
        f"files under {_SHORT_FILE} lines": sum(
            _lines(file) < _SHORT_FILE for file in files if file.stem != "__init__"
        ),
        "lines": sum(map(_lines, files)),
        f"functions over {_LONG_FUNCTION} lines": sum(_length(node) > _LONG_FUNCTION for node in functions),
        f"classes over {_WIDE_CLASS} methods": sum(_methods(node) > _WIDE_CLASS for node in classes),
        f"functions over {_MANY_PARAMETERS} parameters": sum(
            _parameters(node) > _MANY_PARAMETERS for node in functions
        ),
        "mentions of Any": sum(_mentions_any(tree) for tree in trees.values()),
        "modules with one importer": _lone_modules(root, trees),
        "repeated passages of six lines or more": _repeated_passages(trees),
    }


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _lines(file: Path) -> int:
    return file.read_text().count("\n")


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _methods(node: ast.ClassDef) -> int:
    return sum(isinstance(member, _FUNCTIONS) for member in node.body)


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in named)


def _mentions_any(tree: ast.Module) -> int:
    return sum(isinstance(node, ast.Name) and node.id == "Any" for node in ast.walk(tree))


def _lone_modules(root: Path, trees: dict[Path, ast.Module]) -> int:
    names = {".".join(file.relative_to(root / "src").with_suffix("").parts): file for file in trees}
    importers: dict[str, set[Path]] = {name: set() for name in names}
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                for name in (node.module, *(f"{node.module}.{alias.name}" for alias in node.names)):
                    if name in importers:
                        importers[name].add(file)
    return sum(len(found) == 1 for found in importers.values())


def _repeated_passages(trees: dict[Path, ast.Module]) -> int:
    """Passages that stand in more than one place, each once and as long as it is the same everywhere. Compares code:
    without indentation, empty lines, comments, docstrings and imports, which are the same in many files."""
    files = [_code_lines(file, tree) for file, tree in trees.items()]
    places: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for number, lines in enumerate(files):
        for start in range(len(lines) - _PASSAGE + 1):
            before = lines[start - 1] if start else f"beginning of file {number}"
            places[tuple(lines[start : start + _PASSAGE])].append(before)
    return sum(len(set(before)) > 1 for before in places.values())  # the same line before: the passage began earlier


def _code_lines(file: Path, tree: ast.Module) -> list[str]:
    left_out: set[int] = set()
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or is_text:
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = ((number, line.strip()) for number, line in enumerate(file.read_text().splitlines(), 1))
    return [line for number, line in lines if line and not line.startswith("#") and number not in left_out]


def main() -> None:
    columns = [survey(Path(folder)) for folder in sys.argv[1:] or ["."]]
    for what in columns[0]:
        print(f"| {what} | {' | '.join(str(column[what]) for column in columns)} |")  # noqa: T201


if __name__ == "__main__":
    main()
