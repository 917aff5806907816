"""A policy: rules for a yes or no, asked of a finished audit.

    policy.yaml → rules → questions (slacks with bounds) → answers → text, JSON, JUnit, Markdown

Every answer is pass, fail or insufficient. ``isolux.api.gate`` loads runs and asks; the command
line and the pytest plugin show what it answers. Decision 24 says why the answers are as they are.
"""

from isolux.policy.decision import Answer, Decision, RuleAnswer
from isolux.policy.parsing import read_policy
from isolux.policy.rules import Policy, PolicyRule

__all__ = ["Answer", "Decision", "Policy", "PolicyRule", "RuleAnswer", "read_policy"]
