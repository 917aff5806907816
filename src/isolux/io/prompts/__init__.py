"""Files of prompts: what a model is asked, for which value or question, and whose words these are.

Models ask what stands there and the task ``answers`` reads it again, so both name one file. Such a
file is a part of the result: two kits gave 43.7 % and 73.7 % for one published figure because their
prompts differed. Its hash goes into the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isolux.io.frames import refuse_unless_file
from isolux.io.hashing import sha256_file
from isolux.io.settings_files import read_mapping, refuse_repeated_keys
from isolux.vocabulary.errors import FileError, SpecError, UnknownNameError

_HERE = Path(__file__).parent
_KEYS = ("title", "source", "language", "prompts", "template", "classes")
_OF_PROMPTS = ("ask", "read")
_FORM = "name: prompt, or name: [prompt, prompt]"
_SLOT = "{}"


@dataclass(frozen=True, slots=True)
class PromptFile:
    """Prompts by name: the value that each stands for, or the question that it asks."""

    name: str
    prompts: Mapping[str, tuple[str, ...]]
    sha256: str
    reads: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    title: str = ""
    source: str = ""
    language: str = ""

    def reads_any(self) -> bool:
        """Say whether it is of questions whose answers are read by rules."""
        return any(self.reads.values())

    def record(self) -> dict[str, str]:
        """Say which file it was, for a run's record."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "sha256": self.sha256,
        }


def built_in_prompts() -> list[str]:
    """Name the files that come with isolux."""
    return sorted(path.stem for path in _HERE.glob("*.yaml"))


def read_prompt_file(named: str | Path) -> PromptFile:
    """Read prompts of one's own, or some that come with isolux."""
    path, where = _path(str(named)), str(named)
    refuse_unless_file(path)
    if path.suffix.lower() == ".txt":
        lines = _lines(path)
        return PromptFile(where, {line: (line,) for line in lines}, sha256_file(path))
    found = read_mapping(path)
    if path.suffix.lower() != ".json":
        refuse_repeated_keys(path)
    whole = "prompts" in found or "template" in found
    if whole:
        strange = [key for key in found if key not in _KEYS]
        if strange:
            raise UnknownNameError("part of a file of prompts", strange[0], _KEYS, where=where)
    given = (
        found.get("prompts") if "prompts" in found else _filled(found, where) if whole else found
    )
    if not isinstance(given, Mapping) or not given:
        raise SpecError("the file holds no prompts", expected=_FORM, found=repr(given), where=where)
    told = {_name(key): _told(_name(key), value, where) for key, value in given.items()}
    prompts = {name: texts for name, (texts, _) in told.items()}
    _refuse_twice(prompts, where)
    return PromptFile(
        where,
        prompts,
        sha256_file(path),
        {name: rules for name, (_, rules) in told.items()},
        *(" ".join(str(found.get(key) or "").split()) if whole else "" for key in _KEYS[:3]),
    )


def _path(named: str) -> Path:
    if named in built_in_prompts():
        return _HERE / f"{named}.yaml"
    if "." not in named and "/" not in named and not Path(named).exists():
        raise UnknownNameError("file of prompts", named, built_in_prompts(), where="prompts")
    return Path(named).expanduser()


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    kept = list(dict.fromkeys(line for line in lines if not line.startswith("#")))
    if not kept:
        raise SpecError("the file holds no prompts", expected="a question a line", where=str(path))
    return kept


def _filled(found: Mapping[str, Any], where: str) -> dict[str, list[str]]:
    """Fill each template with each class; underscores are blanks."""
    given = found.get("template")
    templates = [given] if isinstance(given, str) else given
    if (
        not isinstance(templates, list)
        or not templates
        or not all(isinstance(one, str) and one.count(_SLOT) == 1 for one in templates)
    ):
        raise SpecError(
            "a template has one place for the class",
            expected="such as 'a photo of a {}'",
            found=repr(given),
            where=where,
        )
    classes = found.get("classes")
    if not isinstance(classes, list) or not all(isinstance(one, str) for one in classes):
        raise SpecError(
            "nothing says which classes the template is filled with",
            expected="classes: [nurse, guard, …]",
            found=repr(classes),
            where=where,
        )
    return {
        name: [one.replace(_SLOT, name.replace("_", " ")) for one in templates] for name in classes
    }


def _name(key: Any) -> str:
    """Write a name; YAML takes yes and no for true and false."""
    return ("yes" if key else "no") if isinstance(key, bool) else str(key)


def _told(name: str, value: Any, where: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    rules: Any = ()
    if isinstance(value, Mapping):
        strange = [key for key in value if key not in _OF_PROMPTS]
        if strange:
            raise UnknownNameError("part of a question", str(strange[0]), _OF_PROMPTS, where=where)
        rules, value = value.get("read") or (), value.get("ask")
    texts = value if isinstance(value, list) else [value]
    if not texts or not all(isinstance(one, str) and one.strip() for one in texts):
        raise SpecError(
            f"{name!r} has no prompt, or an empty one",
            expected=_FORM,
            found=repr(value),
            where=where,
        )
    if unfilled := [one for one in texts if _SLOT in one]:
        raise SpecError(
            f"the prompt of {name!r} has a place that nothing fills",
            expected="a whole prompt; or template: and classes:, which fill it",
            found=repr(unfilled[0]),
            where=where,
        )
    kept = tuple(dict.fromkeys(" ".join(one.split()) for one in texts))
    return kept, (rules,) if isinstance(rules, str) else tuple(map(str, rules))


def _refuse_twice(prompts: Mapping[str, tuple[str, ...]], where: str) -> None:
    owner: dict[str, str] = {}
    for name, texts in prompts.items():
        for text in texts:
            if owner.setdefault(text, name) != name:
                raise SpecError(
                    f"the prompt {text!r} has two names",
                    expected="each prompt once",
                    found=f"{owner[text]!r} and {name!r}",
                    where=where,
                )
