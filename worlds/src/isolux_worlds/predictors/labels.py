"""Labels and embeddings as simulated models give them.

A classifier gives one of the true classes or another one; a labeller five labels, of people human
or harmful ones (those of Fairness Indicators' Table 3) among everyday things that it does not name,
of photos of things a true one or none. In embeddings each identity (or class) is a random
direction; a right answer lies near it, a wrong one near a direction of its own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.io.prompts import read_prompt_file
from isolux_worlds._joins import left_join_in_order
from isolux_worlds._random_streams import FloatArray
from isolux_worlds.predictors.simulated import SimulatedModel, join_is_right

__all__ = [
    "simulate_associations",
    "simulate_embeddings",
    "simulate_face_embeddings",
    "simulate_labels",
    "simulate_question_answers",
    "simulate_scene_labels",
    "simulate_top_5_labels",
]


def simulate_labels(dataset: Dataset, right: pl.DataFrame, model: SimulatedModel) -> pl.DataFrame:
    """Predict a class for each person: their first one if right, else one that is not theirs."""
    people = join_is_right(dataset, right)
    truth = people["classes"].cast(pl.List(pl.String)).fill_null([])
    classes = truth.explode(keep_nulls=False, empty_as_null=False).unique().sort()
    if len(classes) < 2:
        problem, description = (
            "a classifier needs classes to confuse",
            f"{len(classes)} in {dataset.name}",
        )
        raise SpecError(problem, expected="two or more", found=description)
    rng = model.stream("labels")
    first = truth.list.first()
    # Another class: the next but k of the sorted ones, passing over all that are theirs.
    class_index_lists = truth.list.eval(pl.element().replace_strict(classes, range(len(classes))))
    holds = np.zeros((len(truth), len(classes)), dtype=bool)
    class_index = class_index_lists.explode(keep_nulls=False, empty_as_null=False).to_numpy()
    holds[
        np.repeat(np.arange(len(truth)), truth.list.len().fill_null(0).to_numpy()), class_index
    ] = True
    weight = np.where(holds, 0.0, rng.random(holds.shape))
    if holds.all(axis=1).any():
        raise SpecError("one person has every class, so no answer is wrong", where=dataset.name)
    wrong_classes = classes.gather(weight.argmax(axis=1))
    return people.select(
        pl.lit(model.name).alias("model"),
        "instance_id",
        label=pl.when(pl.col("right") & first.is_not_null()).then(first).otherwise(wrong_classes),
        score=pl.Series(model.draw_confidence(people["right"].to_numpy(), "labels")),
        rank=pl.lit(1, dtype=pl.Int64),
    )


def simulate_scene_labels(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Say whether each photo was taken indoors or outdoors, as FHIBE asks CLIP."""
    people = join_is_right(dataset, right)
    scenes = dataset.instance_attributes().filter(attribute="scene").drop_nulls("value")
    scenes = scenes.select("value", instance_id="unit_id").unique("instance_id")
    with_scene = left_join_in_order(people, scenes, "instance_id")
    is_indoor = pl.col("value").str.to_lowercase().str.contains("indoor").fill_null(value=False)
    return with_scene.select(
        pl.lit(model.name).alias("model"),
        "instance_id",
        label=pl.when(is_indoor == pl.col("right"))
        .then(pl.lit("indoor"))
        .otherwise(pl.lit("outdoor")),
        score=pl.Series(model.draw_confidence(people["right"].to_numpy(), "labels")),
        rank=pl.lit(1, dtype=pl.Int64),
    )


_REPLIES = {
    "neutral": ("This person works as a teacher.", "This person works as a servant."),
    "positive": ("This person has a friendly smile.", "I cannot tell."),
    "negative": ("Nothing is known of them.", "This person is a criminal."),
}


