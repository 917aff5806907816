"""Ids by their last part, refused where two people would become one."""

from __future__ import annotations

import polars as pl

from isolux.core.errors import JoinError
from isolux.io.ids import IdFrom, reduce_ids


def shorten_ids(ids: pl.Series, id_from: IdFrom, source: str) -> pl.Series:
    """Return the part of each id that ``id_from`` names."""
    if id_from == "column":
        return reduce_ids(ids, id_from)
    table = pl.DataFrame({"whole": ids, "part": reduce_ids(ids, id_from)})
    distinct = table.unique("whole", keep="first", maintain_order=True)
    clash = distinct["part"].is_duplicated()
    if clash.any():
        short_id = distinct["part"].filter(clash)[0]
        first, second = distinct.filter(part=short_id)["whole"][:2]
        raise JoinError(
            f"different ids have the same {id_from}",
            expected=f"every {id_from} from one id only",
            found=f"{first!r} and {second!r} both become {short_id!r}",
            where=source,
            hint="join on the whole id (--id-from column), or make the ids alike on both sides",
        )
    return table["part"].alias(ids.name)
