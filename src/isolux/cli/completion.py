"""``isolux completion``: a shell completes commands, flags, and the names of what there is."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from isolux.cli.streams import say

__all__ = ["completed", "completion", "made"]

SCRIPTS = {
    "bash": """\
_isolux() {
    local IFS=$'\\n'
    COMPREPLY=($(isolux completion bash -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    [[ ${COMPREPLY[0]-} == *: ]] && compopt -o nospace
}
complete -o default -F _isolux isolux
""",
    "zsh": """\
#compdef isolux
_isolux() {
    local -a found
    found=("${(@f)$(isolux completion zsh -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -- "${found[@]}"; else _files; fi
}
compdef _isolux isolux
""",
    "fish": """\
function __isolux
    isolux completion fish -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null
end
complete --command isolux --arguments '(__isolux)'
""",
}
"""What each shell runs; a word that isolux does not know is completed as a file."""

_NAMES = {
    "--task": "tasks", "--analysis": "analyses", "--explain": "analyses", "--kind": "cards",
    "--format": "predictions", "--derive": "derive",
}  # fmt: skip
"""Flags that take the name of a plugin, and its room."""


def completion(shell: str, words: list[str] | None = None) -> None:
    """Print a script that makes a shell complete isolux's commands, flags and names.

    bash: eval "$(isolux completion bash)" in ~/.bashrc. zsh: the same with zsh in ~/.zshrc, after
    compinit. fish: isolux completion fish > ~/.config/fish/completions/isolux.fish.

    Parameters
    ----------
    shell : str
        bash, zsh or fish.
    words : list of str
        After --, a command line without its first word: print the possible completions of its last
        word.
    """
    from isolux.vocabulary.errors import UnknownNameError

    if shell not in SCRIPTS:
        raise UnknownNameError("shell", shell, SCRIPTS, where="isolux completion")
    if words is None:
        sys.stdout.write(SCRIPTS[shell])
        return
    for word in completed(words):
        say(word)


def made() -> Callable[..., None]:
    """Make the command."""
    from isolux.cli._flags import generated

    return generated(completion)


def completed(words: Sequence[str]) -> list[str]:
    """List what the last word of a command line may become; none: a file, or anything.

    Parameters
    ----------
    words : sequence of str
        The line without its first word, up to where the cursor is; the last one may be empty.

    Examples
    --------
    >>> completed(["exp"]), completed(["curate", "conse"])
    (['explain', 'export'], ['consensus', 'consent'])
    >>> completed(["audit", "table:people.csv", "--task", "face_v"])
    ['face_verification']
    """
    from isolux.cli.app import program

    *before, last = words or [""]
    command: Any = program(before, everything=True)
    names = [word for word in before if not word.startswith("-")]
    depth = 0
    while getattr(command, "commands", None) and names[depth:]:
        if names[depth] not in command.commands:
            return []
        command, depth = command.commands[names[depth]], depth + 1
    if last.startswith("-"):
        return _starting(last, [*_flags(command), "--help", "--help-all"])
    if before and before[-1] in _takers(command):
        return _starting(last, _values(before[-1]))
    if getattr(command, "commands", None):
        return _starting(last, command.commands)
    return _starting(last, _arguments(names))


def _starting(last: str, known: Iterable[str]) -> list[str]:
    return sorted({word for word in known if word.startswith(last)})


def _flags(command: Any) -> list[str]:
    return [name for one in command.params for name in (*one.opts, *one.secondary_opts)
            if name.startswith("--")]  # fmt: skip


def _takers(command: Any) -> set[str]:
    """Name the flags that a value follows."""
    return {name for one in command.params if not getattr(one, "is_flag", True)
            for name in one.opts}  # fmt: skip


def _values(flag: str) -> Sequence[str]:
    from isolux.vocabulary import registry
    from isolux.vocabulary.spec import FLAT, declared
    from isolux.vocabulary.words import choices

    if flag in _NAMES:
        return registry.names(_NAMES[flag])
    name = flag.removeprefix("--").replace("-", "_")
    return choices(declared(name).kind) if name in FLAT else ()


def _arguments(names: Sequence[str]) -> Sequence[str]:
    """List what the argument of a command may be, where that is a name; a path is the shell's."""
    from isolux.cli.listing import KINDS, room_of
    from isolux.vocabulary import registry

    match names:
        case ["list"]:
            return list(KINDS)
        case ["list", kind] if kind in KINDS:
            return registry.names(room_of(kind))
        case ["completion"]:
            return list(SCRIPTS)
        case ["audit" | "check" | "crop" | "describe" | "export" | "predict" | "sample"]:
            return [f"{name}:" for name in registry.names("datasets")]
        case _:
            return []
