"""Publish a project as a dataset: photos, tables, terms and documents in one folder.

    eligible photos → people, split by subject → pseudonyms, counts → files → documents → one rename

The folder is written in a staging directory and renamed when it is complete. Its content does not
depend on the time or the order of rows: publishing the same project again gives the same bytes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from isolux.core.errors import SpecError
from isolux.datasets import TERMS_FORMAT
from isolux_curate.project.folder import Project
from isolux_curate.publication.manifest import RELEASE_FILE, format_release_manifest

if TYPE_CHECKING:
    from isolux.io.consent.rows import Scope
    from isolux_curate.api.release.documents import Release

UseTerms = Literal["evaluation", "training"]
_TERMS_SENTENCES = {
    "evaluation": "For evaluation only: no model may be trained on it.",
    "training": "For evaluation and for training.",
}


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """A published dataset.

    Parameters
    ----------
    folder : Path
    release : Release
    notes : tuple of str
    n_blanks : int
        The number of unanswered questions of the documents.
    """

    folder: Path
    release: Release
    notes: tuple[str, ...]
    n_blanks: int


def write_and_journal_release(
    project: Project,
    *,
    out: str | Path,
    key: str | Path,
    terms: UseTerms = "evaluation",
    attribute: Sequence[str] = (),
    labels: Sequence[str] = (),
    redact: str | Path | None = None,
    compare_with: str | Path | None = None,
    facts: str | Path | None = None,
    overwrite: bool = False,
) -> ReleaseResult:
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
    compare_with : str or Path, optional
        A table dataset, attribute, group, share: the composition of other datasets.
    facts : str or Path, optional
        A YAML file with the facts that the documents ask for: `facts: 1`, then keys.
    overwrite : bool
        Replace ``out``, if this command wrote it.

    Returns
    -------
    ReleaseResult

    Raises
    ------
    FileError, SpecError, TableError, UnknownNameError, OutputError
        No ledger of consent, no photo that may be published, undecided matches of known material;
        a column that could name people; settings that are none; a folder that cannot be written.
    """
    from isolux.cards import read_facts
    from isolux.io.atomic import staged_directory
    from isolux_curate.api.release.project_facts import read_project_facts
    from isolux_curate.api.release.questions import QUESTIONS
    from isolux_curate.api.release.release_files import (
        prepare_and_check_release,
        read_publication_settings,
        write_release_except_manifest,
    )
    from isolux_curate.privacy import read_or_create_pseudonym_key, resolve_key_outside_target
    from isolux_curate.project.verdicts import record_journal_note_unless_repeated
    from isolux_curate.publication.people import read_published_people
    from isolux_curate.publication.photos import (
        exclude_crowded_and_select_publishable,
        parse_split_shares,
    )

    target = Path(out).expanduser().resolve()
    key_path = resolve_key_outside_target(target, key)
    _refuse_unknown_terms_or_target(target, terms, overwrite=overwrite)
    publication_settings = read_publication_settings(project)
    shares = parse_split_shares(publication_settings.split)
    scopes: tuple[Scope, ...] = ("publication", "evaluation")
    eligible = exclude_crowded_and_select_publishable(
        project, (*scopes, "training") if terms == "training" else scopes
    )
    fact_columns = list(
        dict.fromkeys([*attribute, *publication_settings.aggregate, *publication_settings.date])
    )
    published = read_published_people(
        project, eligible.photos, fact_columns=fact_columns, label_files=labels
    )
    user_facts = read_facts(facts, QUESTIONS)
    prepared = prepare_and_check_release(project, published, publication_settings, shares, redact)
    project_facts = read_project_facts(project, publication_settings.publish_min)
    key_bytes = read_or_create_pseudonym_key(key_path)
    settings = msgspec.structs.asdict(publication_settings) | {
        "terms": terms,
        "attribute": [*attribute],
        "inpaint": publication_settings.inpaint if redact else None,
    }
    with staged_directory(
        target, overwrite=overwrite, marks=(RELEASE_FILE,), folder_kind="published dataset"
    ) as staging_dir:
        own_terms = {
            "format": TERMS_FORMAT,
            "version": 1,
            "name": user_facts.joined_text("dataset_name") or project.name,
            "licence": publication_settings.licence,
            "training": terms == "training",
            "terms": _TERMS_SENTENCES[terms],
        }
        release, cards = write_release_except_manifest(
            project,
            staging_dir,
            key_bytes,
            eligible,
            prepared,
            project_facts,
            user_facts,
            own_terms,
            publication_settings,
            compare_with,
        )
        manifest = _write_manifest_and_hash_it(staging_dir, settings, release)
    counts = {
        "photos": release.n_photos,
        "people": release.n_people,
        "subjects": release.n_subjects,
    }
    record_journal_note_unless_repeated(
        project, "publish", target.name, settings | counts | {"sha256": manifest}
    )
    n_blanks = sum(len(card.blanks) for card in cards)
    notes = [*eligible.notes, *prepared.notes]
    notes += [
        f"{n:,} photos are kept but not published: {reason}."
        for reason, n in eligible.excluded_counts.items()
    ]
    notes += [
        f"{name}: several values have the most marks of {n:,} of {release.n_people:,} people in"
        f" photos; the middle one stands, of two the lower. {name}_marks has every mark."
        for name, n in published.tied.items()
    ]
    if n_blanks:
        notes.append(
            f"{n_blanks:,} questions of the papers are not answered: --facts FILE answers them."
        )
    return ReleaseResult(target, release, tuple(notes), n_blanks)


def _refuse_unknown_terms_or_target(target: Path, terms: str, *, overwrite: bool) -> None:
    from isolux.io.atomic import refuse_existing

    if terms not in _TERMS_SENTENCES:
        raise SpecError(
            "these are not terms",
            expected=" or ".join(_TERMS_SENTENCES),
            found=repr(terms),
            where="terms",
        )
    refuse_existing(
        target, overwrite=overwrite, marks=(RELEASE_FILE,), folder_kind="published dataset"
    )


def _write_manifest_and_hash_it(
    staging_dir: Path, settings: Mapping[str, Any], release: Release
) -> str:
    """Write the manifest with the hash of each file; its own hash."""
    from isolux.io.atomic import write_text

    record = {
        "settings": dict(settings),
        "photos": release.n_photos,
        "people": release.n_people,
        "subjects": release.n_subjects,
        "left": dict(release.excluded_counts),
    }
    paths = sorted(p for p in staging_dir.rglob("*") if p.is_file())
    names = [p.relative_to(staging_dir).as_posix() for p in paths]
    text = format_release_manifest(staging_dir, record, names)
    write_text(staging_dir / RELEASE_FILE, text)
    return hashlib.sha256(text.encode()).hexdigest()
