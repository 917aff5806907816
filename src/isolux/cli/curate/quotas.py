"""``isolux curate quotas``: how many photos from which country next."""

from __future__ import annotations

from pathlib import Path

from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["quotas"]


def quotas(
    seen: str,
    *,
    out: Path,
    first: int | None = None,
    take: int | None = None,
    balance: str | None = None,
    available: str | None = None,
    most: int | None = None,
    prior: float = 5.0,
    seed: int = 0,
) -> None:
    """Work out how many photos to take from each country so that the groups reach a stated balance.

    The first round is drawn at random (--first 7125, as in FairFace). Once it is annotated, each
    later round goes to countries whose people are underrepresented, and leaves out countries that
    have enough.

    Parameters
    ----------
    seen : str
        A table country, group: one row per photo annotated so far; with --first, image_id.
    out : Path
        The CSV to write.
    first : int, optional
        Draw this many photos at random instead of computing quotas.
    take : int, optional
        Photos of the next round.
    balance : str, optional
        A table group, share: the shares wanted, which sum to 1; default: equal shares.
    available : str, optional
        A table country, photos: what each country still has.
    most : int, optional
        The most photos from one country in this round, so that no country represents a group alone.
    prior : float
        Number of photos with the overall composition that are mixed into each country's.
    seed : int
        Of the first round.
    """
    from isolux.cli.screen import show_wide
    from isolux.curation.candidates.files import first_round, quotas_of_files
    from isolux.io.atomic import write_text
    from isolux.io.csv_text import csv_text
    from isolux.vocabulary.errors import SpecError

    if (first is None) == (take is None):
        raise SpecError(
            "which round this is is not said", expected="--first N, or --take N of a later round"
        )
    if first is not None:
        drawn = first_round(seen, first=first, seed=seed)
        write_text(out, csv_text(drawn))
        say(f"{numbered(drawn.height, 'photo')} drawn at random: {out}")
        return
    found = quotas_of_files(
        seen, take=int(take or 0), balance=balance, available=available, most=most, prior=prior
    )
    write_text(out, csv_text(found.countries))
    show_wide("Countries", found.countries)
    show_wide("Groups after this round, as expected", found.groups)
    say(f"quotas: {out}")
