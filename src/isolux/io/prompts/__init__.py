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

from isolux.core.errors import FileError, SpecError, UnknownNameError
from isolux.io.frames import refuse_unless_file
from isolux.io.hashing import sha256_file
from isolux.io.settings_files import read_mapping, refuse_repeated_keys

_PROMPT_DIR = Path(__file__).parent
_KEYS = ("title", "source", "language", "prompts", "template", "classes")
_QUESTION_KEYS = ("ask", "read")
_EXPECTED_FORM = "name: prompt, or name: [prompt, prompt]"
_PLACEHOLDER = "{}"


@dataclass(frozen=True, slots=True)
class PromptFile:
    """Prompts by name: the value that each stands for, or the question that it asks."""

    name: str
    prompts: Mapping[str, tuple[str, ...]]
    sha256: str
    read_rules: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    title: str = ""
    source: str = ""
    language: str = ""

    def has_read_rules(self) -> bool:
        """Say whether it is of questions whose answers are read by rules."""
        return any(self.read_rules.values())

    def to_record(self) -> dict[str, str]:
        """Say which file it was, for a run's record."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "sha256": self.sha256,
        }


def list_built_in_prompts() -> list[str]:
    """Name the files that come with isolux."""
    return sorted(path.stem for path in _PROMPT_DIR.glob("*.yaml"))


def read_prompt_file(name_or_path: str | Path) -> PromptFile:
    """Read prompts of one's own, or some that come with isolux."""
    path, source = _resolve_prompt_path(str(name_or_path)), str(name_or_path)
    refuse_unless_file(path)
    if path.suffix.lower() == ".txt":
        lines = _read_questions(path)
        return PromptFile(source, {line: (line,) for line in lines}, sha256_file(path))
    contents = read_mapping(path)
    if path.suffix.lower() != ".json":
        refuse_repeated_keys(path)
    has_sections = "prompts" in contents or "template" in contents
    if has_sections:
        unknown_keys = [key for key in contents if key not in _KEYS]
        if unknown_keys:
            raise UnknownNameError(
                "part of a file of prompts", unknown_keys[0], _KEYS, where=source
            )
    entries = (
        contents.get("prompts")
        if "prompts" in contents
        else _fill_templates(contents, source)
        if has_sections
        else contents
    )
    if not isinstance(entries, Mapping) or not entries:
        raise SpecError(
            "the file holds no prompts", expected=_EXPECTED_FORM, found=repr(entries), where=source
        )
    parsed = {
        _key_to_text(key): _parse_prompt(_key_to_text(key), value, source)
        for key, value in entries.items()
    }
    prompts = {name: texts for name, (texts, _) in parsed.items()}
    _refuse_shared_prompts(prompts, source)
    return PromptFile(
        source,
        prompts,
        sha256_file(path),
        {name: rules for name, (_, rules) in parsed.items()},
        *(
            " ".join(str(contents.get(key) or "").split()) if has_sections else ""
            for key in _KEYS[:3]
        ),
    )


def _resolve_prompt_path(name: str) -> Path:
    if name in list_built_in_prompts():
        return _PROMPT_DIR / f"{name}.yaml"
    if "." not in name and "/" not in name and not Path(name).exists():
        raise UnknownNameError("file of prompts", name, list_built_in_prompts(), where="prompts")
    return Path(name).expanduser()


def _read_questions(path: Path) -> list[str]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise FileError("the file cannot be read", found=str(error), where=str(path)) from error
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    questions = list(dict.fromkeys(line for line in lines if not line.startswith("#")))
    if not questions:
        raise SpecError("the file holds no prompts", expected="a question a line", where=str(path))
    return questions


def _fill_templates(contents: Mapping[str, Any], source: str) -> dict[str, list[str]]:
    """Fill each template with each class; underscores are blanks."""
    given_template = contents.get("template")
    templates = [given_template] if isinstance(given_template, str) else given_template
    if (
        not isinstance(templates, list)
        or not templates
        or not all(isinstance(text, str) and text.count(_PLACEHOLDER) == 1 for text in templates)
    ):
        raise SpecError(
            "a template has one place for the class",
            expected="such as 'a photo of a {}'",
            found=repr(given_template),
            where=source,
        )
    classes = contents.get("classes")
    if not isinstance(classes, list) or not all(isinstance(text, str) for text in classes):
        raise SpecError(
            "nothing says which classes the template is filled with",
            expected="classes: [nurse, guard, …]",
            found=repr(classes),
            where=source,
        )
    return {
        name: [text.replace(_PLACEHOLDER, name.replace("_", " ")) for text in templates]
        for name in classes
    }


def _key_to_text(key: Any) -> str:
    """Write a name; YAML takes yes and no for true and false."""
    return ("yes" if key else "no") if isinstance(key, bool) else str(key)


def _parse_prompt(name: str, entry: Any, source: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    rules: Any = ()
    if isinstance(entry, Mapping):
        unknown_keys = [key for key in entry if key not in _QUESTION_KEYS]
        if unknown_keys:
            raise UnknownNameError(
                "part of a question", str(unknown_keys[0]), _QUESTION_KEYS, where=source
            )
        rules, entry = entry.get("read") or (), entry.get("ask")
    texts = entry if isinstance(entry, list) else [entry]
    if not texts or not all(isinstance(text, str) and text.strip() for text in texts):
        raise SpecError(
            f"{name!r} has no prompt, or an empty one",
            expected=_EXPECTED_FORM,
            found=repr(entry),
            where=source,
        )
    if unfilled := [text for text in texts if _PLACEHOLDER in text]:
        raise SpecError(
            f"the prompt of {name!r} has a place that nothing fills",
            expected="a whole prompt; or template: and classes:, which fill it",
            found=repr(unfilled[0]),
            where=source,
        )
    prompts = tuple(dict.fromkeys(" ".join(text.split()) for text in texts))
    return prompts, (rules,) if isinstance(rules, str) else tuple(map(str, rules))


def _refuse_shared_prompts(prompts: Mapping[str, tuple[str, ...]], source: str) -> None:
    owner: dict[str, str] = {}
    for name, texts in prompts.items():
        for text in texts:
            if owner.setdefault(text, name) != name:
                raise SpecError(
                    f"the prompt {text!r} has two names",
                    expected="each prompt once",
                    found=f"{owner[text]!r} and {name!r}",
                    where=source,
                )
