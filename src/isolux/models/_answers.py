"""What a model gave, held to the table of predictions that it says it answers with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.vocabulary.errors import IsoluxError, TableError
from isolux.vocabulary.info import ModelInfo
from isolux.vocabulary.tables import (
    BOX_PREDICTIONS,
    EMBEDDINGS,
    KEYPOINT_PREDICTIONS,
    LABEL_PREDICTIONS,
    MASK_PREDICTIONS,
    Table,
    check,
    to_polars,
)

ANSWERS: dict[str, Table] = {
    "labels": LABEL_PREDICTIONS,
    "boxes": BOX_PREDICTIONS,
    "masks": MASK_PREDICTIONS,
    "keypoints": KEYPOINT_PREDICTIONS,
    "embeddings": EMBEDDINGS,
}
"""What a model may answer, and the table that this is."""

_NAMED = ("model", "instance_id", "image_id")  # whose answer it is: a predictor knows no ids
_SEE = "see isolux.models.Predictor"
_SHORT = {
    "labels": ", or a list of one text for each picture",
    "embeddings": ", or an array of one row for each picture",
}
_SHOWN = 5
_COUNTED = "picture counts from 0 within one call"
_SLACK = 1e-6  # by which a sum of rounded probabilities passes 1


@runtime_checkable
class Predictor(Protocol):
    """A loaded model: pictures in, a table out.

    The same pictures get the same answers, however they are parted into calls. Some attributes
    may say more of it:

    - ``predicts``: the kind of its answers, where its family has several;
    - ``identity``: a mapping of what moves an answer (the hash of the weights, preprocessing,
      prompts), as JSON has it: another identity never meets an earlier answer;
    - ``notes``: sentences for the record and the report;
    - ``prepare(picture)``: what threads may do with each picture ahead of the model. The
      predictor is then called with what ``prepare`` gave;
    - ``by_box``: true of a model of poses that is shown people: ``prepare(picture, boxes)`` gets
      the boxes x, y, w, h of the dataset's people in the picture.
    """

    def __call__(self, pictures: Sequence[npt.NDArray[np.uint8]]) -> pl.DataFrame:
        """Answer for pictures ``[height, width, 3]`` of 8 bits, RGB."""
        ...


def kind_of(predictor: object, info: ModelInfo) -> str:
    """Return the kind of a model's answers: its own word, else its family's."""
    kind = getattr(predictor, "predicts", None) or info.predicts
    if kind not in ANSWERS:
        raise IsoluxError(
            "the model does not say what it answers",
            expected="predicts, one of " + ", ".join(ANSWERS),
            found=repr(kind),
            hint=_SEE,
        )
    return str(kind)


def answers(
    predictor: Predictor,
    info: ModelInfo,
    pictures: Sequence[npt.NDArray[np.uint8]],
    ids: Sequence[str],
    *,
    model: str,
) -> pl.DataFrame:
    """Ask a model, and hold what it gives to what it says that it answers."""
    kind = kind_of(predictor, info)
    table = ANSWERS[kind]
    found = _framed(predictor(pictures), len(pictures), kind, model)
    if kind == "labels" and "rank" not in found.columns and "picture" in found.columns:
        found = found.with_columns(rank=pl.int_range(1, pl.len() + 1).over("picture"))
    _refuse_strange(found, table, kind, len(pictures), model)
    if kind == "embeddings":
        refuse_unanswered(found.select("picture"), len(pictures), kind, model)
    whose = next(name for name in table.schema if name in _NAMED[1:])
    named = pl.Series(list(ids), dtype=pl.String).gather(found["picture"].cast(pl.Int64))
    whole = found.drop("picture").with_columns(named.alias(whose), model=pl.lit(model))
    checked = check(whole, table, where=f"the answers of {model!r}")
    if kind == "embeddings":
        _refuse_vectors(checked, model)
    if kind != "labels":
        return checked
    bounded = _bounded(checked, model)
    names = ["question"] if "question" in found.columns else []
    said = found.select("picture", *names).with_columns(checked["label"])
    for own in said.partition_by(names) if names else [said]:
        refuse_unanswered(own.select("picture", "label"), len(pictures), kind, model)
    ranked = checked.select("label", "rank", "score")
    refuse_unsorted(found.select("picture", *names).hstack(ranked), names, model)
    return bounded


def _framed(given: object, n: int, kind: str, model: str) -> pl.DataFrame:
    """Take a frame, a list of one label for each picture, or an array of one vector for each."""
    rows: dict[str, object] | None = None
    if kind == "labels" and isinstance(given, list | tuple):
        if all(isinstance(one, str) for one in given):
            rows = {"label": pl.Series(list(given), dtype=pl.String), "score": None}
    elif kind == "embeddings" and isinstance(given, np.ndarray) and given.ndim == 2:
        vectors = given.astype(np.float32).tolist()
        rows = {"embedding": pl.Series(vectors, dtype=pl.List(pl.Float32))}
    if rows is None:
        try:
            return to_polars(given)
        except (TypeError, TableError) as error:
            raise TableError(
                f"the model {model!r} does not answer with {kind}",
                expected="a frame with a row for each answer" + _SHORT.get(kind, ""),
                found=_type_of(given),
                hint=_SEE,
            ) from error
    height = len(given)  # type: ignore[arg-type]
    if height != n:
        raise TableError(
            f"the model {model!r} does not answer once for each picture",
            expected=f"{n} answers for {n} pictures",
            found=f"{height}",
            hint=_SEE,
        )
    return pl.DataFrame({"picture": pl.int_range(height, eager=True), **rows})


def _type_of(given: object) -> str:
    """Name a type, and of a list the first element that is no text."""
    if isinstance(given, list | tuple):
        other = next((one for one in given if not isinstance(one, str)), None)
        return f"{type(given).__name__}, with {type(other).__name__}"
    return type(given).__name__


def _refuse_strange(found: pl.DataFrame, table: Table, kind: str, n: int, model: str) -> None:
    columns = (c.name for c in table.columns if not c.optional and c.name not in _NAMED)
    needed = {"picture", *columns}
    if missing := sorted(needed - set(found.columns)):
        raise TableError(
            f"the model {model!r} does not answer with {kind}",
            expected=", ".join(sorted(needed)),
            found=(", ".join(found.columns) or "no columns") + f"; without {', '.join(missing)}",
            hint=_SEE,
        )
    if not found["picture"].dtype.is_integer() and not found.is_empty():
        raise TableError(
            f"the model {model!r} does not say which picture an answer is about",
            expected="picture, the position in the list: whole numbers",
            found=str(found["picture"].dtype),
        )
    strange = found.filter(~pl.col("picture").is_between(0, n - 1).fill_null(value=False))
    if not strange.is_empty():
        raise TableError(
            f"the model {model!r} answers for a picture that it was not given",
            expected=f"picture from 0 to {n - 1}",
            found=str(strange["picture"][0]),
        )


def _refuse_vectors(found: pl.DataFrame, model: str) -> None:
    """Refuse vectors that nothing can be compared with: hours later an audit would."""
    vectors = found["embedding"].drop_nulls()
    sizes = vectors.list.len().unique().sort().to_list()
    if len(sizes) > 1 or 0 in sizes:
        raise TableError(
            f"the model {model!r} does not give vectors of one length",
            expected="as many numbers for each picture",
            found=", ".join(map(str, sizes)),
        )
    numbers = vectors.explode()
    strange = numbers.filter(~numbers.is_finite().fill_null(value=False))
    if len(strange):
        raise TableError(
            f"the model {model!r} gives an embedding that cannot be used",
            expected="finite numbers",
            found=str(strange[0]),
            hint="a network in half precision may overflow: another precision, or another input",
        )


def _bounded(labels: pl.DataFrame, model: str) -> pl.DataFrame:
    """Refuse scores of labels that are no confidences: logits would be read as such."""
    beyond = labels.filter(~pl.col("score").is_between(-_SLACK, 1 + _SLACK))
    if not beyond.is_empty():
        raise TableError(
            f"the model {model!r} gives a label a score that is not a confidence",
            expected="0 to 1, higher is surer",
            found=f"{beyond['score'][0]:g} for {beyond['label'][0]!r}",
            hint="turn logits into probabilities (softmax) before they are given",
        )
    return labels.with_columns(pl.col("score").clip(0, 1))


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
