"""Write the laws' figures into ``RESULTS.md`` and ``docs/methods``: ``python -m tests.laws._page``.

A table stands between ``<!-- figures: NAME -->`` and ``<!-- end -->`` and is made of the JSON files
that the full run left; a test holds the pages and the files together. NAME is one of ``_TABLES``,
laid out by hand, or the name of a record (``slices-null``, ``scenes-cover-*``), whose rows are laid
out by ``_layouts``, else as they are: a key that ends in ``%`` holds fractions, printed in percent.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.laws._figures import FOLDER
from tests.laws._layouts import LAYOUTS
from tests.laws._summary import SUMMARY

Row = dict[str, Any]
_NOT_YET = "\n*Not measured yet: `make laws`.*\n\n"
_BLOCK = re.compile(r"(<!-- figures: ([a-z0-9 *_-]+?) -->\n).*?(<!-- end -->)", re.DOTALL)


def with_figures() -> list[Path]:
    """List the pages that hold tables of figures."""
    methods = Path(__file__).resolve().parents[2] / "docs" / "methods"
    pages = [*sorted(methods.glob("*.md")), FOLDER.with_name("RESULTS.md")]
    return [page for page in pages if _BLOCK.search(page.read_text(encoding="utf-8"))]


def rendered(page: str) -> str:
    """Return the page with every table made anew."""
    return _BLOCK.sub(lambda m: m[1] + _made(m[2]) + m[3], page)


def _made(name: str) -> str:
    return _TABLES[name]() if name in _TABLES else _as_recorded(name)


def _as_recorded(name: str) -> str:
    """Lay out the rows of every record of that name (``*`` stands for anything) as they are."""
    documents = load(name)
    if not documents:
        return _NOT_YET
    if name in LAYOUTS:
        columns_of, shares = LAYOUTS[name]
        return _plain(columns_of, name, shares=shares)
    columns = list(dict.fromkeys(key for row in _rows(documents) for key in row))

    def show(key: str, value: Any) -> str:
        if value is None or isinstance(value, str | bool):
            return "–" if value is None else str(value)
        number = 100 * float(value) if key.endswith("%") else float(value)
        return f"{number:,.1f}" if key.endswith("%") else _short(number)

    body = [[show(key, row.get(key)) for key in columns] for row in _rows(documents)]
    return _table(columns, body, documents)


def _short(number: float) -> str:
    """Print four digits, and what is all but nothing as 0."""
    text = f"{number:,.4g}"
    return f"{number:.4f}".replace("-0.0000", "0").replace("0.0000", "0") if "e-" in text else text


def load(*patterns: str) -> list[dict[str, Any]]:
    """Read the documents whose names match, in order."""
    paths = [path for pattern in patterns for path in sorted(FOLDER.glob(f"{pattern}.json"))]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths]


def _rows(documents: list[dict[str, Any]]) -> list[Row]:
    return [row for document in documents for row in document["rows"]]


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _table(head: list[str], body: list[list[str]], documents: list[dict[str, Any]]) -> str:
    if not documents:
        return _NOT_YET
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(cells) + " |" for cells in body]
    return "\n".join(["", *lines, "", _source(documents), "", ""])


def _source(documents: list[dict[str, Any]]) -> str:
    drawn = _of_all(documents, "replicates")
    replicates = "" if drawn == "1" else f", {drawn} replicates"
    return f"*{_of_all(documents, 'worlds')} worlds{replicates}; {_how(documents)}.*"


def _how(documents: list[dict[str, Any]]) -> str:
    """Say when, how and on what machine the documents' figures were measured."""
    command = _of_all(documents, "command").replace(" and ", "` and `")
    return f"{_of_all(documents, 'date')}; `{command}`; {_of_all(documents, 'machine')}"


def _of_all(documents: list[dict[str, Any]], key: str) -> str:
    values = sorted({d[key] for d in documents})
    return " and ".join(f"{v:,}" if isinstance(v, int) else str(v) for v in values)


def _by_correlation(name: str, cell: Any) -> str:
    """Lay out one row for each size and rate, one column for each correlation."""
    documents = load(name)
    found: dict[tuple[str, str], dict[float, str]] = {}
    for row in _rows(documents):
        found.setdefault((str(row["subjects"]), str(row["rate"])), {})[row["icc"]] = cell(row)
    correlations = sorted({c for cells in found.values() for c in cells})
    head = ["subjects", "rate", *(f"correlation {c:g}" for c in correlations)]
    body = [[*key, *(cells.get(c, "") for c in correlations)] for key, cells in found.items()]
    return _table(head, body, documents)


def _three(row: Row) -> str:
    return " / ".join(_percent(row[k]) for k in ("rates", "differences", "ratios"))


def _methods() -> str:
    documents = load("methods")
    names = {
        "rates": "logit-t", "percentile": "percentile", "bca": "BCa", "wilson": "Wilson",
        "clopper-pearson": "Clopper–Pearson", "differences": "difference, MOVER",
        "percentile differences": "difference, percentile",
    }  # fmt: skip
    body = [
        [
            str(row["subjects"]),
            f"{row['icc']:g}",
            str(row["rate"]),
            *(_percent(row[k]) for k in names),
        ]
        for row in _rows(documents)
    ]
    return _table(["subjects", "correlation", "rate", *names.values()], body, documents)


