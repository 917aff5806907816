# ruff: noqa: E501 - a table: one case, one line
"""Cases by hand: a run, a policy, and what each rule must answer; asked by command, function, pytest.

Bounds of a single value are Clopper and Pearson's with 5 % on each side, of people who were each
sampled alone (statsmodels' ``proportion_confint(k, n, alpha=0.1, method="beta")``):

    190 of 200   .950   .916 to .973        188 of 200   .940   .905 to .965
    150 of 200   .750   .695 to .800        378 of 400   .945   .922 to .962
    200 of 200  1.000   .985 to 1           57 of 60     .950   .876 to .986
    54 of 60     .900   .812 to .956        20 of 400    .050   .033 to .072

and the p of 378 of 400 against .97 is the binomial tail, .0053. A difference is every gap g at which
(d − g)² <= 1.645² V(g), and here V(g) is nearly a(1 − a)/200 + b(1 − b)/200: .95 − .94 has a standard
error of 2.3 points, −2.7 to 4.7; .95 − .75 one of 3.4, 14.3 to 25.6; 1 − 1 has g = 1.645² g(1 − g)/200
at its ends, −1.3 to 1.3. Of the same people with the same answers the two of Wilson's ends (.918 to
.970) are wholly correlated: .95 − .95 has .032 − .020 = 1.2 points either way.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from isolux.core.containers import Run
from tests.policy._runs import accuracy, run_of

ALIKE = {"day": (190, 200), "night": (188, 200)}
APART = {"day": (190, 200), "night": (150, 200)}
SMALL = {"day": (57, 60), "night": (54, 60)}
PERFECT = {"day": (200, 200), "night": (200, 200)}
DUSK = {"day": (190, 200), "dusk": (5, 5)}
ALARMS = {"day": (10, 200), "night": (10, 200)}
FEW_SELECTED = {"day": (100, 200), "night": (98, 200)}
NONE_SELECTED = {"day": (100, 200), "night": (0, 200)}


@dataclass(frozen=True)
class Case:
    """``answers`` of the rules; or ``broken``: the words of an error, and its exit code."""

    name: str
    run: str
    rules: tuple[dict[str, Any], ...]
    answers: tuple[str, ...] = ()
    says: str = ""
    baseline: str | None = None
    broken: int = 0
    more: dict[str, Any] = field(default_factory=dict)

    @property
    def code(self) -> int:
        """The exit code: by the worst answer."""
        if self.broken:
            return self.broken
        return 1 if "fail" in self.answers else 3 if "insufficient" in self.answers else 0


@cache
def run(name: str) -> Run:
    """Make one of the runs."""
    made = {
        "alike": lambda: run_of(ALIKE),
        "apart": lambda: run_of(APART),
        "small": lambda: run_of(SMALL),
        "perfect": lambda: run_of(PERFECT),
        "dusk": lambda: run_of(DUSK),
        "alarms": lambda: run_of(ALARMS, metric="false_positive_rate"),
        "selected": lambda: run_of(FEW_SELECTED, metric="selection_rate"),
        "none selected": lambda: run_of(NONE_SELECTED, metric="selection_rate"),
        # The same as "alike", but ten photos of each person, all right or all wrong.
        "clusters": lambda: run_of(ALIKE, photos=10),
        "few clusters": lambda: run_of({"day": (140, 140), "night": (130, 130)}, photos=10),
        "other people": lambda: run_of(ALIKE, ids="other-"),
        "silent": lambda: run_of(ALIKE, silent=20),
        "one group": lambda: run_of({"day": (190, 200)}),
    }
    return made[name]()


def _selected(**rule: Any) -> dict[str, Any]:
    return {"metric": "selection_rate", "attribute": "light", **rule}


def _alarms(**rule: Any) -> dict[str, Any]:
    return {"metric": "false_positive_rate", **rule}


OVERALL = {"metric": "selection_rate", "at_least": "30 %"}
PASS, FAIL, SHORT = ("pass",), ("fail",), ("insufficient",)

CASES = [
    # at_least: 378 of 400 are right.
    Case("everyone above", "alike", (accuracy(attribute=None, at_least="90 %"),), PASS, "94.5 %"),
    Case("everyone below", "alike", (accuracy(attribute=None, at_least="97 %"),), FAIL, "p = 0.005"),
    Case("everyone near", "alike", (accuracy(attribute=None, at_least="94 %"),), SHORT, "more people"),
    Case("a share as a limit", "alike", (accuracy(attribute=None, at_least="0.9 share"),), PASS),
    Case("each group above", "alike", (accuracy(at_least="90 %"),), PASS, "in all 2 cases; nearest: night"),
    Case("one group below", "apart", (accuracy(at_least="85 %"),), FAIL, "night has 75.0 % (69.5 to 80.0)"),
    Case("few people", "small", (accuracy(at_least="88 %"),), SHORT, "night has 90.0 % (81.2 to 95.6)"),
    Case("five people", "dusk", (accuracy(at_least="80 %"),), SHORT, "at least 45 more people and 5 more clusters of dusk"),
    Case("some groups alone", "dusk", (accuracy(at_least="80 %", groups=["day"]),), PASS),
    Case("a group that is not there", "alike", (accuracy(at_least="80 %", groups=["day", "nigth"]),),
         FAIL, "nigth: the run has no such group (it has day, night); did you mean night?"),
    Case("an attribute that is not there", "alike", (accuracy(at_least="80 %", attribute="ligth"),), FAIL,
         "ligth: the run has no such attribute or intersection (it has light); did you mean light?"),
    Case("a metric that no task knows", "alike", ({"metric": "acuracy", "at_least": "80 %"},), broken=2,
         says="did you mean 'accuracy'"),
    Case("a metric that was not measured", "alike", ({"metric": "recall", "at_least": "80 %"},), FAIL,
         "recall: the run did not measure it (the run has accuracy)"),
    Case("a model that is not there", "alike", (accuracy(at_least="80 %", model="n"),), FAIL, "no such model"),
    Case("ten photos a person", "clusters", (accuracy(attribute=None, at_least="90 %"),), SHORT,
         "more clusters would decide it"),
    Case("no interval that holds", "few clusters", (accuracy(at_least="50 %"),), SHORT,
         "at least 1 more cluster of day; at least 2 more clusters of night"),
    # at_most: 20 of 400 alarms, .035 to .071.
    Case("few alarms", "alarms", (_alarms(at_most="10 %"),), PASS),
    Case("too many alarms", "alarms", (_alarms(at_most="3 %"),), FAIL),
    Case("alarms near the limit", "alarms", (_alarms(at_most="6 %"),), SHORT),
    Case("the wrong side", "alarms", (_alarms(at_least="3 %"),), broken=2, says="less is better"),
    Case("a limit beyond all shares", "alike", (accuracy(at_least="120 %"),), broken=2, says="less than 100 %"),
    # within
    Case("alike", "alike", (accuracy(max_difference="6 points"),), PASS, "(−3.1 to 5.2)"),
    Case("alike, but not shown", "alike", (accuracy(max_difference="4 points"),), SHORT, "of night"),
    Case("apart", "apart", (accuracy(max_difference="10 points"),), FAIL, "day is 20.0 points above night (14.2 to 26.0)"),
    Case("apart within a wide margin", "apart", (accuracy(max_difference="26 points"),), PASS),
    Case("no errors", "perfect", (accuracy(max_difference="2 points"),), PASS, "0.0 points"),
    Case("no errors, few people", "perfect", (accuracy(max_difference="1 point"),), SHORT, "more people"),
    Case("a margin without unit", "alike", (accuracy(max_difference=5),), broken=2, says="write `max_difference: 5 points`"),
    Case("a margin in percent", "alike", (accuracy(max_difference="5 %"),), broken=2, says="two ways"),
    Case("no margin at all", "alike", (accuracy(max_difference="0 points"),), broken=2, says="leaves no room"),
    Case("another unit", "alike", (accuracy(max_difference="2 dB"),), broken=2, says="points or a share"),
    Case("one group", "one group", (accuracy(max_difference="5 points"),), FAIL, "fewer than two groups"),
    # max_deficit
    Case("none is behind", "alike", (accuracy(max_deficit="6 points"),), PASS),
    Case("night is behind", "apart", (accuracy(max_deficit="10 points"),), FAIL,
         "night is 20.0 points below everyone else (14.2 to 26.0)"),
    Case("behind, perhaps", "alike", (accuracy(max_deficit="3 points"),), SHORT),
    Case("behind one group", "apart", (accuracy(max_deficit="10 points", reference="day"),), FAIL, "below day"),
    Case("ahead of one group", "apart", (accuracy(max_deficit="10 points", reference="night"),), PASS),
    Case("behind a group that is not there", "apart", (accuracy(max_deficit="10 points", reference="noon"),),
         FAIL, "noon: the run has no such group"),
    Case("worse where nothing is", "selected", (_selected(max_deficit="10 points"),), broken=2,
         says="nothing is worse"),
    # max_drop
    Case("the model of yesterday", "alike", (accuracy(max_drop="2 points"),), PASS, baseline="alike"),
    Case("night lost", "apart", (accuracy(max_drop="1 point"),), FAIL, "night changed by −19.0 points",
         baseline="alike"),
    Case("night gained", "alike", (accuracy(max_drop="2 points"),), PASS, baseline="apart"),
    Case("everyone lost, by how much?", "apart", (accuracy(attribute=None, max_drop="10 points"),), SHORT,
         "in both runs", baseline="alike"),
    Case("no baseline", "alike", (accuracy(max_drop="1 point"),), broken=2, says="--baseline RUN"),
    Case("as many are in both as are said", "alike", (accuracy(max_drop="2 points"),), PASS,
         "400 people are in both runs", baseline="alike"),
    Case("half are there", "one group", (accuracy(max_drop="9 points", attribute=None),), FAIL,
         "200 of its 400 people are not in this run", baseline="alike"),
    Case("half are there, as agreed", "one group",
         (accuracy(max_drop="9 points", attribute=None, people="shared"),), PASS,
         "200 people are in both runs", baseline="alike"),
    Case("silent", "silent", (accuracy(at_least="70 %"),), FAIL,
         "night: 20 of 200 people (10.0 %) have no prediction"),
    Case("silent, of everyone", "silent", (accuracy(at_least="70 %", attribute=None),), FAIL,
         "everyone: 20 of 400 people (5.0 %) have no prediction, and the policy allows 1 %"),
    Case("silent, as agreed", "silent", (accuracy(at_least="70 %"),), PASS,
         more={"unanswered_at_most": "10 %"}),
    Case("a silent baseline", "alike", (accuracy(max_drop="9 points"),), FAIL,
         "of everyone, 20 of its 400 people have no prediction", baseline="silent"),
    Case("the same people, other ids", "alike", (accuracy(max_drop="6 points", people="different"),), PASS,
         "row by row, under other ids", baseline="other people"),
    Case("no groups", "alike", (accuracy(at_least="80 %", groups=[]),), broken=2, says="groups lists none"),
    Case("a group held to itself", "apart",
         (accuracy(max_deficit="5 points", groups=["day"], reference="day"),), broken=2, says="held to itself"),
    Case("a level without unit", "alike", (accuracy(at_least=0.85),), broken=2, says="write `at_least: 85 %`"),
    Case("less than a percent", "alike", (accuracy(at_least="0.85 %"),), broken=2, says="did you mean 85 %?"),
    Case("a comma", "alike", (accuracy(at_least="85,5 %"),), broken=2, says="with a point: `at_least: 85.5 %`"),
    Case("other people, not said", "alike", (accuracy(max_drop="9 points"),), FAIL, "none of this run's people",
         baseline="other people"),
    Case("other people", "alike", (accuracy(max_drop="6 points", people="different"),), PASS,
         baseline="other people"),
    Case("other people, near", "alike", (accuracy(max_drop="3 points", people="different"),), SHORT,
         baseline="other people"),
    Case("said to be others, and are not", "alike", (accuracy(max_drop="9 points", people="different"),), FAIL,
         "400 people are in both runs", baseline="alike"),
    Case("a baseline of another metric", "alike", (accuracy(max_drop="9 points"),), FAIL,
         baseline="alarms"),
    # ratio_at_least
    Case("a ratio", "selected", (OVERALL, _selected(ratio_at_least=0.8)), ("pass", "pass")),
    Case("four fifths", "apart", (accuracy(attribute=None, at_least="50 %"), accuracy(ratio_at_least=0.9)),
         ("pass", "fail"), "night has 0.789 times that of day"),
    Case("a ratio, not shown", "selected", (OVERALL, _selected(ratio_at_least=0.9)), ("pass", "insufficient")),
    Case("a ratio of nothing", "none selected", ({**OVERALL, "at_least": "10 %"}, _selected(ratio_at_least=0.8)),
         ("pass", "fail"), "a value of 0 leaves their ratio undefined"),
    Case("a ratio alone", "selected", (_selected(ratio_at_least=0.8),), broken=2,
         says="says nothing of how large the errors are"),
    # covered, ran, no_finding_above
    Case("all are there", "alike", ({"required_groups": "light", "groups": ["day", "night"], "people": 200},), PASS),
    Case("too few are there", "alike", ({"required_groups": "light", "people": 300},), SHORT, "100 more people"),
    Case("too few clusters", "clusters", ({"required_groups": "light", "clusters": 25},), SHORT, "5 more clusters"),
    Case("one is not there", "alike", ({"required_groups": "light", "groups": ["dawn"]},), FAIL, "no such group"),
    Case("it ran", "alike", ({"required_analyses": "group_gaps"},), PASS),
    Case("it did not run", "alike", ({"required_analyses": ["group_gaps", "power"]},), FAIL, "power: it did not run"),
    Case("an analysis that does not exist", "alike", ({"required_analyses": ["pover"]},), broken=2, says="did you mean 'power'"),
    Case("no gap so large", "alike", ({"findings": ["group_gaps"], "no_finding_above": "6 points"},), PASS),
    Case("a gap so large", "apart", ({"findings": ["group_gaps"], "no_finding_above": "10 points"},), FAIL),
    Case("a gap, perhaps", "alike", ({"findings": ["group_gaps"], "no_finding_above": "4 points"},), SHORT),
    Case("an analysis that vetoes must have run", "alike",
         ({"findings": ["group_gaps", "confounders"], "no_finding_above": "5 points"},), FAIL, "did not run"),
    # All rules together
    Case("one is short", "alike", (accuracy(at_least="90 %"), accuracy(max_difference="4 points")), ("pass", "insufficient")),
    Case("short and failed", "apart", (accuracy(max_difference="19 points"), accuracy(at_least="85 %")),
         ("insufficient", "fail")),
    Case("a key that does not exist", "alike", (accuracy(max_difference="5 points", grups=["day"]),), broken=2,
         says="did you mean 'groups'"),
    Case("two questions in one", "alike", (accuracy(max_difference="5 points", at_least="80 %"),), broken=2,
         says="asks two things"),
    Case("a level", "alike", (accuracy(max_difference="5 points"),), SHORT, more={"level": 0.99}),
    Case("no such level", "alike", (accuracy(max_difference="5 points"),), broken=2, more={"level": 95}, says="0.8 to 0.9999"),
]  # fmt: skip
