"""The golden runs: which commands are run, and the inputs that no command of isolux writes.

Commands are run in one folder. Paths that begin with ``in/`` are inputs, made when first needed.
"""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path

import numpy as np
import polars as pl

_COCO = "data/annotations/instances_val2017.json"
_TONES = "--group skin_tone:lighter=1,2,3,4,5 --group skin_tone:darker=6,7,8,9,10"
_CONFOUNDERS = (
    "--explain confounders --analysis-option confounders.sensitive=skin_tone "
    "--analysis-option confounders.explanatory=lighting"
)
_PEOPLE = "audit table:in/people/people.csv --id photo --cluster subject --target occupation"

WORLDS = {
    "facet": "synthesize biased --layout facet --no-pixels --households 200 --out in/facet",
    "fhibe": "synthesize biased --layout fhibe --no-pixels --households 80 --out in/fhibe",
    "coco": "synthesize confounded --layout coco --no-pixels --households 250 --out in/coco",
    "bdd100k": "synthesize biased --layout bdd100k --no-pixels --households 250 --out in/bdd100k",
    "dollarstreet": "synthesize biased --layout dollarstreet --no-pixels --households 300 "
    "--out in/dollarstreet",
    "people": "demo --out in/people",
}
"""Inputs that isolux writes, each by one command."""