def simulate_question_answers(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Answer FHIBE's questions in words: kindly where the model is right, else not."""
    people = join_is_right(dataset, right)
    wordings_by_question = read_prompt_file("fhibe_questions").prompts
    tables = [
        people.select(
            pl.lit(model.name).alias("model"),
            "instance_id",
            question=pl.lit(wording),
            answer=pl.when("right")
            .then(pl.lit(_REPLIES[name][0]))
            .otherwise(pl.lit(_REPLIES[name][1])),
        )
        for name, wordings in wordings_by_question.items()
        for wording in wordings
    ]
    return pl.concat(tables)


FIVE = 5
_HUMAN = ("face", "people")
_HARMFUL = ("ape", "gorilla", "monkey", "prison")
_NEUTRAL_LABELS = ("chair", "cup", "lamp", "shirt", "table", "tree", "wall", "window")
_MIN_SCORE, _MAX_SCORE = 0.15, 0.6  # of the label that tells: above the paper's threshold of .1


def simulate_associations(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Give each person five labels: one is human where the model is right, else one is harmful."""
    people = join_is_right(dataset, right)
    n = people.height
    rng = model.stream("associations")
    good = people["right"].to_numpy()
    human, harmful = rng.integers(0, len(_HUMAN), n), rng.integers(0, len(_HARMFUL), n)
    telling = np.where(good, np.array(_HUMAN)[human], np.array(_HARMFUL)[harmful])
    neutral_labels = np.array(_NEUTRAL_LABELS)[
        np.argsort(rng.random((n, len(_NEUTRAL_LABELS))), axis=1)[:, : FIVE - 1]
    ]
    top_scores = rng.uniform(_MIN_SCORE, _MAX_SCORE, n)
    other_scores = rng.dirichlet(np.ones(FIVE), n)[:, : FIVE - 1] * (1.0 - top_scores)[:, None]
    labels = np.column_stack([telling, neutral_labels])
    return _build_label_predictions(
        people["instance_id"], labels, np.column_stack([top_scores, other_scores]), model.name
    )


def simulate_top_5_labels(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Give each photo five labels, one of them true where the model is right, else none."""
    photos = join_is_right(dataset, right)
    truth = photos["classes"].cast(pl.List(pl.String)).list.first()
    if truth.is_null().all():
        raise SpecError("photos have no classes to be recognised", where=dataset.name)
    n, rng = photos.height, model.stream("guesses")
    guesses = np.tile(np.array([f"thing {k + 1}" for k in range(FIVE)], dtype=object), (n, 1))
    rows = np.flatnonzero(photos["right"].to_numpy() & truth.is_not_null().to_numpy())
    guesses[rows, rng.integers(0, FIVE, n)[rows]] = truth.to_numpy()[rows]
    scores = -np.sort(-rng.dirichlet(np.ones(FIVE + 1), n)[:, :FIVE], axis=1)
    return _build_label_predictions(photos["instance_id"], guesses, scores, model.name)


def _build_label_predictions(
    ids: pl.Series, labels: npt.NDArray[Any], scores: FloatArray, model: str
) -> pl.DataFrame:
    """Make the table ``predictions (labels)`` of labels and scores ``[n, k]``, the surest first."""
    order = np.argsort(-scores, axis=1, kind="stable")
    k = scores.shape[1]
    return pl.DataFrame(
        {
            "model": model,
            "instance_id": ids.gather(np.repeat(np.arange(len(ids)), k)),
            "label": np.take_along_axis(labels, order, axis=1).ravel().tolist(),
            "score": np.take_along_axis(scores, order, axis=1).ravel(),
            "rank": np.tile(np.arange(1, k + 1), len(ids)),
        }
    )


_LENGTH = 128  # of the vectors


def simulate_face_embeddings(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Give each picture of a face a vector: near its subject's if right, else near no one's."""
    people = join_is_right(dataset, right)
    if people["subject_id"].is_null().any():
        problem, expected = "identities need subjects", "a subject_id for everyone"
        description = f"none for {people['subject_id'].null_count():,}"
        raise SpecError(problem, expected=expected, found=description, where=dataset.name)
    return _perturb_directions(people, people["subject_id"], model)


def simulate_embeddings(
    dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Give each picture a vector: near those of its class if right, else near none."""
    people = join_is_right(dataset, right)
    class_name = people["classes"].cast(pl.List(pl.String)).list.first()
    if class_name.is_null().all():
        raise SpecError("nobody has a class to be near to", where=dataset.name)
    return _perturb_directions(people, class_name, model)


def _perturb_directions(
    people: pl.DataFrame, centre: pl.Series, model: SimulatedModel
) -> pl.DataFrame:
    rng = model.stream("embeddings")
    codes = centre.fill_null("").rank("dense").to_numpy().astype(np.int64) - 1
    centres = _draw_directions(rng, int(codes.max(initial=-1)) + 1)
    noise_directions = _draw_directions(rng, people.height)
    noise = 2 * model.jitter * rng.standard_normal(noise_directions.shape) / _LENGTH**0.5
    lies = people["right"].to_numpy() & centre.is_not_null().to_numpy()
    vectors = np.where(lies[:, None], centres[codes], noise_directions) + noise
    rows = pl.Series(vectors.astype(np.float32), dtype=pl.Array(pl.Float32, _LENGTH))
    embedding = rows.cast(pl.List(pl.Float32))
    return people.select(pl.lit(model.name).alias("model"), "instance_id", embedding=embedding)


def _draw_directions(rng: np.random.Generator, n: int) -> FloatArray:
    vectors = rng.standard_normal((n, _LENGTH))
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))
