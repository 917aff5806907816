"""What isolux writes into a folder of each kind, so that replacing one deletes nothing else."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path

from isolux.core.errors import OutputError
from isolux.io.staging import is_staging_name

_FILES_BY_KIND: dict[str, tuple[str, ...]] = {
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
            for name in ("values", "changes", "gaps", "ranks", "models")
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
_DEMO_FILES = ("SYNTHETIC.txt", "people.csv")
"""What `isolux demo` lays into its run: people who were drawn, and the file that says so."""
_PAGE_SIGNATURE = (
    b"content=\"default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:"
)
"""What every page of isolux begins with: that it asks no one for anything."""
_HEAD_BYTES = 1_000
_SYSTEM_FILES = (".DS_Store", "Thumbs.db", "desktop.ini")


def list_foreign_files(folder: str | Path, folder_kind: str) -> list[str]:
    """List the files of a folder that isolux does not write into folders of this kind."""
    patterns, root = _FILES_BY_KIND.get(folder_kind), Path(folder)
    if patterns is None:
        return []
    if (root / _DEMO_FILES[0]).is_file():
        patterns += _DEMO_FILES
    foreign = []
    for path in root.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            continue
        if path.name in _SYSTEM_FILES or is_staging_name(path.name):
            continue
        inner = path.relative_to(root)
        if path.is_symlink() or not any(_matches_pattern(inner, pattern) for pattern in patterns):
            foreign.append(inner.as_posix())
    return sorted(foreign)


def is_run_file(path: str | Path) -> bool:
    """Return whether a path is a file of a run: its record, a table or a page."""
    file_path = Path(path).expanduser().resolve()
    for root in list(file_path.parents)[:2]:
        if (root / "audit.json").is_file():
            return any(
                _matches_pattern(file_path.relative_to(root), pattern)
                for pattern in _FILES_BY_KIND["run"]
            )
    return False


def refuse_foreign_page(path: str | Path) -> None:
    """Refuse to overwrite a file that is no page of isolux, or a name without .html."""
    page = Path(path).expanduser()
    if page.suffix.lower() not in (".html", ".htm"):
        raise OutputError(
            "a page is an HTML file",
            expected="a path that ends in .html",
            found=str(page),
            where=str(page),
        )
    if not page.is_file() or is_run_file(page):
        return  # a run's page may be of an earlier version
    with page.open("rb") as file:
        is_isolux_page = _PAGE_SIGNATURE in file.read(_HEAD_BYTES)
    if not is_isolux_page:
        raise OutputError(
            "this file is not a page written by isolux, and would be lost",
            expected="a path where nothing is",
            found="a file of somebody else's",
            where=str(page),
            hint="choose another path",
        )


def _matches_pattern(inner: Path, pattern: str) -> bool:
    folder, _, name = pattern.rpartition("/")
    return inner.parent.as_posix() == (folder or ".") and fnmatchcase(inner.name, name)
