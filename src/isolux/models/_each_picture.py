"""Labels and embeddings are about one person each: every picture given is answered for, once."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.errors import TableError

_SHOWN = 5
_COUNTED = "picture counts from 0 within one call"


def refuse_unanswered(rows: pl.DataFrame, n: int, kind: str, model: str) -> None:
    """Refuse answers that leave pictures out, or speak of one more often than they can mean.

    Examples
    --------
    >>> rows = pl.DataFrame({"picture": [0, 1], "label": ["day", None]})
    >>> refuse_unanswered(rows, 2, "labels", "net")
    >>> refuse_unanswered(rows, 3, "labels", "net")
    Traceback (most recent call last):
        ...
    isolux.vocabulary.errors.TableError: the model 'net' gives no row for 1 of 3 pictures
      expected: a row of labels for each picture
      found: none for picture 2 (picture counts from 0 within one call)
      what to do: answer for every picture; a row whose label is null says that there is no answer
    """
    if kind not in ("labels", "embeddings"):
        return
    if kind == "labels":
        _refuse_empty(rows, model)
    absent = sorted(set(range(n)) - set(rows["picture"].to_list()))
    if absent:
        ways = {
            "labels": "a row whose label is null says that there is no answer",
            "embeddings": "raise an error for a picture that cannot be embedded",
        }
        raise TableError(
            f"the model {model!r} gives no row for {len(absent):,} of {n:,} pictures",
            expected=f"a row of {kind} for each picture",
            found=f"none for picture {_listed(absent)} ({_COUNTED})",
            hint=f"answer for every picture; {ways[kind]}",
        )
    _refuse_repeated(rows, kind, model)


def refuse_unsorted(rows: pl.DataFrame, names: list[str], model: str) -> None:
    """Refuse labels of one picture that do not fall in confidence: the first counts as the answer.

    Examples
    --------
    >>> rows = pl.DataFrame({"picture": 0, "label": ["dog", "cat"], "rank": [1, 2]})
    >>> refuse_unsorted(rows.with_columns(score=pl.Series([0.9, 0.1])), [], "net")
    >>> refuse_unsorted(rows.with_columns(score=pl.Series([0.1, 0.9])), [], "net")
    Traceback (most recent call last):
        ...
    isolux.vocabulary.errors.TableError: the model 'net' gives a less confident label first
      expected: the best label of a picture first
      found: 'dog' (0.1) before 'cat' (0.9) for picture 0 (picture counts from 0 within one call)
      what to do: sort each picture's rows by their score, highest first
    """
    whose = ["picture", *names]
    scored = rows.filter(pl.col("score").is_not_null())  # one without a score says nothing of order
    ranked = scored.sort(*whose, "rank", maintain_order=True).with_columns(
        before=pl.col("score").shift(1).over(whose), other=pl.col("label").shift(1).over(whose)
    )
    rising = ranked.filter(pl.col("score") > pl.col("before"))
    if not rising.is_empty():
        one = rising.row(0, named=True)
        raise TableError(
            f"the model {model!r} gives a less confident label first",
            expected="the best label of a picture first",
            found=f"{one['other']!r} ({one['before']:g}) before {one['label']!r}"
            f" ({one['score']:g}) for picture {one['picture']} ({_COUNTED})",
            hint="sort each picture's rows by their score, highest first",
        )


def _refuse_repeated(rows: pl.DataFrame, kind: str, model: str) -> None:
    said = rows.group_by("picture").agg(pl.len())
    if kind == "labels":
        label = pl.col("label")
        said = rows.group_by("picture").agg(pl.len(), distinct=label.drop_nulls().n_unique())
        twice = said.filter((pl.col("len") > 1) & (pl.col("len") > pl.col("distinct")))
        expected = "each label once for a picture; a row without a label stands alone"
    else:
        twice = said.filter(pl.col("len") > 1)
        expected = "one row for each picture"
    if not twice.is_empty():
        pictures = sorted(twice["picture"].to_list())
        most = twice.sort("picture")["len"][0]
        raise TableError(
            f"the model {model!r} answers more than once for a picture ({len(pictures):,} in all)",
            expected=expected,
            found=f"{most:,} rows for picture {pictures[0]}"
            + (f"; also for {_listed(pictures[1:])}" if pictures[1:] else "")
            + f" ({_COUNTED})",
            hint="picture is the position in the list that the model was given",
        )


def _refuse_empty(rows: pl.DataFrame, model: str) -> None:
    empty = rows.filter(pl.col("label").str.strip_chars() == "")["picture"].to_list()
    if empty:
        raise TableError(
            f"the model {model!r} answers with an empty label",
            expected="the name of a class",
            found=f"an empty text for picture {_listed(sorted(set(empty)))} ({_COUNTED})",
            hint="where there is no answer, give a frame with a row whose label is null",
        )


def _listed(pictures: list[int]) -> str:
    more = f" and {len(pictures) - _SHOWN:,} more" if len(pictures) > _SHOWN else ""
    return ", ".join(map(str, pictures[:_SHOWN])) + more
