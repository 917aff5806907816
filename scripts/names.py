"""Count the names that say nothing, by package, and fail where there are more than allowed.

    python -m scripts.names

Reads the syntax trees of src, packages and worlds. Counted are the names that code binds:
variables, parameters, loop and comprehension targets, fields, functions, classes and modules. The
rules and the words to use instead are in docs/glossary.md.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from scripts import size

_BARE_WORDS = """
about above added afar again ahead alike alone among anyone apart asked at away begun below beside
both brought chosen come counted done doubts drawn each either elsewhere ends enough every
everyone everything far farthest few fewer fewest followed found four given gone held here how
joined judged keeps kept kind kinds known lacking least left less listed lone looked lost made
many marked meant measured met mine more most moved much named needed neither nobody none nothing
noughts numbered of on once one ones only onto other others ours own part parted parts passed
place placed places plain injected put ran rest said same seen sent several shown side sides silent
slips so some something strange such sure taken than that theirs them then there these they thing
things this those three thus till together told torn tried turned twice two unanswered unlike
unseen until unto used wanted went what whatever when where whether which who whoever whole whom
whose why within without worth wrong yours
"""
BARE_WORDS = frozenset(_BARE_WORDS.split())
"""Participles, adverbs, prepositions, pronouns, number words: without a noun they name nothing."""

VAGUE_NOUNS = frozenset({"data", "value", "result", "item", "info"})
"""Enough for a reader who sees the whole life of the name: `MAX_BLOCK_LINES` lines."""

MAX_BLOCK_LINES = 3

EXCEPTIONS: dict[tuple[str, str], str] = {
    # (name, part of the path) or (name, "field"): why it may be used there
    ("by", ""): "the attributes that groups are formed by, as in data frame libraries",
    ("found", "core/errors.py"): "a field of every error, printed",
    ("where", "core/errors.py"): "a field of every error, printed",
    ("left", "/geometry/"): "the edge of a box",
    ("kind", "field"): "a column of stored tables",
    ("info", "field"): "what a plugin or dataset says about itself",
    ("info", "/plausibility/"): "the INFO that every check has",
    ("value", "field"): "a column of stored tables",
    ("rest", "match"): "the remaining items of a pattern",
}

NOUNS_ENDING_IN_ED = frozenset({"bed", "feed", "need", "red", "seed", "shed", "speed", "weed"})
_NOUNS_ENDING_IN_ING = """
binning building ceiling clustering crossing drawing embedding encoding finding heading king
landing learning listing mapping matching painting ranking rating reading ring sampling setting
sibling spelling standing string thing timing training warning
"""
NOUNS_ENDING_IN_ING = frozenset(_NOUNS_ENDING_IN_ING.split())


class Ceiling(NamedTuple):
    """How many of each are allowed in a package."""

    bare: int = 0
    vague: int = 0
    repeated_classes: int = 0
    participles: int = 0
    skips: int = 0


CEILINGS: dict[str, Ceiling] = {
    "packages/curate": Ceiling(19, 17, 0, 0, 3),
    "src": Ceiling(5, 2, 0, 0, 0),
    "src/isolux/analyses": Ceiling(3, 16, 0, 0, 0),
    "src/isolux/cards": Ceiling(2, 12, 0, 0, 0),
    "src/isolux/checks": Ceiling(3, 13, 0, 0, 0),
    "src/isolux/cli": Ceiling(5, 10, 0, 0, 0),
    "src/isolux/datasets": Ceiling(2, 32, 0, 1, 0),
    "src/isolux/derive": Ceiling(5, 8, 0, 0, 0),
    "src/isolux/disparity": Ceiling(2, 10, 0, 1, 0),
    "src/isolux/engine": Ceiling(3, 0, 0, 0, 0),
    "src/isolux/io": Ceiling(2, 0, 0, 0, 1),
    "src/isolux/models": Ceiling(5, 12, 1, 3, 0),
    "src/isolux/papers": Ceiling(1, 5, 0, 0, 0),
    "src/isolux/people": Ceiling(1, 1, 0, 0, 0),
    "src/isolux/policy": Ceiling(3, 0, 0, 0, 0),
    "src/isolux/predictions": Ceiling(2, 20, 0, 0, 0),
    "src/isolux/report": Ceiling(8, 1, 0, 0, 0),
    "src/isolux/statements": Ceiling(5, 0, 0, 0, 0),
    "src/isolux/stats": Ceiling(0, 0, 0, 1, 1),
    "src/isolux/tasks": Ceiling(13, 27, 0, 1, 0),
    "src/isolux/api": Ceiling(16, 6, 0, 1, 0),
    "src/isolux/core": Ceiling(9, 2, 0, 1, 0),
    "worlds": Ceiling(40, 0, 1, 1, 0),
}
"""A ratchet: lower a row when its package is renamed; a package without a row may have none."""


class Binding(NamedTuple):
    """One place where a name is bound."""

    name: str
    line: int
    role: str  # module, class, function, field, parameter, variable, match or import
    n_lines: int | None  # to the name's last use in its scope; None outside functions


class Source(NamedTuple):
    """What one file binds."""

    path: str
    bindings: list[Binding]
    n_skips: int


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Binder(ast.NodeVisitor):
    """Collects the bindings of a tree."""

    def __init__(self) -> None:
        self.bindings: list[Binding] = []
        self._scopes: list[tuple[ast.AST, dict[str, int]]] = []

    def visit(self, node: ast.AST) -> None:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self._add(name, node, "function")
            case ast.ClassDef(name=name):
                self._add(name, node, "class")
            case ast.Name(id=name, ctx=ast.Store()):
                self._add(name, node, "variable")
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                self._add(name, node, "field")
            case ast.arg(arg=name):
                self._add(name, node, "parameter")
            case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)):
                self._add(name, node, "import" if isinstance(node, ast.alias) else "variable")
            case (
                ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                self._add(name, node, "match")
        is_scope = isinstance(node, (*_FUNCTIONS, *_COMPREHENSIONS, ast.ClassDef))
        if is_scope:
            self._scopes.append((node, _last_lines(node)))
        self.generic_visit(node)
        if is_scope:
            self._scopes.pop()

    def _add(self, name: str, node: ast.AST, role: str) -> None:
        line: int = getattr(node, "lineno", 0)
        scope, last_lines = self._scopes[-1] if self._scopes else (None, {})
        n_lines = None
        if isinstance(scope, ast.ClassDef) and role == "variable":
            role = "field"
        elif role in {"variable", "match"} and scope is not None:
            n_lines = last_lines.get(name, line) - line + 1
        elif role == "parameter" and isinstance(scope, _FUNCTIONS):
            n_lines = last_lines.get(name, line) - _first_line(scope) + 1
        self.bindings.append(Binding(name, line, role, n_lines))


def _last_lines(scope: ast.AST) -> dict[str, int]:
    lines: dict[str, int] = {}
    for node in ast.walk(scope):
        if isinstance(node, ast.Name):
            lines[node.id] = max(node.lineno, lines.get(node.id, 0))
    return lines


def _first_line(function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> int:
    """Find where the body begins, after the docstring."""
    if isinstance(function, ast.Lambda):
        return function.body.lineno
    body = function.body[ast.get_docstring(function) is not None :] or function.body
    return body[0].lineno


def read_source(path: Path, text: str) -> Source:
    """List what a file binds, its own name included."""
    binder = _Binder()
    binder.visit(ast.parse(text))
    module = path.parent.name if path.stem == "__init__" else path.stem
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [token.string for token in tokens if token.type == tokenize.COMMENT]
    return Source(
        path.as_posix(),
        [Binding(module, 1, "module", None), *binder.bindings],
        sum("fmt: skip" in comment for comment in comments),
    )


def is_excepted(word: str, binding: Binding, path: str) -> bool:
    """Say whether a name on the list may be used in this place."""
    return any((word, part) in EXCEPTIONS for part in (binding.role, "")) or any(
        word == name and "/" in part and part in path for name, part in EXCEPTIONS
    )


def is_bare(binding: Binding, path: str) -> bool:
    """Say whether a name is one word that names nothing."""
    word = binding.name.strip("_").lower()
    return word in BARE_WORDS and not is_excepted(word, binding, path)


def is_vague(binding: Binding, path: str) -> bool:
    """Say whether a name is a vague noun that lives for more than a few lines."""
    word = binding.name.strip("_").lower()
    is_short = binding.n_lines is not None and binding.n_lines <= MAX_BLOCK_LINES
    return word in VAGUE_NOUNS and not is_short and not is_excepted(word, binding, path)


def is_participle(binding: Binding) -> bool:
    """Say whether the name of a class or module is a participle or another word of the list."""
    word = binding.name.strip("_")
    if binding.role not in {"class", "module"} or re.search(r"_|.[A-Z]", word):
        return False
    word = word.lower()
    if binding.role == "class" and word.endswith("ing"):
        return word not in NOUNS_ENDING_IN_ING
    return word in BARE_WORDS or (word.endswith("ed") and word not in NOUNS_ENDING_IN_ED)


class Counts(NamedTuple):
    """What is counted in one package."""

    bindings: int
    bare: int
    vague: int
    repeated_classes: int
    participles: int
    skips: int

    @property
    def percent(self) -> float:
        """The share of bindings on the list."""
        return 100 * (self.bare + self.vague) / max(self.bindings, 1)


def count(sources: Iterable[Source], classes: Counter[str]) -> Counts:
    """Count names in the files of a package; ``classes`` counts class names in all packages."""
    pairs = [(source.path, b) for source in sources for b in source.bindings if b.name.strip("_")]
    return Counts(
        bindings=len(pairs),
        bare=sum(is_bare(binding, path) for path, binding in pairs),
        vague=sum(is_vague(binding, path) for path, binding in pairs),
        repeated_classes=sum(b.role == "class" and classes[b.name] > 1 for _, b in pairs),
        participles=sum(is_participle(binding) for _, binding in pairs),
        skips=sum(source.n_skips for source in sources),
    )


def count_by_package(sources: Iterable[Source]) -> dict[str, Counts]:
    """Count names by package: one row a package of isolux, one a distribution."""
    sources = list(sources)
    classes = Counter(b.name for s in sources for b in s.bindings if b.role == "class")
    packages: dict[str, list[Source]] = {}
    for source in sources:
        packages.setdefault(size.name_row(Path(source.path)), []).append(source)
    return {name: count(files, classes) for name, files in sorted(packages.items())}


def list_excesses(counts: dict[str, Counts]) -> list[str]:
    """List what exceeds its ceiling."""
    return [
        f"{package}: {getattr(row, field)} {field}, at most {limit} allowed; see docs/glossary.md"
        for package, row in counts.items()
        for field, limit in CEILINGS.get(package, Ceiling())._asdict().items()
        if getattr(row, field) > limit
    ]


def main() -> int:
    """Print the counts by package; 1 if one of them exceeds its ceiling."""
    paths = [
        path
        for path in size.tracked()
        if path.suffix == ".py" and path.parts[0] in {"src", "packages", "worlds"}
    ]
    texts = [(path, (size.TOP / path).read_text(encoding="utf-8")) for path in paths]
    counts = count_by_package(read_source(path, text) for path, text in texts)
    total = Counts(*map(sum, zip(*counts.values(), strict=True)))
    _print(f"{'':<24}{'names':>8}{'listed':>8}" + "".join(f"{f:>18}" for f in Ceiling._fields))
    for package, row in [*counts.items(), ("all", total)]:
        figures = "".join(f"{getattr(row, field):>18,}" for field in Ceiling._fields)
        _print(f"{package:<24}{row.bindings:>8,}{row.percent:>6.1f} %{figures}")
    excesses = list_excesses(counts)
    for line in excesses:
        _print(line)
    return int(bool(excesses))


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