RUNS = {
    "facet": """
audit facet:in/facet/data --protocol facet:classification \
  --predictions in/facet/predictions/aurora/classification.csv --out facet/classification
audit facet:in/facet/data --protocol facet:detection \
  --predictions in/facet/predictions/aurora/detection.json --out facet/detection
audit facet:in/facet/data --protocol facet:open_vocabulary \
  --predictions in/facet/predictions/aurora/open_vocabulary.parquet --out facet/open_vocabulary
""",
    "fhibe": """
audit fhibe:in/fhibe/data --protocol fhibe:detection --person-label 1 \
  --predictions in/fhibe/predictions/aurora/detection.json --out fhibe/detection
audit fhibe:in/fhibe/data --protocol fhibe:keypoints --by pronoun --by natural_skin_color \
  --predictions in/fhibe/predictions/aurora/keypoints.json --out fhibe/keypoints
""",
    "icon2": """
audit bdd100k:in/bdd100k/data --protocol icon2:detection \
  --predictions in/bdd100k/predictions/aurora/detection.json \
  --prediction-option categories=in/categories/categories.json \
  --data-option info=in/bdd100k/data/info/100k/val \
  --data-option districts=in/bdd100k/data/districts/districts.geojson \
  --data-option incomes=in/bdd100k/data/districts/income.csv --out icon2/detection
""",
    "fairface": """
audit fairface:in/faces/labels.csv --protocol fairface:gender \
  --predictions in/faces/network.csv --prediction-column gender --out fairface/gender
audit fairface:in/faces/labels.csv --protocol fairface:services \
  --predictions in/faces/service.csv --prediction-column gender --out fairface/services
audit fairface:in/faces/labels.csv --target race --id-from basename --by race \
  --predictions in/faces/network.csv --prediction-column race --out fairface/race
compare --datasets One=fairface/gender,fairface/race Two=fairface/gender --out fairface/across
""",
    "fairness_indicators": """
audit dollarstreet:in/dollarstreet/data --protocol fairness_indicators:geodiversity \
  --predictions in/dollarstreet/predictions/aurora/geodiversity.csv --out fairness_indicators/homes
audit casual_conversations:in/conversations \
  --protocol fairness_indicators:label_association_faces \
  --predictions in/conversations/labels.csv --out fairness_indicators/faces
""",
    "detection": """
audit coco:in/coco/COCO --task detection --predictions in/coco/predictions/aurora/detection.json \
  --by skin_tone --by lighting --by skin_tone*lighting TONES --out detection/run
""",
    "explain": """
audit coco:in/coco/COCO --task detection --predictions in/coco/predictions/aurora/detection.json \
  --metric recall_at_iou --by skin_tone --by lighting TONES CONFOUNDERS --out explain/people
PEOPLE --prediction-column prediction_aurora --score-column score_aurora --by lighting \
  --by region --out explain/plain
explain explain/plain --out explain/all
""",
    "verification": """
audit pairs:in/pairs/pairs.csv --task face_verification --threshold 0.5 --by race \
  --out verification/run
explain verification/run --analysis tradeoffs --analysis biometrics --out verification/explained
card verification/run --kind biometric --out verification/card
""",
    "border": """
demo --gate --out border/demo
card border/demo/age_estimation --kind age-estimation --out border/card
""",
    "classification": """
PEOPLE --prediction-column prediction_aurora --by lighting --by region --by lighting*region \
  --by perceived_gender_presentation*lighting --reference lighting=bright --margin 5 \
  --metric accuracy --metric recall --out classification/reference
PEOPLE --prediction-column prediction_aurora --positive teacher --metric true_positive_rate \
  --metric false_positive_rate --metric precision --metric selection_rate --by lighting \
  --by lighting*region --correction holm --out classification/positive
audit table:in/numbers/people.csv --target hired --positive yes --score-column chance \
  --threshold 0.5 --metric roc_auc --metric true_positive_rate --metric average_precision \
  --by race --out classification/scores
report classification/reference --publish-min 10 --out classification/published.html
""",
    "gate": """
PEOPLE --prediction-column prediction_aurora --by lighting --by region --out gate/aurora
PEOPLE --prediction-column prediction_borealis --by lighting --by region --out gate/borealis
gate --init gate/aurora
gate gate/aurora --policy in/policy/policy.yaml --baseline gate/borealis \
  --json-file gate/decision.json --junit gate/decision.xml --markdown gate/decision.md
gate gate/borealis --policy in/policy/policy.yaml --baseline gate/aurora
""",
    "monitor": """
audit table:in/months/1.csv --target job --prediction-column answer --by tone --out monitor/1
audit table:in/months/2.csv --target job --prediction-column answer --by tone --out monitor/2
audit table:in/months/3.csv --target job --prediction-column answer --by tone --out monitor/3
audit table:in/months/4.csv --target job --prediction-column answer --by tone --out monitor/4
monitor monitor/1 monitor/2 monitor/3 monitor/4 --out monitor/all \
  --at 2026-01-31 --at 2026-02-28 --at 2026-03-31 --at 2026-04-30
""",
    "compare": """
PEOPLE --prediction-column prediction_aurora --by lighting --by lighting*region \
  --out compare/aurora
PEOPLE --prediction-column prediction_borealis --by lighting --by lighting*region \
  --out compare/borealis
compare compare/aurora compare/borealis --relative --out compare/both
PEOPLE --predictions in/third/answers.csv --prediction-column answer --by lighting \
  --by lighting*region --out compare/third
compare seeds=compare/aurora,compare/third other=compare/borealis --out compare/side_by_side
""",
    "in_memory": "python -m scripts.golden_runs in/people",
    "shards": """
describe table:in/people/people.csv --by lighting
audit table:in/shards/people --id photo --cluster subject --target occupation \
  --prediction-column prediction_aurora --by lighting --by lighting*region --explain power \
  --out shards/run
""",
    "card": """
PEOPLE --prediction-column prediction_aurora --by lighting --by region --by lighting*region \
  --positive teacher --metric accuracy --metric selection_rate --out card/run
card card/run --kind model-card --out card/cards
card card/run --kind bias-profile --out card/cards
card card/run --kind annex-iv --out card/cards
card card/run --kind dataset-card --publish-min 10 --out card/cards
card card/run --kind croissant --out card/cards
card card/run --kind ll144
""",
    "numbers": """
audit table:in/numbers/people.csv --task regression --target age --prediction-column age_hat \
  --by race --out numbers/regression
audit table:in/numbers/people.csv --task number --score-column clip --by income \
  --bins income=quantile:4:right --out numbers/number
audit counts:in/numbers/counts.csv --task counts --by race --out numbers/counts
audit ratings:in/numbers/ratings.csv --task agreement --by tone --out numbers/agreement
curate consensus ratings:in/numbers/ratings.csv --method dawid-skene --out numbers/consensus
""",
    "datasets": """
describe facet:in/facet/data table:in/people/people.csv --out datasets/described.html
describe table:in/people/people.csv --by lighting*region --json
check coco:in/coco/COCO --no-images --out datasets/problems.csv
sample table:in/people/people.csv --id photo --balance lighting,region --per-cell 40 --seed 1 \
  --out datasets/sample.csv
export in/coco/predictions/aurora/detection.json --to parquet --out datasets/boxes.parquet
export coco:in/coco/COCO --out datasets/fiftyone
""",
    "pixels": "demo --pixels --out pixels/demo",
    "curation": """
python -m isolux_worlds.rehearsal inbox --out in/inbox --photos 100 --seed 1
python -m scripts.golden_runs project
curate grant curation/faces/consent.jsonl --list in/inbox/granted.txt --scope evaluation \
  --scope publication
curate add curation/faces in/inbox/photos.csv --photos in/inbox/photos \
  --subjects in/inbox/subjects.csv
curate intake curation/faces --devices in/inbox/devices.csv --letters curation/letters.csv
python -m isolux_worlds.rehearsal review curation/faces --inbox in/inbox --out curation/review
curate decide curation/faces curation/review/saved_anew.csv --step review --rule "saved anew"
curate tasks curation/faces --stage count --out work
python -m isolux_worlds.rehearsal golden curation/faces --inbox in/inbox --stage count \
  --out curation/golden.csv
curate golden curation/faces curation/golden.csv --stage count
python -m isolux_worlds.rehearsal annotate curation/faces --inbox in/inbox --stage count \
  --training --out curation/training.csv
curate answers curation/faces curation/training.csv --stage count
curate show raters curation/faces --stage count
python -m isolux_worlds.rehearsal annotate curation/faces --inbox in/inbox --stage count \
  --out curation/count.csv
curate answers curation/faces curation/count.csv --stage count
curate tasks curation/faces --stage boxes --out work
python -m isolux_worlds.rehearsal golden curation/faces --inbox in/inbox --stage boxes \
  --out curation/golden.csv
curate golden curation/faces curation/golden.csv --stage boxes
python -m isolux_worlds.rehearsal annotate curation/faces --inbox in/inbox --stage boxes \
  --training --out curation/training.csv
curate answers curation/faces curation/training.csv --stage boxes
curate show raters curation/faces --stage boxes --graduate ada
python -m isolux_worlds.rehearsal annotate curation/faces --inbox in/inbox --stage boxes \
  --out curation/boxes.csv
curate answers curation/faces curation/boxes.csv --stage boxes
curate revoke curation/faces/consent.jsonl --list in/inbox/withdrawn.txt
curate intake curation/faces --devices in/inbox/devices.csv
curate status curation/faces
curate publish curation/faces --out curation/public --key in/key/names.key \
  --attribute age_group
python -m isolux_worlds.rehearsal predict curation/public/objects.json --photos curation/public \
  --inbox in/inbox --out curation/aurora.csv
audit curated:curation/public --task detection --predictions curation/aurora.csv \
  --metric recall_at_iou --by age_group --out curation/audit
withdraw curation/faces curation/public curation/audit --list in/inbox/later.txt \
  --published-key in/key/names.key
""",
}
"""Each golden run's commands: isolux's, but for lines that begin with ``python``."""


