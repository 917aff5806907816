"""Golden runs: the same commands on the same synthetic data, before and after a change.

    python -m scripts.golden FOLDER               # run them all and keep what they give
    python -m scripts.golden FOLDER --only gate   # one of them (repeatable)
    python -m scripts.golden --compare A B        # two such folders: every difference, briefly
    python -m scripts.golden --digest FOLDER      # against scripts/golden.json; --write: anew

Of each run its tables are kept as they are, what it printed and wrote as text, a report's visible
text (that of its figures apart), and what its record says beside settings and versions. Dates,
durations, versions and hashes are masked. ``--compare`` asks for equal bits; the committed digests
are of numbers to nine digits, since other processors round the last ones differently.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import html
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

from scripts.golden_runs import FILES, RUNS, WORLDS, commands

TOP = Path(__file__).resolve().parents[1]
DIGESTS = TOP / "scripts" / "golden.json"
_TEXTS = {".csv", ".json", ".jsonl", ".md", ".tex", ".xml", ".yaml", ".txt"}
_RECORD = ("accounting", "analyses", "clusters", "explained", "families", "notes", "injected",
           "protocol", "warnings")  # fmt: skip
_MASKS = (
    (r"(?m)^isolux: .* so far\n", ""),
    (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?", "TIME"),
    (r"\b20\d\d-\d\d-\d\d\b", "DATE"),
    (r"\b\d+(\.\d+)? ?(s|ms|seconds?|minutes?)\b", "DURATION"),
    (r"\b\d+\.\d+\.\d+(\.?(post|dev|rc)\d+)?\b", "VERSION"),
    (r"(?<![.\w])(?=\d*[a-f])[0-9a-f]{12,}\b", "HASH"),
)
_NUMBER = re.compile(r"-?\b\d+\.\d+(?:e[+-]?\d+)?|-?\b\d+e[+-]?\d+")
_SHOWN = 6


def masked(text: str) -> str:
    """Give a text without what differs from run to run."""
    for pattern, word in _MASKS:
        text = re.sub(pattern, word, text)
    return text


def visible(page: str) -> tuple[str, str]:
    """Give the words that a page shows, and those of its figures."""
    page = re.sub(r"<(script|style)\b.*?</\1>", "", page, flags=re.DOTALL)
    figures = "\n".join(re.findall(r"<svg\b.*?</svg>", page, flags=re.DOTALL))
    page = re.sub(r"<svg\b.*?</svg>", "", page, flags=re.DOTALL)
    words = (re.sub(r"<[^>]*>", "\n", part) for part in (page, figures))
    page, figures = (re.sub(r"\s*\n\s*", "\n", html.unescape(part)) for part in words)
    return page, figures


class Runner:
    """Runs commands in a folder, and makes the inputs they name."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.environment = os.environ | {
            "COLUMNS": "100", "NO_COLOR": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(TOP),
        }  # fmt: skip

    def run(self, line: str) -> str:
        """Run one command; give what it printed, masked."""
        words = shlex.split(line)
        command = words[1:] if words[0] == "python" else ["-m", "isolux", *words]
        done = subprocess.run(  # noqa: S603 - the lines of golden_runs
            [sys.executable, *command], cwd=self.work, env=self.environment, text=True,
            capture_output=True, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        told = f"$ {line}\n{done.stdout}{done.stderr}exit code {done.returncode}\n"
        return masked(told.replace(str(self.work), "FOLDER"))

    def make(self, name: str) -> None:
        """Make an input that is not there yet."""
        folder = self.work / "in" / name
        if folder.exists():
            return
        if name in WORLDS:
            print(self.run(WORLDS[name]).splitlines()[-1], "of", name, file=sys.stderr)  # noqa: T201
        elif name in FILES:
            folder.mkdir(parents=True)
            before = Path.cwd()
            os.chdir(self.work)
            FILES[name](folder)
            os.chdir(before)

    def golden(self, name: str, out: Path) -> None:
        """Run one golden run and keep what it gives in ``out``."""
        text = commands(name)
        for one in inputs(text):
            self.make(one)
        (self.work / name).mkdir()
        lines = text.replace("\\\n", " ").strip().splitlines()
        out.mkdir(parents=True)
        told = "".join(self.run(line) for line in lines)
        (out / "terminal.txt").write_text(told, encoding="utf-8")
        for at in sorted((self.work / name).rglob("*")):
            if at.is_file() and at.parent.name != "withdrawals":  # a receipt has marks of its own
                keep(at, out / at.relative_to(self.work / name), self.work)


def inputs(text: str) -> list[str]:
    """Give the inputs that commands name, those that others are written from first."""
    named = sorted(set(re.findall(r"\bin/(\w+)", text)))
    return [*(n for n in named if n in WORLDS), *(n for n in named if n not in WORLDS)]


def keep(at: Path, to: Path, work: Path) -> None:
    """Keep one file of a run, if it is a table, a page or a text."""
    to.parent.mkdir(parents=True, exist_ok=True)
    if at.suffix == ".parquet":
        shutil.copyfile(at, to)
    elif at.suffix in {".html", *_TEXTS}:
        text = at.read_text(encoding="utf-8").replace(str(work), "FOLDER")
        if at.suffix == ".html":
            text, figures = visible(text)
            Path(f"{to}.figures.txt").write_text(masked(figures), encoding="utf-8")
            to = Path(f"{to}.txt")
        elif at.suffix == ".json":
            content = json.loads(text)
            if at.name == "audit.json":
                content = {key: content.get(key) for key in _RECORD}
            text = json.dumps(content, indent=1, ensure_ascii=False)
        to.write_text(masked(text), encoding="utf-8")


def table_differences(a: Path, b: Path) -> list[str]:
    """Say where two Parquet files differ: schema, rows, columns with their first rows."""
    one, two = pl.read_parquet(a), pl.read_parquet(b)
    if one.schema != two.schema:
        return [f"schema: {sorted(set(one.schema.items()) ^ set(two.schema.items()), key=str)}"]
    if one.height != two.height:
        return [f"{one.height} rows, {two.height} rows"]
    found = []
    for name in one.columns:
        if not one[name].equals(two[name]):
            pairs = zip(one[name].to_list(), two[name].to_list(), strict=True)
            rows = [f"row {k}: {x!r} {y!r}" for k, (x, y) in enumerate(pairs) if repr(x) != repr(y)]
            found.append(f"{name}: {len(rows)} rows differ; {'; '.join(rows[:3])}")
    return found


def text_differences(a: Path, b: Path) -> list[str]:
    """Give the first lines in which two texts differ; of what was printed, to nine digits."""
    texts = [at.read_text(encoding="utf-8") for at in (a, b)]
    if a.name == "terminal.txt":  # `describe --json` sums in the order in which threads come
        texts = [rounded(text) for text in texts]
    one, two = (text.splitlines() for text in texts)
    lines = list(difflib.unified_diff(one, two, lineterm="", n=0))[2:]
    changed = [line[:160] for line in lines if not line.startswith("@@")]
    more = [f"… {len(changed) - _SHOWN} more lines"] if len(changed) > _SHOWN else []
    return changed[:_SHOWN] + more


def files_of(folder: Path) -> set[str]:
    """Give the files under a folder, as relative paths."""
    return {at.relative_to(folder).as_posix() for at in folder.rglob("*") if at.is_file()}


def differences(a: Path, b: Path) -> list[str]:
    """Say in which files two folders of golden runs differ, and how."""
    here, there = files_of(a), files_of(b)
    runs = {name.split("/")[0] for name in here} & {name.split("/")[0] for name in there}
    found = []
    for name in sorted(here | there):
        if name.split("/")[0] not in runs:
            continue
        if name not in here or name not in there:
            found.append(f"{name}: only in {a if name in here else b}")
        elif (a / name).read_bytes() != (b / name).read_bytes():
            how = table_differences if name.endswith(".parquet") else text_differences
            found += [f"{name}: {line}" for line in how(a / name, b / name)]
    return found


def rounded(text: str) -> str:
    """Give a text whose fractions have nine digits; what is nearer to 0 than 1e-12 is 0."""

    def nine(match: re.Match[str]) -> str:
        value = float(match[0])
        return f"{0.0 if abs(value) < 1e-12 else value:.9g}"

    return _NUMBER.sub(nine, text)


def digest(at: Path) -> str:
    """Give the digest of one table or text, its numbers rounded."""
    if at.suffix == ".parquet":
        table = pl.read_parquet(at)
        text = "\n".join(map(repr, [table.schema, *table.rows()]))
    else:
        text = at.read_text(encoding="utf-8")
    return hashlib.sha256(rounded(text).encode()).hexdigest()[:16]


def check_digests(folder: Path, *, write: bool) -> list[str]:
    """Compare a folder's digests with the committed ones, or write these anew."""
    now = {name: digest(folder / name) for name in sorted(files_of(folder))}
    if write:
        DIGESTS.write_text(json.dumps(now, indent=0) + "\n", encoding="utf-8")
        return []
    then = json.loads(DIGESTS.read_text(encoding="utf-8"))
    return [
        f"{name}: {'changed' if name in now and name in then else 'new' if name in now else 'gone'}"
        for name in sorted(now.keys() | then.keys())
        if now.get(name) != then.get(name)
    ]


def run_all(out: Path, names: list[str]) -> None:
    """Run golden runs in a temporary folder and keep each one's results in ``out``."""
    with tempfile.TemporaryDirectory(prefix="golden-") as folder:
        runner = Runner(Path(folder).resolve())
        for name in names:
            shutil.rmtree(out / name, ignore_errors=True)
            runner.golden(name, out / name)
            print(name, file=sys.stderr, flush=True)  # noqa: T201


def main(words: list[str] | None = None) -> int:
    """Run, compare or digest golden runs; 1 where something differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--only", action="append", choices=sorted(RUNS))
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"))
    parser.add_argument("--digest", type=Path, metavar="FOLDER")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(words)
    if given.folder:
        run_all(given.folder, given.only or list(RUNS))
    found = differences(*given.compare) if given.compare else []
    found += check_digests(given.digest, write=given.write) if given.digest else []
    if given.compare or given.digest:
        print("\n".join(found) if found else "no difference")  # noqa: T201
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
