"""How much there is to read: lines of code proper, physical lines, syntax nodes and files.

    python -m scripts.size

Code proper is what is left without blanks, comments and docstrings. What is no Python is counted by
kind: TypeScript, templates, data: code that moves there is still there.
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tokenize
from pathlib import Path
from typing import NamedTuple

TOP = Path(__file__).resolve().parents[1]
_NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
    tokenize.ENDMARKER,
}  # fmt: skip
_SOURCES = ("src", "packages", "worlds")
_KINDS = {
    "TypeScript": (("viewer",), {".ts", ".tsx", ".js", ".css", ".html"}),
    "templates, CSS, JS": (_SOURCES, {".j2", ".html", ".css", ".js", ".md", ".svg", ".tex"}),
    "YAML, JSON": (_SOURCES, {".yaml", ".yml", ".json", ".toml", ".csv", ".txt"}),
}
"""Of what is no Python: in which top folders, and how its files' names end."""


class Size(NamedTuple):
    """What is counted of some Python files."""

    code: int = 0
    lines: int = 0
    nodes: int = 0
    files: int = 0


def size_of(source: str) -> Size:
    """Count one source: a bare string is a docstring wherever it stands."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    words: set[int] = set()
    for node in nodes:
        match node:
            case ast.Expr(value=ast.Constant(value=str())):
                words.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NO_CODE:
            code.update(range(token.start[0], token.end[0] + 1))
    return Size(len(code - words), source.count("\n"), len(nodes), 1)


def tracked() -> list[Path]:
    """List the files of the repository, those not yet added too."""
    words = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    out = subprocess.run(words, cwd=TOP, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return [Path(name) for name in sorted(set(out.split("\0"))) if name and (TOP / name).is_file()]


def name_row(at: Path) -> str:
    """Name the row of a Python file: a package of isolux, a distribution, or the top folder."""
    match at.parts:
        case "src", "isolux", name, _, *_:
            return f"src/isolux/{name}"
        case "packages", name, *_:
            return f"packages/{name}"
        case [name, *_]:
            return name
    return ""


def total(sizes: list[Size]) -> Size:
    """Add sizes up."""
    return Size(*map(sum, zip(*sizes, strict=True))) if sizes else Size()


def main() -> int:
    """Print the table by package, and the lines of what is no Python."""
    files = tracked()
    rows: dict[str, list[Size]] = {}
    for at in files:
        if at.suffix == ".py":
            size = size_of((TOP / at).read_text(encoding="utf-8"))
            rows.setdefault(name_row(at), []).append(size)
    sums = {name: total(sizes) for name, sizes in rows.items()}
    ours = [size for name, size in sums.items() if name.split("/")[0] in ("src", "packages")]
    table = [*sorted(sums.items()), ("src and packages", total(ours))]
    _say(f"{'':<24}{'code':>9}{'physical':>10}{'nodes':>11}{'files':>7}")
    for name, size in table:
        _say(f"{name:<24}{size.code:>9,}{size.lines:>10,}{size.nodes:>11,}{size.files:>7,}")
    for kind, (folders, suffixes) in _KINDS.items():
        inside = [at for at in files if at.parts[0] in folders and at.suffix in suffixes]
        n = sum((TOP / at).read_bytes().count(b"\n") for at in inside)
        _say(f"{kind:<24}{'':>9}{n:>10,}{'':>11}{len(inside):>7,}")
    return 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
