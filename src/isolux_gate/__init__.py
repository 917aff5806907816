"""A pytest plugin: a gate as tests, one for each rule of a policy, by the function of the command.

    pytest --isolux-policy policy.yaml --isolux-run runs/today [--isolux-baseline runs/yesterday]

adds an item for each rule; in a test of one's own the fixture does it all at once:

    def test_release(isolux_gate):
        isolux_gate("runs/today", "policy.yaml")

Anything but a pass fails, with the text that the command prints. A wrong policy or a run that
cannot be used is an error, never a skip. What stands beside the answer (the run's warnings,
attributes that no rule asks about) is printed when all tests have run, also of a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from isolux.policy import Decision, RuleAnswer

_NAMES = ("isolux_policy", "isolux_run", "isolux_baseline")
_TOLD = pytest.StashKey[list[str]]()
"""Texts of decisions that no failure shows."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flags that name a policy and its runs."""
    group = parser.getgroup("isolux", "isolux gate")
    group.addoption("--isolux-policy", metavar="FILE", help="a policy: an item for each rule")
    group.addoption("--isolux-run", metavar="DIR", help="the run that it is asked of")
    group.addoption("--isolux-baseline", metavar="DIR", help="the run that it looks back to")


@pytest.fixture
def isolux_gate(pytestconfig: pytest.Config) -> Callable[..., Decision]:
    """Give a function that asks a policy of a run, and fails the test unless it passes."""

    def check(run: Any, policy: Any, *, baseline: Any = None) -> Decision:
        import isolux

        found = isolux.gate(run, policy, baseline=baseline)
        if not found.passed:
            pytest.fail(found.text(), pytrace=False)
        if found.notes or found.uncovered_attributes:
            pytestconfig.stash.setdefault(_TOLD, []).append(found.text())
        return found

    return check


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add the rules' items, first of all."""
    policy, run, baseline = (config.getoption(name) for name in _NAMES)
    if not (policy or run or baseline):
        return
    if not (policy and run):
        raise pytest.UsageError("--isolux-policy and --isolux-run belong together")
    if any(isinstance(item, _Rule) for item in items):
        return
    collector = _Gate.from_parent(session, name="isolux gate", path=Path(str(policy)))
    collector.asked = str(run), str(policy), None if baseline is None else str(baseline)
    items[:0] = list(collector.collect())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the command prints, so that a pass says what it does not say."""
    for text in terminalreporter.config.stash.get(_TOLD, []):
        terminalreporter.section("isolux gate")
        terminalreporter.write_line(text)


class _Gate(pytest.Collector):
    """The rules of one policy."""

    asked: tuple[str, str, str | None] = ("", "", None)

    def collect(self) -> Iterator[pytest.Item]:
        """Ask once, and give an item for each rule."""
        import isolux
        from isolux.core.errors import IsoluxError

        run, policy, baseline = self.asked
        try:
            found = isolux.gate(run, policy, baseline=baseline)
        except IsoluxError as error:
            raise pytest.UsageError(f"isolux: {error}") from error
        self.config.stash.setdefault(_TOLD, []).append(found.text())
        for one in found.rules:
            item = _Rule.from_parent(self, name=f"{one.number}. {one.title}")
            item.rule = one
            yield item


class _Rule(pytest.Item):
    """One rule of a policy."""

    rule: RuleAnswer

    def runtest(self) -> None:
        """Fail unless the rule passes."""
        if self.rule.answer != "pass":
            pytest.fail(f"{self.rule.answer}: {self.rule.text}", pytrace=False)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Name the policy and the rule."""
        return self.path, None, self.name