def commands(name: str) -> str:
    """Give a run's commands with the parts that several share filled in."""
    text = RUNS[name].replace("COCO", _COCO).replace("TONES", _TONES)
    return text.replace("CONFOUNDERS", _CONFOUNDERS).replace("PEOPLE", _PEOPLE)


def write_faces(folder: Path) -> None:
    """Write FairFace's labels, a network's answers and a service's that misses some faces."""
    rng = np.random.default_rng(1)
    n = 1200
    races = ["White", "Black", "East Asian", "Southeast Asian", "Indian", "Latino_Hispanic",
             "Middle Eastern"]  # fmt: skip
    ages = ["0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70"]
    genders = ["Male", "Female"]
    race, age, gender = (rng.choice(values, n) for values in (races, ages, genders))
    file = [f"val/{k}.jpg" for k in range(n)]
    labels = pl.DataFrame({"file": file, "age": age, "gender": gender, "race": race})
    labels.write_csv(folder / "labels.csv")
    right = rng.random(n) < np.where((race == "Black") & (gender == "Female"), 0.75, 0.93)
    said = np.where(right, gender, np.where(gender == "Male", "Female", "Male"))
    guess = np.where(rng.random(n) < 0.8, race, rng.choice(races, n))
    network = pl.DataFrame({"file": file, "gender": said, "race": guess})
    network.write_csv(folder / "network.csv")
    missed = pl.Series(rng.random(n) < np.where(race == "Black", 0.12, 0.03))
    service = network.select("file", gender=pl.when(~missed).then("gender"))
    service.write_csv(folder / "service.csv")


