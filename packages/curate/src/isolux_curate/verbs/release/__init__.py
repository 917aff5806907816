"""A project becomes a dataset for others: photos, tables, terms and papers, in one folder.

    chosen photos → people, split by subject → pseudonyms, counts → files → papers → one rename

The folder grows beside its place and is renamed when it is whole. Nothing in it hangs on the clock
or on the order of rows, so that publishing the same project again gives the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from isolux.datasets import FORMAT
from isolux.vocabulary.errors import SpecError
from isolux_curate.project.folder import Project

if TYPE_CHECKING:
    from isolux.io.consent.rows import Scope
    from isolux_curate.verbs.release.papers import Release

MARK = "publish.json"
Terms = Literal["evaluation", "training"]
_WORDS = {
    "evaluation": "For evaluation only: no model may be trained on it.",
    "training": "For evaluation and for training.",
}


@dataclass(frozen=True, slots=True)
class Written:
    """What was published.

    Parameters
    ----------
    folder : Path
    release : Release
    notes : tuple of str
    blanks : int
        Questions of the papers that nobody answered.
    """

    folder: Path
    release: Release
    notes: tuple[str, ...]
    blanks: int


def publish_dataset(
    project: Project,
    *,
    out: str | Path,
    key: str | Path,
    terms: Terms = "evaluation",
    attribute: Sequence[str] = (),
    labels: Sequence[str] = (),
    redact: str | Path | None = None,
    beside: str | Path | None = None,
    facts: str | Path | None = None,
    overwrite: bool = False,
) -> Written:
    """Publish a project's photos that passed and may be published.

    ``publish:`` in project.yaml sets what is the same each time: ``Settings``.

    Parameters
    ----------
    project : Project
    out : str or Path
        The folder to write.
    key : str or Path
        The key file used to replace ids; created if missing; it may not
        lie in ``out``. The same key gives the same ids.
    terms : {"evaluation", "training"}
        What the dataset may be used for: loaders refuse training under evaluation. Every subject
        must have agreed to it, and to publication.
    attribute : sequence of str
        Facts about subjects and photos to publish, in addition to annotators' answers.
    labels : sequence of str
        NAME=FILE: labels from a consensus (instance_id, label) to publish.
    redact : str or Path, optional
        A table image_id, x, y, w, h: regions that are filled in, in pixels of the upright photo.
    beside : str or Path, optional
        A table dataset, attribute, group, share: the composition of other datasets.
    facts : str or Path, optional
        A YAML file with the facts that the documents ask for: `facts: 1`, then keys.
    overwrite : bool
        Replace ``out``, if this command wrote it.

    Returns
    -------
    Written

    Raises
    ------
    FileError, SpecError, TableError, UnknownNameError, OutputError
        No ledger of consent, no photo that may be published, undecided matches of known material;
        a column that could name people; settings that are none; a folder that cannot be written.
    """
    from isolux.cards import read_facts
    from isolux.io.atomic import staged_directory
    from isolux_curate.privacy import key_at, outside_of
    from isolux_curate.project.decisions import note
    from isolux_curate.publication.people import published_people
    from isolux_curate.publication.photos import chosen_photos, read_shares
    from isolux_curate.verbs.release.asks import ALL
    from isolux_curate.verbs.release.told import told_by
    from isolux_curate.verbs.release.writing import prepare, settings_of, write_release

    target = Path(out).expanduser().resolve()
    secret_at = outside_of(target, key)
    _refuse(target, terms, overwrite=overwrite)
    asked = settings_of(project)
    shares = read_shares(asked.split)
    scopes: tuple[Scope, ...] = ("publication", "evaluation")
    chosen = chosen_photos(project, (*scopes, "training") if terms == "training" else scopes)
    named = list(dict.fromkeys([*attribute, *asked.aggregate, *asked.date]))
    found = published_people(project, chosen.photos, facts=named, labels=labels)
    said = read_facts(facts, ALL)
    ready = prepare(project, found, asked, shares, redact)
    told = told_by(project, asked.publish_min)
    secret = key_at(secret_at)
    settings = msgspec.structs.asdict(asked) | {
        "terms": terms,
        "attribute": [*attribute],
        "inpaint": asked.inpaint if redact else None,
    }
    with staged_directory(
        target, overwrite=overwrite, marks=(MARK,), what="published dataset"
    ) as stage:
        own_terms = {
            "format": FORMAT,
            "version": 1,
            "name": said.text("dataset_name") or project.name,
            "licence": asked.licence,
            "training": terms == "training",
            "terms": _WORDS[terms],
        }
        release, cards = write_release(
            project, stage, secret, chosen, ready, told, said, own_terms, asked, beside
        )
        manifest = _manifest(stage, settings, release)
    counts = {"photos": release.photos, "people": release.people, "subjects": release.subjects}
    note(project, "publish", target.name, settings | counts | {"sha256": manifest})
    blanks = sum(len(card.blanks) for card in cards)
    notes = [*chosen.notes, *ready.notes]
    notes += [f"{n:,} photos are kept but not published: {why}." for why, n in chosen.left.items()]
    notes += [
        f"{name}: several values have the most marks of {n:,} of {release.people:,} people in"
        f" photos; the middle one stands, of two the lower. {name}_marks has every mark."
        for name, n in found.tied.items()
    ]
    if blanks:
        notes.append(
            f"{blanks:,} questions of the papers are not answered: --facts FILE answers them."
        )
    return Written(target, release, tuple(notes), blanks)


def _refuse(target: Path, terms: str, *, overwrite: bool) -> None:
    from isolux.io.atomic import refuse_existing

    if terms not in _WORDS:
        raise SpecError(
            "these are not terms", expected=" or ".join(_WORDS), found=repr(terms), where="terms"
        )
    refuse_existing(target, overwrite=overwrite, marks=(MARK,), what="published dataset")


def _manifest(stage: Path, settings: Mapping[str, Any], release: Release) -> str:
    """Write what was published, each file with its hash; give the hash of that."""
    from isolux.io.atomic import write_text
    from isolux.io.hashing import sha256_file

    paths = sorted(p for p in stage.rglob("*") if p.is_file())
    hashes = {p.relative_to(stage).as_posix(): sha256_file(p) for p in paths}
    record = {
        "settings": dict(settings),
        "photos": release.photos,
        "people": release.people,
        "subjects": release.subjects,
        "left": dict(release.left),
        "files": hashes,
    }
    text = json.dumps(record, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    write_text(stage / MARK, text)
    return hashlib.sha256(text.encode()).hexdigest()
