"""Words of statements: lengths, signs, decimals and cautions; never whole sentences."""

import polars as pl
import pytest

import isolux
from isolux.analyses.group_gaps import explain
from isolux.statements.answer import answer_from_run
from isolux.statements.choice import choose_statements
from isolux.statements.text import describe_statement_briefly
from tests.statements._runs import block, run_of

MAX_FIRST, MAX_FINDING = 40, 30

# Right of how many. As the cases that issue 35 began with, of other numbers.
CASES = {
    "a minority hidden by large groups": (
        ("race",),
        {("Black",): (360, 600), ("White",): (2850, 3000), ("Asian",): (1395, 1500)},
        ("Black", "White"),
    ),
    "one attribute and a small group": (
        ("race",),
        {("white",): (2907, 3000), ("asian",): (1420, 1500), ("black",): (122, 200)},
        ("black", "white"),
    ),
    "an intersection as in Gender Shades": (
        ("sex", "race", "sex*race"),
        {("M", "white"): (1452, 1500), ("F", "white"): (1372, 1500),
         ("M", "black"): (260, 300), ("F", "black"): (188, 300)},
        ("F × black", "M × white"),
    ),
    "selected, of small and large groups": (
        ("sex", "race", "sex*race"),
        {("Female", "Asian"): (57, 272), ("Female", "White"): (317, 1546),
         ("Male", "Asian"): (94, 298), ("Male", "Hispanic or Latino"): (192, 577),
         ("Female", "Black or African American"): (100, 586), ("Male", "White"): (459, 1520),
         ("Male", "Native Hawaiian"): (4, 12), ("Female", "Hispanic or Latino"): (127, 593),
         ("Male", "Black or African American"): (140, 586),
         ("Female", "Native Hawaiian"): (1, 10)},
        None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_first_sentence_has_at_most_40_words_and_a_finding_30(name):
    by, cells, sides = CASES[name]
    names = [part for part in by if "*" not in part]
    rows = [
        dict(zip(names, cell, strict=True)) | {"yes": i < right}
        for cell, (right, n) in cells.items()
        for i in range(n)
    ]
    frame = pl.DataFrame(rows).with_columns(
        pl.int_range(pl.len()).alias("id"),
        truth=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("a")).otherwise(pl.lit("b")),
    )
    other = pl.when(pl.col("truth") == "a").then(pl.lit("b")).otherwise(pl.lit("a"))
    frame = frame.with_columns(answer=pl.when("yes").then("truth").otherwise(other))
    settings = {"target": "truth", "prediction_column": "answer"}
    if sides is None:
        frame = frame.with_columns(answer=pl.when("yes").then(pl.lit("in")).otherwise(pl.lit("no")))
        settings |= {"target": "answer", "positive": "in", "metric": ["selection_rate"]}
    audit = isolux.audit(frame.drop("yes"), id="id", by=list(by), replicates=199, **settings)
    answer, findings = answer_from_run(audit.run), audit.findings
    assert len(answer.first.split()) <= MAX_FIRST, answer.first
    assert findings["claim"][0] == answer.first
    for row in findings[1:].iter_rows(named=True):
        sides_words = f"{row['group_a'] or ''} {row['group_b'] or ''}".split()
        long_names = max(0, len(sides_words) - 4)
        assert len(row["claim"].split()) <= MAX_FINDING + long_names, row["claim"]
    told = " ".join([answer.first, *answer.further, *findings["claim"]])
    assert "widest" not in told
    if sides is None:
        assert "worse" not in answer.first  # neither way is better by itself
        assert answer.line["metric"] == "selection_rate"
    else:
        assert findings.select("group_a", "group_b").row(0) == sides


def one(a, b, *, half=0.01, status=None, **measure):
    """Word the finding of two groups A and B."""
    run = run_of(block({"A": a, "B": b}, ("A", "B", 0.001), half=half, status=status, **measure))
    choice = choose_statements(run)
    return describe_statement_briefly(choice.stated[0], choice.names)


@pytest.mark.parametrize(
    ("a", "b", "half", "words"),
    [
        (0.60, 0.95, 0.05, ("35.0 points lower for people labelled A", "30.0 to 40.0")),
        (0.95, 0.60, 0.05, ("35.0 points lower for people labelled B", "30.0 to 40.0")),
        # An interval that holds 0 is of how much lower.
        (0.60, 0.63, 0.05, ("3.0 points lower", "\N{MINUS SIGN}2.0 to 8.0")),
        # An end that is not 0 is not printed as 0.
        (0.60, 0.71, 0.10967, ("11.00 points lower", "0.03 to 21.97")),
        (0.6000, 0.6003, 0.0002, ("0.03 points lower", "0.01 to 0.05")),
    ],
)
def test_a_gap_says_how_much_and_which_way_with_its_simultaneous_interval(a, b, half, words):
    told = one(a, b, half=half)
    for part in words:
        assert part in told
    assert told.count(" p = ") == 1
    assert told.count(" to ") == 1


def test_a_caution_is_in_the_brackets():
    told = one(0.6, 0.9, status={"A": {"status": "few clusters", "reason": "17 clusters"}})
    assert "caution: 17 clusters" in told


@pytest.mark.parametrize(
    ("spec", "phrase"), [({}, "adjusted p = 0.001"), ({"correction": "none"}, "(not adjusted")]
)
def test_whether_p_is_adjusted_is_said(spec, phrase):
    run = run_of(block({"A": 0.6, "B": 0.9}, ("A", "B", 0.001)), **spec)
    assert phrase in answer_from_run(run).first


def test_the_level_of_the_tests_is_one_minus_that_of_the_intervals():
    rows = block({"A": 0.6, "B": 0.9}, ("A", "B", 0.08))
    assert choose_statements(run_of(rows)).stated == ()
    assert len(choose_statements(run_of(rows, level=0.9)).stated) == 1


def test_with_several_models_each_sentence_begins_with_its_model():
    parts = [block({"A": 0.6, "B": 0.9}, ("A", "B", 0.001), model=name) for name in ("m", "other")]
    choice = choose_statements(run_of(*parts))
    sentences = [describe_statement_briefly(s, choice.names) for s in choice.stated]
    assert [sentence.partition(":")[0] for sentence in sentences] == ["m", "other"]


def test_a_name_of_500_letters_does_not_drown_a_sentence():
    long = "L" * 500
    run = run_of(block({long: 0.6, "B": 0.9}, (long, "B", 0.001)))
    assert len(answer_from_run(run).first) < 500
    assert choose_statements(run).stated[0].row["group"] == long


MARGIN = {"kind": "max_difference_bound", "group_a": None, "group_b": None, "low": None,
          "high": 0.03, "value": 0.01, "p_value": 0.01, "p_adjusted": 0.01}  # fmt: skip


@pytest.mark.parametrize(
    ("p", "status", "phrase"),
    [
        (0.01, "ok", "is shown"),
        (0.20, "ok", "is not shown"),
        (None, "few clusters", "cannot be judged: few clusters"),
    ],
)
def test_a_margin_is_shown_not_shown_or_not_judged(p, status, phrase):
    rows = block({"A": 0.9, "B": 0.91}, ("A", "B", 0.7))
    within = {**rows[-1], **MARGIN, "p_adjusted": p, "status": status, "reason": "few clusters"}
    within |= {"simultaneous_low": None, "simultaneous_high": None}
    findings = explain(run_of([*rows, within], margin=5.0)).findings
    claims = [c for c in findings["claim"] if "more than 5 points" in c]
    assert len(claims) == 1
    assert phrase in claims[0]


def test_of_many_attributes_a_null_result_names_the_first_and_counts_the_others():
    blocks = [
        block({"a": 0.9, "b": 0.91}, ("a", "b", 0.8), attribute=f"x{k}") for k in range(31)
    ]  # fmt: skip
    first = answer_from_run(run_of(*blocks)).first
    assert "x0, x1, x2 and 28 more" in first
    assert len(first.split()) <= MAX_FIRST
