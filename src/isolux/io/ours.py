"""What isolux writes into a folder of each kind, so that replacing one deletes nothing else."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from isolux.io.stages import is_stage
from isolux.vocabulary.errors import OutputError

_OF_KIND: dict[str, tuple[str, ...]] = {
    "run": (
        "audit.json",
        "scores.parquet",
        "attributes.parquet",
        "group_metrics.parquet",
        "disparities.parquet",
        "findings.parquet",
        "evidence/*.parquet",
        "report.html",
        "gallery.html",
    ),
    "comparison of models": (
        "side_by_side.json",
        "report.html",
        *(
            f"{name}.{suffix}"
            for name in ("values", "changes", "ranks", "models")
            for suffix in ("parquet", "csv", "tex")
        ),
    ),
    "monitoring": ("monitor.json", "monitor.parquet", "monitor.html"),
    "table of models across datasets": (
        "across.json",
        "values.parquet",
        "values.csv",
        "table_*.csv",
        "table_*.tex",
    ),
    "probe": ("probe.json", "probe.npz", "labels-*.csv"),
    "consensus folder": (
        "consensus.json",
        "labels.csv",
        "chances.csv",
        "annotators.csv",
        "shapes.json",
        "objects.csv",
        "drawings.csv",
        "agreed.json",
    ),
    "anonymised dataset": ("privacy.json", "people.csv", "counts.csv", "photos/*"),
}
"""By what such a folder is called; a kind that is not here is replaced as a whole."""
_OF_DEMONSTRATIONS = ("SYNTHETIC.txt", "people.csv")
"""What `isolux demo` lays into its run: people who were drawn, and the file that says so."""
_PAGE = b"content=\"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:"
"""What every page of isolux begins with: that it asks no one for anything."""
_HEAD = 1_000
_OF_SYSTEMS = (".DS_Store", "Thumbs.db", "desktop.ini")


def foreign_files(folder: str | Path, what: str) -> list[str]:
    """Name the files of a folder that no isolux wrote when it made it."""
    known, root = _OF_KIND.get(what), Path(folder)
    if known is None:
        return []
    if (root / _OF_DEMONSTRATIONS[0]).is_file():
        known += _OF_DEMONSTRATIONS
    found = []
    for path in root.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            continue
        if path.name in _OF_SYSTEMS or is_stage(path.name):
            continue
        inner = path.relative_to(root)
        if path.is_symlink() or not any(_fits(inner, pattern) for pattern in known):
            found.append(inner.as_posix())
    return sorted(found)


def is_file_of_run(path: str | Path) -> bool:
    """Tell whether a path is that of a run's own file: its record, a table, its pages."""
    place = Path(path).expanduser().resolve()
    for root in list(place.parents)[:2]:
        if (root / "audit.json").is_file():
            return any(_fits(place.relative_to(root), pattern) for pattern in _OF_KIND["run"])
    return False


def refuse_no_page(path: str | Path) -> None:
    """Refuse to write a page over what is no page of isolux, or under a name that is no page's."""
    page = Path(path).expanduser()
    if page.suffix.lower() not in (".html", ".htm"):
        raise OutputError(
            "a page is an HTML file",
            expected="a path that ends in .html",
            found=str(page),
            where=str(page),
        )
    if not page.is_file() or is_file_of_run(page):
        return  # a run's page may be of an earlier version
    with page.open("rb") as file:
        ours = _PAGE in file.read(_HEAD)
    if not ours:
        raise OutputError(
            "this file is not a page written by isolux, and would be lost",
            expected="a path where nothing is",
            found="a file of somebody else's",
            where=str(page),
            hint="choose another path",
        )


def _fits(inner: Path, pattern: str) -> bool:
    folder, _, name = pattern.rpartition("/")
    return inner.parent.as_posix() == (folder or ".") and fnmatchcase(inner.name, name)
