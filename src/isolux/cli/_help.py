"""How help looks: settings grouped by what they are about, then an example, then the rest."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand

from isolux.cli._flags import describe_settings_without_flag
from isolux.core.docstrings import extract_first_sentence

HELP_ALL = "--help-all"
"""The flag that shows every setting."""

_EXAMPLES = {
    "audit": """isolux audit table:people.csv --target job --prediction-column answer \\
      --by race --by "race*gender" --cluster subject --out runs/first""",
    "compare": "isolux compare runs/first runs/second --out runs/change",
    "gate": "isolux gate runs/first --policy policy.yaml --markdown summary.md",
    "check": "isolux check coco:instances.json --images photos",
    "describe": 'isolux describe table:people.csv --by "race*gender" --out people.html',
    "sample": "isolux sample table:people.csv --balance race,gender --per-cell 50 --out ids.csv",
    "explain": "isolux explain runs/first --analysis confounders",
    "export": "isolux export runs/first --out for-fiftyone",
    "report": "isolux report runs/first",
}


class Command(TyperCommand):
    """A command whose help groups its settings, and gives an example."""

    def get_short_help_str(self, limit: int = 0) -> str:
        """Return the first sentence, whole, for the list of commands, which wraps it."""
        del limit
        return (
            extract_first_sentence(" ".join((self.help or "").partition("\n\n")[0].split())) + "."
        )

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the settings, a section for each group, in the order of declaration."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            panel = getattr(parameter, "rich_help_panel", None)
            default_panel = "Arguments" if parameter.param_type_name == "argument" else "Other"
            groups.setdefault(panel or default_panel, []).append(record)
        is_plain = set(groups) <= {"Arguments", "Other"}
        for group, records in groups.items():
            with formatter.section("Options" if is_plain and group == "Other" else group):
                formatter.write_dl(records)
        settings_without_flag = describe_settings_without_flag(_format_command_path(ctx))
        if settings_without_flag and not self._n_hidden(ctx):
            with formatter.section("Settings without a flag of their own, by --option NAME=VALUE"):
                formatter.write_dl(settings_without_flag)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example, and how to see what is not shown."""
        path = _format_command_path(ctx)
        example = _EXAMPLES.get(path) or self.epilog
        if example:
            with formatter.section("Example"):
                formatter.write(f"  {example}\n")
        if n_hidden := self._n_hidden(ctx):
            n_more = n_hidden + len(describe_settings_without_flag(path))
            hint = f"`isolux {path} {HELP_ALL}` shows {n_more} more settings"
            tasks = ", with --task NAME that task's own" if path == "audit" else ""
            formatter.write(f"\n{hint}{tasks}.\n")

    def _n_hidden(self, ctx: Any) -> int:
        """Count the flags that this help does not show."""
        return sum(bool(getattr(p, "hidden", False)) for p in self.get_params(ctx))


def _format_command_path(ctx: Any) -> str:
    """Name a command with the groups that it is in, as ``curate sample``."""
    names = []
    while ctx is not None and ctx.parent is not None:
        names.append(str(ctx.info_name))
        ctx = ctx.parent
    return " ".join(reversed(names))
