"""Audits of real models on real data, for ``docs/gallery.md``: `python -m scripts.gallery DATA`.

DATA holds the folders that ``ENTRIES`` names; none of them comes with isolux. Committed are the
page, a figure and a report of each audit, without any row of the data: groups of fewer than ten
people are hidden. A source that is absent is named, and its part of the page stays as it is.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import isolux

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "gallery.md"
ASSETS = ROOT / "docs" / "assets" / "gallery"
_FINDINGS = 2  # of a command's output that are quoted, after its warnings
_MIN_GROUP = "10"


@dataclass(frozen=True)
class Entry:
    """One audit: its commands, of which the last is quoted, and the figure of one of its runs."""

    name: str
    title: str
    source: str
    introduction: str
    commands: tuple[str, ...]
    run: str
    metric: str
    attribute: str
    limits: str


_FACES = (
    "isolux audit widerface:widerface --task face_detection "
    "--predictions widerface/retinaface.widerface_txt.tar.gz --score-threshold 0.5 "
    "--metric recall_at_score --by perceived_gender "
    "--by perceived_skin --unknown drop --model-name RetinaFace --out runs/faces"
)
_INCOME = (
    "isolux audit table:dollarstreet/CLIP_results_df.csv --id id --task number "
    '--score-column "CLIP score" --by income --bins income=quantile:4 '
    '--cluster country.name --model-name "CLIP score" --out runs/income'
)
_FAIRFACE = (
    "isolux audit table:fairface_val/fairface_label_val_expanded{suffix}.csv --id file "
    "--target gender --prediction-column predicted_gender --by race --by age "
    "--model-name {name} --out runs/{name}"
)
_SERVICE = (
    "isolux audit table:fairface_services/labels_3k.csv --id image_id --target gender "
    "--predictions fairface_services/{file}_3k.csv --prediction-column gender "
    "--by race --by age --out runs/{file}"
)

ENTRIES = (
    Entry(
        name="faces",
        title="Faces that RetinaFace misses",
        source="widerface",
        introduction="RetinaFace on the validation images of WIDER FACE, by perceived gender "
        "presentation and perceived Fitzpatrick skin type (annotations of Amazon Science). "
        "[The tutorial](tutorials/widerface.md) goes on from here.",
        commands=(_FACES,),
        run="faces",
        metric="recall_at_score",
        attribute="perceived_skin",
        limits="Annotators judged gender and skin type from the picture, and only in faces "
        "that are large enough; the 27,518 other faces are in no group. Skin types V and VI are "
        "few: read how large a difference could have gone unseen.",
    ),
    Entry(
        name="services",
        title="DeepFace: perceived gender by race and age",
        source="fairface_services",
        introduction="DeepFace on 2,998 faces of FairFace, by race and age group as FairFace's "
        "annotators judged them.",
        commands=(_SERVICE.format(file="deepface"),),
        run="deepface",
        metric="accuracy",
        attribute="race",
        limits="FairFace's faces come from Flickr, and annotators judged gender presentation and "
        "race. A gap by race at one operating point does not say which step is at fault: the face "
        "detector, the crop or the classifier.",
    ),
    Entry(
        name="services_compared",
        title="DeepFace or FaceLLM: who gains, who loses",
        source="fairface_services",
        introduction="Two systems on the same faces, compared person by person.",
        commands=(
            _SERVICE.format(file="deepface"),
            _SERVICE.format(file="facellm"),
            "isolux compare runs/deepface runs/facellm --out runs/services",
        ),
        run="facellm",
        metric="accuracy",
        attribute="race",
        limits="Only faces that both systems answered are compared. What either was trained on is "
        "not known here: FairFace's faces may be among it.",
    ),
    Entry(
        name="reweighted",
        title="What adversarial reweighting changed",
        source="fairface_val",
        introduction="A classifier trained in the ordinary way (ERM) and one trained with "
        "adversarial reweighting (ARL), on FairFace's validation faces.",
        commands=(
            _FAIRFACE.format(suffix="", name="ERM"),
            _FAIRFACE.format(suffix="_fair", name="ARL"),
            "isolux compare runs/ERM runs/ARL --id-from basename --out runs/reweighted",
        ),
        run="ARL",
        metric="accuracy",
        attribute="age",
        limits="There is one model of each kind: another seed may shift a group by some points. "
        "The comparison does not say that reweighting is the cause.",
    ),
    Entry(
        name="income",
        title="CLIP and household income",
        source="dollarstreet",
        introduction="The similarity that CLIP ViT-B/32 gives to a photo of a household object and "
        "the object's name, by income, on Dollar Street; countries are the clusters.",
        commands=(_INCOME,),
        run="income",
        metric="mean",
        attribute="income",
        limits="A similarity is no error rate: .02 may be little or decide a ranking. Photos of "
        "one income share objects, rooms and countries; which one matters is not shown.",
    ),
)


def main(arguments: list[str]) -> int:
    """Run every entry whose data are there, and write the page; return the exit code."""
    if len(arguments) != 1:
        print("expected one folder: python -m scripts.gallery DATA", file=sys.stderr)  # noqa: T201
        return 2
    data, work = Path(arguments[0]).resolve(), ROOT / "build" / "gallery"
    work.mkdir(parents=True, exist_ok=True)
    sections = read_sections(PAGE.read_text(encoding="utf-8")) if PAGE.is_file() else {}
    for entry in ENTRIES:
        if not (data / entry.source).is_dir():
            print(f"{entry.title}: skipped, there is no folder {entry.source} in {arguments[0]}")  # noqa: T201
            continue
        link = work / entry.source
        if not link.is_symlink():
            link.symlink_to(data / entry.source)
        sections[entry.title] = build_section(entry, work)
        print(entry.title)  # noqa: T201
    PAGE.write_text(build_page(sections), encoding="utf-8")
    return 0


def read_sections(page: str) -> dict[str, str]:
    """Read the sections of a page by title, each without its heading."""
    parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def build_section(entry: Entry, work: Path) -> str:
    """Run the commands of an entry; write its figure and report, and return its section."""
    output = ""
    for command in entry.commands:
        output = _run_command(f"{command} --overwrite", work)
    ASSETS.mkdir(parents=True, exist_ok=True)
    run = work / "runs" / entry.run
    chart = isolux.plot(run, entry.metric, entry.attribute).properties(width=420)
    chart.save(ASSETS / f"{entry.name}.svg")
    report = ASSETS / f"{entry.name}.html"
    _run_command(f"isolux report runs/{entry.run} --publish-min {_MIN_GROUP} --out {report}", work)
    commands = "\n".join(entry.commands)
    findings = "\n>\n".join(f"> {line}" for line in select_findings(output))
    return (
        f"\n{entry.introduction}\n\n```bash\n{commands}\n```\n\n{findings}\n\n"
        f"![{entry.metric} by {entry.attribute}](assets/gallery/{entry.name}.svg)\n\n"
        f"**What it cannot say.** {entry.limits}\n\n"
        f"[The report](assets/gallery/{entry.name}.html) hides groups of fewer than "
        f"{_MIN_GROUP}.\n\n"
    )


def select_findings(output: str) -> list[str]:
    """Select the warnings and the first findings from what a command printed."""
    lines = [line.strip(" •") for line in output.splitlines() if line.strip()]
    lines = [line for line in lines if not re.match(r"All [\d,]+ |.* · ", line)]
    n_warnings = sum(line.startswith("WARNING") for line in lines)
    return lines[: n_warnings + _FINDINGS]


def build_page(sections: dict[str, str]) -> str:
    """Build the page of all entries that have a section."""
    chosen = [entry for entry in ENTRIES if entry.title in sections]
    head = (
        "# Audits of real models\n\nReal models on real data, one command each. The data do not "
        "come with isolux: put each set's files into the folder that the command names. "
        "`make gallery DATA=FOLDER` makes this page again.\n\n"
    )
    return head + "".join(f"## {e.title}\n{sections[e.title]}" for e in chosen).rstrip() + "\n"


def _run_command(command: str, work: Path) -> str:
    """Run a command of isolux in the working folder; return what it printed, one finding a line."""
    program = [sys.executable, "-m", *shlex.split(command)]
    settings = {**os.environ, "COLUMNS": "100000"}
    ran = subprocess.run(  # noqa: S603
        program, cwd=work, env=settings, capture_output=True, text=True, check=False
    )
    if ran.returncode:
        raise SystemExit(f"{command}\n{ran.stderr}")
    return ran.stdout


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
