"""How many more people a rule asks for, in words."""

from __future__ import annotations

import pytest

from isolux.policy.decision import RuleCase
from isolux.policy.rules import Policy
from isolux.policy.sentences import describe_needed_people

POLICY = Policy(rules=(), source="policy.yaml")


@pytest.mark.parametrize(
    ("more", "text"),
    [
        (9_900, "About 9,900 more people of night would decide it (probability 0.8)."),
        (14_000, ("night is so close to the limit that more people will hardly decide it "
                 "(about 14,000 more, 140 times as many as now).")),
        (None, "A value is so close to the limit that more people will hardly decide it."),
    ],
)  # fmt: skip
def test_a_group_at_its_limit_is_not_sent_for_a_hundred_times_as_many_people(more, text):
    case = RuleCase("insufficient", group="night", n=100, more=more)
    assert describe_needed_people([case], POLICY) == text
