"""A new dataset, task, analysis, check, measure, format or model: one file and one sample each.

``elsewhere`` holds one of each kind. It is installed as a package of its own, known to isolux by
its entry points alone, held to every contract, and used from end to end.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TOP = HERE.parents[1]
ADDED = {
    "datasets": "lanterns",
    "tasks": "presence",
    "analyses": "dimmest",
    "checks": "watts",
    "measures": "gini",
    "predictions": "dots",
    "models": "brightest",
}
LISTED = {"predictions": "formats"}


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> dict[str, str]:
    """Install the package; give the environment of a process that sees it."""
    site = tmp_path_factory.mktemp("site")
    shutil.copytree(HERE / "elsewhere", site / "elsewhere", ignore=shutil.ignore_patterns("__py*"))
    info = site / "elsewhere-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n")
    points = [f"[isolux.{package}]\n{name} = elsewhere.{name}\n" for package, name in ADDED.items()]
    points.append("[isolux.samples]\nelsewhere = elsewhere.samples\n")
    (info / "entry_points.txt").write_text("\n".join(points))
    path = [str(site), str(TOP / "src"), str(TOP / "worlds" / "src"), str(TOP)]
    return os.environ | {"PYTHONPATH": os.pathsep.join(path), "COLUMNS": "200"}


def _python(environment: dict[str, str], *words: str, cwd: Path = TOP) -> str:
    done = subprocess.run(
        [sys.executable, *words], env=environment, cwd=cwd, capture_output=True, text=True,
        check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode in {0, 1}, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout + done.stderr


def _isolux(environment: dict[str, str], cwd: Path, *words: str) -> str:
    said = _python(environment, "-c", "from isolux.cli import main; main()", *words, cwd=cwd)
    assert "Traceback" not in said
    assert "bug in isolux" not in said
    return said


def test_each_is_one_file_and_one_sample() -> None:
    files = {file.stem for file in (HERE / "elsewhere").glob("*.py")}
    assert files == {*ADDED.values(), "samples", "__init__"}
    own = [f for f in (TOP / "src").rglob("*.py") if "dimmest" in f.read_text(encoding="utf-8")]
    assert own == [], "no line of isolux names it"


def test_each_passes_the_contracts(elsewhere) -> None:
    """The same tests that hold our own plugins to account, for these alone."""
    wanted = " or ".join(f"{package}/{name}" for package, name in ADDED.items())
    said = _python(
        elsewhere, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rA", "tests/contracts",
        "--ignore", "tests/contracts/test_new_plugins.py", "-k", wanted,
    )  # fmt: skip
    assert not re.findall(r"^(?:FAILED|ERROR) .*", said, re.MULTILINE), said[-6000:]
    for package, name in ADDED.items():
        passed = set(re.findall(rf"^PASSED (\S+?)\[.*{package}/{name}", said, re.MULTILINE))
        assert len(passed) > 4, (name, passed)
    assert re.search(r"PASSED \S*test_hostile_files.py::test_a_pipe\S*\[datasets/lanterns\]", said)


_EACH = """
import ast, sys
from isolux.cli import main
for words in ast.literal_eval(sys.argv[1]):
    sys.argv = ["isolux", *words]
    try:
        main()
    except SystemExit as ended:
        print("ENDED", ended.code, flush=True)
"""


def test_each_is_listed(elsewhere, tmp_path) -> None:
    asked = [("list", LISTED.get(package, package), *one) for package, name in ADDED.items()
             for one in ((), (name,))]  # fmt: skip
    said = iter(_python(elsewhere, "-c", _EACH, repr(asked), cwd=tmp_path).split("ENDED 0\n"))
    for name in ADDED.values():
        assert name in next(said)
        assert "Made for a test" in next(said) or name == "gini"


_PREDICT = """
import sys
import numpy as np
from isolux.models import predict_and_check_table
from isolux.core import registry
family, people = registry.load("models", "brightest"), registry.load("datasets", "lanterns")
open("limit.txt", "w").write("60")
dataset = people.load("walk.lanterns")
dim = set(dataset.values_of("light").filter(value="dim")["unit_id"])
rows = dataset.instances.select("instance_id", "image_id").rows()
# Of those in dim light the model sees every second.
pictures = [np.full((8, 8, 3), 20 if who in dim and k % 2 else 200, np.uint8)
            for k, (who, _) in enumerate(rows)]
images = [image for _, image in rows]
predictor = family.load("limit.txt")
boxes = predict_and_check_table(predictor, family.INFO, pictures, images, model="net")
sides = ("image_id", "box_x", "box_y", "box_w", "box_h", "score")
lines = [" ".join(map(str, row)) for row in boxes.select(sides).rows()]
open("net.txt", "w").write("\\n".join(["dots 1", *lines]) + "\\n")
"""


def _walk(folder: Path) -> None:
    rows = [
        f"p{i:03} i{i:03} w{i // 2:03} {'dim' if i % 3 == 0 else 'bright'} {i % 5 * 10}"
        for i in range(600)
    ]
    (folder / "walk.lanterns").write_text("\n".join(rows) + "\n")


def test_they_make_an_audit_from_end_to_end(elsewhere, tmp_path) -> None:
    """The model answers, the format holds it, the task judges it, the report says it."""
    _walk(tmp_path)
    _python(elsewhere, "-c", _PREDICT, cwd=tmp_path)
    said = _isolux(
        elsewhere, tmp_path, "audit", "lanterns:walk.lanterns", "--task", "presence",
        "--predictions", "net.txt", "--by", "light", "--explain", "dimmest",
        "--replicates", "200", "--out", "run",
    )  # fmt: skip
    assert "run/report.html" in said
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    words = html.unescape(re.sub(r"<[^>]+>", " ", page)).replace("\N{NO-BREAK SPACE}", " ")
    # 100 of the 200 in dim light were seen, and all of the 400 others: Gini is
    # 2 * 0.5 / (2 * 2 * (0.5 + 1.0)) = 1/6.
    assert "Gini coefficient" in words
    assert "Half the mean absolute difference between any two groups, over their mean." in words
    assert re.search(r"Gini coefficient.*?0\.167", words, re.DOTALL)
    assert "Of light, dim has the lowest presence rate: 0.500." in words
    problems = _isolux(elsewhere, tmp_path, "check", "lanterns:walk.lanterns")
    assert "a lantern gives no light" in problems
    assert "120" in problems, "one in five of 600"


def test_a_text_of_no_format_is_refused_by_each_that_was_asked(elsewhere, tmp_path) -> None:
    """Another package's format is asked like ours; what none knows says what was tried."""
    _walk(tmp_path)
    (tmp_path / "net.txt").write_text("51 42 10 20 0.93 7\n")
    words = [
        "-c",
        "from isolux.cli import main; main()",
        "export",
        "--to",
        "parquet",
        "net.txt",
        "--out",
        "a.parquet",
    ]
    done = subprocess.run(
        [sys.executable, *words], env=elsewhere, cwd=tmp_path, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 2
    said = re.sub(r"\s+", " ", done.stderr)
    assert "not dots: its first line is not 'dots 1'" in said
    assert "not widerface_text: its first line is 6 numbers" in said
