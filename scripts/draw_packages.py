"""Draw the packages and who imports whom, from the code: ``docs/assets/packages.svg``.

    python scripts/draw_packages.py

Packages go down a stair, in the floors that import-linter holds them to (``pyproject.toml``).
A package's line runs to the right; where it meets the line that runs up from a package below, a dot
says that the upper imports the lower. Numbers are left out: they would change with every file. The
same code gives the same bytes.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

TOP = Path(__file__).resolve().parents[1]
PICTURE = TOP / "docs" / "assets" / "packages.svg"
ROOT = "isolux"
LEFT, TOP_EDGE, STEP = 24, 64, 44
BOX_WIDTH, BOX_HEIGHT, STUB = 108, 32, 20
INK, MUTED, PAPER, FILL, LINE = "#1f2933", "#52606d", "#ffffff", "#e6eef5", "#c3cfd9"
DOT = "#0b6e99"


@dataclass(frozen=True)
class Package:
    """A place on the stair: where two lines meet, STUB px from its box's right edge."""

    name: str
    x: float
    y: float


def floors() -> list[list[str]]:
    """Read the floors from top to bottom; packages that are not built are left out."""
    settings = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    layers = next(c["layers"] for c in contracts if c.get("containers") == [ROOT])
    built = {p.name for p in (TOP / "src" / ROOT).iterdir() if (p / "__init__.py").is_file()}
    rows = [re.findall(r"[a-z_]+", layer) for layer in layers]
    return [kept for row in rows if (kept := [name for name in row if name in built])]


def imports() -> set[tuple[str, str]]:
    """List which package imports which when it runs; a type's name does not count."""
    import grimp

    graph = grimp.build_graph(
        ROOT, include_external_packages=False, exclude_type_checking_imports=True, cache_dir=None
    )
    found = {
        (_package_of(module), _package_of(other))
        for module in graph.modules
        for other in graph.find_modules_directly_imported_by(module)
    }
    return {(a, b) for a, b in found if a is not None and b is not None and a != b}


def _package_of(module: str) -> str | None:
    """Name the package of a module; ``python -m isolux`` only calls the command line."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] != "__main__" else None


def placed(rows: list[list[str]]) -> dict[str, Package]:
    """Give every package its step: from top to bottom, those of a floor one after another."""
    names = [name for row in rows for name in row]
    return {
        name: Package(
            name,
            LEFT + BOX_WIDTH - STUB + k * STEP,
            TOP_EDGE + BOX_HEIGHT / 2 + k * STEP,
        )
        for k, name in enumerate(names)
    }


def svg() -> str:
    """Draw the picture."""
    rows = floors()
    lines = imports()
    packages = placed(rows)
    wide = LEFT * 2 + BOX_WIDTH + STEP * (len(packages) - 1)
    high = TOP_EDGE + 20 + BOX_HEIGHT + STEP * (len(packages) - 1)
    told = f"{len(packages)} packages on {len(rows)} floors, {len(lines)} lines between them"
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}"'
        f' height="{high}" font-family="Helvetica, Arial, sans-serif" role="img"'
        f' aria-label="The packages of isolux and who imports whom: {told}">'
    )
    parts = [
        opening,
        f'<rect width="{wide}" height="{high}" fill="{PAPER}"/>',
        _text(LEFT, 26, told, 15, INK, "start", bold=True),
        _text(LEFT, 46, "A dot: the package on its left imports the package below it.",
              12, MUTED, "start"),
    ]  # fmt: skip
    for name, package in packages.items():
        below = [packages[b].x for a, b in lines if a == name]
        above = [packages[a].y for a, b in lines if b == name]
        if below:
            parts.append(_stroke(package.x, package.y, max(below), package.y))
        if above:
            parts.append(_stroke(package.x, min(above), package.x, package.y))
    parts += [_dot(packages[a], packages[b]) for a, b in sorted(lines)]
    parts += [_box(package) for package in packages.values()]
    return "\n".join([*parts, "</svg>", ""])


def _stroke(x1: float, y1: float, x2: float, y2: float) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{LINE}" stroke-width="1.5"/>'


def _dot(above: Package, below: Package) -> str:
    title = f"<title>{above.name} imports {below.name}</title>"
    return f'<circle cx="{below.x:.1f}" cy="{above.y:.1f}" r="8" fill="{DOT}">{title}</circle>'


def _box(package: Package) -> str:
    x, y = package.x + STUB - BOX_WIDTH, package.y - BOX_HEIGHT / 2
    middle = x + BOX_WIDTH / 2
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="5"'
        f' fill="{FILL}" stroke="{INK}" stroke-width="1.1"/>'
        + _text(middle, package.y + 5, package.name, 14, INK, "middle", bold=True)
    )


def _text(
    x: float, y: float, words: str, size: int, colour: str, anchor: str, *, bold: bool = False
) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}"'
        f' text-anchor="{anchor}"{weight}>{escape(words)}</text>'
    )


def main() -> None:
    """Write the picture where the page on architecture shows it."""
    sys.path.insert(0, str(TOP / "src"))
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(svg(), encoding="utf-8")
    sys.stdout.write(f"{PICTURE.relative_to(TOP)}\n")


if __name__ == "__main__":
    main()