_WHOLE = (
    ("range: mean of max − min", "range", False),
    ("range, percentile interval: holds the truth, %", "range by percentile covered", True),
    ("range, percentile interval: holds 0, %", "range by percentile holds 0", True),
    ("range, simultaneous interval: holds the truth, %", "range covered", True),
    ("range, simultaneous interval: holds 0, %", "range holds 0", True),
    ("ε: mean", "epsilon", False),
    ("ε, percentile interval: holds the truth, %", "epsilon by percentile covered", True),
    ("ε, simultaneous interval: holds the truth, %", "epsilon covered", True),
    ("standard deviation: mean", "standard_deviation", False),
    ("standard deviation, percentile interval: holds the truth, %", "standard_deviation covered",
     True),
    ("τ: mean", "noise_corrected_sd", False),
    ("τ, interval: holds the truth, %", "noise_corrected_sd covered", True),
    ("τ, interval: holds 0, %", "noise_corrected_sd holds 0", True),
    ("test of any difference: p at most .05, %", "test finds a difference", True),
    ("worst group found is the planted one, %", "worst group is g0", True),
)  # fmt: skip


def _whole() -> str:
    documents = load("whole-*")
    rows = sorted(_rows(documents), key=lambda row: (row["worlds"][0] != "n", row["worlds"]))
    body = [
        [text, *(_percent(row[key]) if share else f"{row[key]:.3f}" for row in rows)]
        for text, key, share in _WHOLE
    ]
    return _table(["", *(row["worlds"] for row in rows)], body, documents)


def _plain(columns: dict[str, str], *patterns: str, shares: tuple[str, ...] = ()) -> str:
    """Lay out rows as they are; the columns named in ``shares`` as percentages."""
    documents = load(*patterns)

    def show(key: str, value: Any) -> str:
        if key in shares:
            return _percent(value)
        return _short(value) if isinstance(value, float) else str(value)

    body = [[show(k, row.get(k, "")) for k in columns] for row in _rows(documents)]
    return _table(list(columns.values()), body, documents)


def _tau() -> str:
    columns = {
        "varies": "attribute varies", "groups": "groups", "subjects": "subjects a group",
        "rate": "rate", "planted": "planted τ", "mean tau": "mean τ",
        "covered": "holds the planted τ, %", "apart": "the same, each group its own variance, %",
        "holds 0": "holds 0, %",
    }  # fmt: skip
    return _plain(columns, "tau-*", shares=("covered", "apart", "holds 0"))


def _family() -> str:
    columns = {
        "worlds": "attributes", "rate": "rate", "icc": "correlation", "test": "null",
        "tests": "tests", "max-t": "max-T, %", "holm": "Holm, %", "one test": "one test, %",
    }  # fmt: skip
    shares = ("max-t", "holm", "one test")
    return _plain(columns, "family-[!n]*", shares=shares)


def _naive() -> str:
    columns = {"worlds": "test", "max-t": "max-T, %", "one test": "one test, %"}
    return _plain(columns, "family-naive", shares=("max-t", "one test"))


def _power() -> str:
    columns = {
        "varies": "attribute varies", "groups": "groups", "subjects": "subjects a group",
        "rate": "rate", "detectable": "planted = detectable", "power": "found, %",
    }  # fmt: skip
    return _plain(columns, "power-*", shares=("power",))


def _models() -> str:
    columns = {
        "rates": "true rates", "covered": "change covered, %", "any claim": "any claim, %",
        "unpaired width over ours": "width without pairing, times ours",
    }  # fmt: skip
    return _plain(columns, "models-*", shares=("covered", "any claim"))


def _fairlearn() -> str:
    keys = ("ours, rates", "ours, difference", "fairlearn, rates", "fairlearn, difference")
    return _plain({k: f"{k}, %" for k in keys}, "fairlearn", shares=keys)


def _streams() -> str:
    columns = {
        "seeds": "seeds", "mean": "variance over exact, mean", "error": "its standard error",
        "spread": "spread over seeds", "expected": "spread of independent replicates",
    }  # fmt: skip
    return _plain(columns, "streams")


def _summary() -> str:
    """Lay out the worst cell of each question, with the bound that its law asserts."""
    documents: list[dict[str, Any]] = []
    lines = [
        "| what is asked | cells | worlds each | bound, % | measured, % |",
        "|---|---|---|---|---|",
    ]
    for question, names, keys, bound, worst in SUMMARY:
        documents += (read := load(*names))
        answers = [r[key] for r in _rows(read) for key in keys if r.get(key) is not None]
        least, most = _percent(min(answers)), _percent(max(answers))
        ends = {
            "least": f"{least} or more",
            "most": f"{most} or less",
            "both": f"{least} to {most}",
        }
        cells = sum(row.get("cells", 1) for row in _rows(read))
        lines.append(
            f"| {question} | {cells:,} | {_of_all(read, 'worlds')} | {bound} | {ends[worst]} |"
        )
    return "\n".join(["", *lines, "", f"*{_how(documents)}.*", "", ""])


_TABLES = {
    "summary": _summary,
    "coverage": lambda: _by_correlation("coverage-icc-*", _three),
    "high rates": lambda: _by_correlation("coverage-high-*", _three),
    "methods": _methods,
    "whole": _whole,
    "tau": _tau,
    "family": _family,
    "naive": _naive,
    "power": _power,
    "models": _models,
    "fairlearn": _fairlearn,
    "streams": _streams,
}


def write() -> None:
    """Put the figures into the pages."""
    for page in with_figures():
        page.write_text(rendered(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    write()