def write_conversations(folder: Path) -> None:
    """Write people of Casual Conversations and labels that harm darker women more often."""
    rng = np.random.default_rng(3)
    content, rows = {}, []
    for k in range(300):
        gender, skin = rng.choice(["Female", "Male"]), int(rng.integers(1, 7))
        label = {"age": str(int(rng.integers(18, 80))), "gender": gender, "skin-type": str(skin)}
        files = [f"CC/{k:04}/{k:04}_{v:02}.MP4" for v in (0, 1)]
        content[f"{k:04}"] = {"files": files, "label": label}
        for v in (0, 1):
            bad = rng.random() < (0.3 if gender == "Female" and skin > 3 else 0.05)
            words = (("dog" if bad else "cup", 0.4), ("face", 0.3), ("a", 0.09), ("b", 0.08))
            rows += [(f"{k:04}_{v:02}", word, score) for word, score in words]
    (folder / "CasualConversations.json").write_text(json.dumps(content))
    labels = pl.DataFrame(rows, schema=["id", "label", "score"], orient="row")
    labels.write_csv(folder / "labels.csv")


def write_pairs(folder: Path) -> None:
    """Write a verifier's pairs of two races, of whom one is confused more often."""
    rng = np.random.default_rng(4)
    rows = [
        {"id1": f"{race}{k}", "id2": f"{race}{other}", "same": int(k == other), "race": race,
         "score": round(float(rng.normal(0.7 if k == other else mean, 0.12)), 4)}
        for race, mean in (("a", 0.25), ("b", 0.33)) for k in range(150)
        for other in (k, (k + 1) % 150, (k + 7) % 150)
    ]  # fmt: skip
    pl.DataFrame(rows).write_csv(folder / "pairs.csv")


def write_months(folder: Path) -> None:
    """Write four months of other people; in the last two the model is worse for one tone."""
    for month in (1, 2, 3, 4):
        rng = np.random.default_rng([5, month])
        tone, job = rng.choice(["a", "b"], 600), rng.choice(["nurse", "cook"], 600)
        right = rng.random(600) < np.where((tone == "b") & (month > 2), 0.7, 0.9)
        answer = np.where(right, job, np.where(job == "nurse", "cook", "nurse"))
        ids = [f"{month}-{k}" for k in range(600)]
        people = pl.DataFrame({"id": ids, "tone": tone, "job": job, "answer": answer})
        people.write_csv(folder / f"{month}.csv")


def write_numbers(folder: Path) -> None:
    """Write ages and their estimates, counts by group, and five annotators' answers."""
    rng = np.random.default_rng(6)
    n = 600
    race, hired = rng.choice(["a", "b", "c"], n), rng.choice(["yes", "no"], n)
    age = rng.integers(18, 80, n)
    people = pl.DataFrame({
        "id": [f"p{k}" for k in range(n)], "race": race, "age": age,
        "age_hat": (age + rng.normal(np.where(race == "c", 3, 0), 5)).round(1),
        "hired": hired,
        "chance": np.clip(rng.normal(np.where(hired == "yes", 0.6, 0.4), 0.2), 0, 1).round(4),
        "income": rng.lognormal(7, 1, n).round(2), "clip": rng.normal(0.25, 0.03, n).round(5),
    })  # fmt: skip
    people.write_csv(folder / "people.csv")
    counts = {"race": ["a", "b", "c"], "successes": [812, 640, 77], "n": [900, 800, 120]}
    pl.DataFrame(counts).write_csv(folder / "counts.csv")
    tone = rng.choice(["lighter", "darker"], 200)
    truth = rng.choice(["yes", "no"], 200)
    rows = [
        (k, f"r{r}", truth[k] if rng.random() < 0.9 else "yes", tone[k])
        for k in range(200) for r in rng.choice(5, 3, replace=False)
    ]  # fmt: skip
    ratings = pl.DataFrame(rows, schema=["item", "rater", "answer", "tone"], orient="row")
    ratings.write_csv(folder / "ratings.csv")


def write_shards(folder: Path) -> None:
    """Write the demo's people as Parquet files, some of whom answer in two of them."""
    people = pl.read_csv("in/people/people.csv")
    (folder / "people").mkdir()
    for k, start in enumerate(range(0, people.height, 900)):
        people[start : start + 900].write_parquet(folder / "people" / f"{k}.parquet")


def write_third(folder: Path) -> None:
    """Write answers of the demo's first model, every eleventh of which is another."""
    people = pl.read_csv("in/people/people.csv").with_row_index()
    answer = pl.when(pl.col("index") % 11 == 0).then(pl.lit("teacher"))
    answers = people.select(id="photo", answer=answer.otherwise("prediction_aurora"))
    answers.write_csv(folder / "answers.csv")


def write_categories(folder: Path) -> None:
    """Write what the numbers of a detector's classes mean in the streets' files."""
    categories = [{"id": 1, "name": "pedestrian"}, {"id": 2, "name": "rider"}]
    (folder / "categories.json").write_text(json.dumps({"categories": categories}))


def write_policy(folder: Path) -> None:
    """Write a policy of rules that pass, fail and cannot be decided."""
    (folder / "policy.yaml").write_text("""\
policy: 1
name: golden
rules:
  - {metric: accuracy, at_least: 80 %}
  - {metric: accuracy, attribute: lighting, at_least: 70 %}
  - {metric: accuracy, attribute: lighting, max_difference: 5 points}
  - {metric: accuracy, attribute: region, max_deficit: 3 points}
  - {metric: accuracy, attribute: lighting, max_drop: 1 point}
  - {metric: accuracy, attribute: region, ratio_at_least: 0.9}
  - {required_groups: lighting, groups: [dim, bright], people: 200, clusters: 50}
  - {required_analyses: [group_gaps]}
""")


def write_key(folder: Path) -> None:
    """Write the key that replaces ids, so that names are those of every run."""
    (folder / "names.key").write_text(f"{7:064x}\n")


FILES = {
    "faces": write_faces, "conversations": write_conversations, "pairs": write_pairs,
    "months": write_months, "numbers": write_numbers, "shards": write_shards,
    "policy": write_policy, "key": write_key, "third": write_third, "categories": write_categories,
}  # fmt: skip
"""Inputs that are written here, each by one function."""


def make_project() -> None:
    """Make the curated project of small painted photos, its key that of every run."""
    from isolux.cli import main

    secrets.token_hex = lambda nbytes=32: "07" * (nbytes or 32)
    sys.argv = ["isolux", "curate", "init", "curation/faces"]
    try:
        main()
    except SystemExit as done:
        if done.code:
            raise
    at = Path("curation/faces/project.yaml")
    classes = "classes: [gardener, guitarist, nurse, waiter]"
    text = at.read_text().replace("classes: []", classes)
    at.write_text(text.replace("rules: {}", "rules:\n  megapixels: {min_megapixels: 0.1}"))


def run_in_memory() -> None:
    """Audit scores and compare models in memory, and write the tables as files."""
    import isolux

    people = isolux.load("table", "in/people/people.csv", id="photo", cluster="subject")
    runs = {}
    for name in ("aurora", "borealis"):
        answers = isolux.read_predictions(
            "in/people/people.csv", id="photo", column=f"prediction_{name}"
        )
        scores = isolux.score("classification", people, answers, target="occupation")
        runs[name] = isolux.audit(
            scores, people, by=["lighting", "lighting*region"], cluster="subject"
        )
        print(runs[name])  # noqa: T201
    at = Path("in_memory")
    runs["aurora"].group_metrics.write_parquet(at / "group_metrics.parquet")
    runs["aurora"].disparities.write_parquet(at / "disparities.parquet")
    table = pl.read_csv("in/people/people.csv")
    frame = isolux.metric_frame(
        metrics={"accuracy": "accuracy", "selected": "selection_rate"},
        y_true=table["occupation"], y_pred=table["prediction_aurora"], positive="teacher",
        sensitive_features=table.select("lighting"), cluster=table["subject"],
    )  # fmt: skip
    frame.by_group.write_parquet(at / "by_group.parquet")
    print(frame.by_group, frame.difference(), frame.ratio(), sep="\n")  # noqa: T201


if __name__ == "__main__":
    make_project() if sys.argv[1:] == ["project"] else run_in_memory()
