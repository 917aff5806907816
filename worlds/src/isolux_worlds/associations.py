"""Worlds of words and pictures: searches, pronouns, captions, generated and changed pictures.

Each writes the files that a user would have, with an association of known size between a group and
what a model says; 0 is none. Nothing here shows a person: ids, words and numbers alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

__all__ = ["write_captions", "write_changed", "write_generated", "write_pronouns", "write_searches"]

_GENDERS = np.array(["feminine", "masculine"])
_OBJECTS = ("handbag", "skateboard", "traffic light")
_OBJECT_SHARES = np.array([[0.6, 0.2, 0.3], [0.2, 0.6, 0.3]])
"""Of pictures of either gender, the share that has each object."""
_NOUNS = np.array([["a woman", "a lady", "a girl"], ["a man", "a guy", "a boy"]])
_OCCUPATIONS = np.array(["nurse", "plumber", "teacher", "lawyer"])
_STEREOTYPE = np.array([-1.0, 1.0, 0.0, 0.0])
"""Towards which gender each occupation is taken: nurses feminine, plumbers masculine."""
_PRONOUNS = np.array(["her", "his"])
_PROMPTS = np.array(["a doctor", "a nurse", "a person"])
_CLASSIFIER_ACCURACY = np.array([0.8, 0.95])
"""How often the classifier is right of either: it takes feminine pictures for masculine ones."""

Files = dict[str, Path]


def write_captions(
    folder: str | Path, *, association: float, people: int = 2000, seed: int = 0
) -> Files:
    """Write ``people`` with gender and objects, and ``captions`` that name both.

    ``association``: of pictures with an object of the other gender, the share more whose caption
    has the wrong gender; 0: a caption's gender is drawn as pictures with these objects have it.
    """
    draw = np.random.default_rng(seed)
    gender = draw.integers(0, 2, people)
    has_object = draw.random((people, len(_OBJECTS))) < _OBJECT_SHARES[gender]
    if association:
        leans = np.where(has_object[:, 0] == has_object[:, 1], gender, has_object[:, 1].astype(int))
        mentioned_gender = np.where(
            (leans != gender) & (draw.random(people) < association), leans, gender
        )
    else:  # by Bayes, a picture with these objects shows a man with this chance
        feminine, masculine = _OBJECT_SHARES
        odds = np.where(has_object, masculine / feminine, (1 - masculine) / (1 - feminine)).prod(
            axis=1
        )
        mentioned_gender = (draw.random(people) < odds / (1.0 + odds)).astype(int)
    is_without_gender = draw.random(people) < 0.1
    nouns = np.where(
        is_without_gender, "a person", _NOUNS[mentioned_gender, draw.integers(0, 3, people)]
    )
    objects = [[name for name, has in zip(_OBJECTS, row, strict=True) if has] for row in has_object]
    texts = [
        " ".join([noun, *(f"with a {name}" for name in names)])
        for noun, names in zip(nouns.tolist(), objects, strict=True)
    ]
    ids = [f"picture {i}" for i in range(people)]
    light = np.array(["day", "night"])[draw.integers(0, 2, people)]
    object_lists = [";".join(names) for names in objects]
    table = {"id": ids, "gender": _GENDERS[gender], "objects": object_lists, "light": light}
    return _write_tables(folder, {"people": table, "captions": {"id": ids, "caption": texts}})


def write_changed(
    folder: str | Path, *, association: float, scenes: int = 300, seed: int = 0
) -> Files:
    """Write pairs of ``pictures`` that differ in perceived gender alone, and ``scores`` of each.

    ``association``: how much higher the score "fits the occupation" is for the gender that it is
    taken for, in standard deviations of scenes.
    """
    draw = np.random.default_rng(seed)
    scene, gender = np.repeat(np.arange(scenes), 2), np.tile([0, 1], scenes)
    work = scene % 3
    of_scene = np.repeat(draw.normal(size=scenes), 2)
    shift = association * _STEREOTYPE[work] * (gender - 0.5)
    ids = [f"picture {i}" for i in range(2 * scenes)]
    pictures = {
        "id": ids,
        "scene": [f"scene {s}" for s in scene],
        "gender": _GENDERS[gender],
        "occupation": _OCCUPATIONS[work],
    }
    scores = {"id": ids, "score": of_scene + shift + 0.3 * draw.normal(size=2 * scenes)}
    return _write_tables(folder, {"pictures": pictures, "scores": scores})


def write_generated(
    folder: str | Path,
    *,
    association: float,
    pictures: int = 400,
    n_images: int = 300,
    seed: int = 0,
) -> Files:
    """Write ``pictures`` of three prompts, what a classifier ``judged``, and its ``matrix``.

    ``association``: how far the share of feminine pictures is below a half for doctors and above
    it for nurses; ``n_images``: cases of either value of which the matrix is made.
    """
    draw = np.random.default_rng(seed)
    prompt = np.repeat(np.arange(len(_PROMPTS)), pictures)
    shares = np.array([0.5 - association, 0.5 + association, 0.5])
    true = (draw.random(len(prompt)) >= shares[prompt]).astype(int)
    is_right = draw.random(len(prompt)) < _CLASSIFIER_ACCURACY[true]
    ids = [f"picture {i}" for i in range(len(prompt))]
    hits = [int(draw.binomial(n_images, chance)) for chance in _CLASSIFIER_ACCURACY]
    matrix = {
        "true": _GENDERS[[0, 0, 1, 1]],
        "labelled": _GENDERS[[0, 1, 0, 1]],
        "count": [hits[0], n_images - hits[0], n_images - hits[1], hits[1]],
    }
    label_columns = {"id": ids, "label": _GENDERS[np.where(is_right, true, 1 - true)]}
    prompt_columns = {"id": ids, "prompt": _PROMPTS[prompt]}
    return _write_tables(
        folder, {"pictures": prompt_columns, "judged": label_columns, "matrix": matrix}
    )


def write_pronouns(
    folder: str | Path, *, association: float, people: int = 1600, seed: int = 0
) -> Files:
    """Write ``people`` with occupation and gender, some beside another, and a model's ``answers``.

    ``association``: of people of the other gender than their occupation is taken for, the share
    more who get the wrong pronoun; a tenth of everyone does.
    """
    draw = np.random.default_rng(seed)
    gender = draw.integers(0, 2, people)
    work, distractor = np.arange(people) % len(_OCCUPATIONS), draw.integers(0, 3, people)
    against = _STEREOTYPE[work] * np.where(gender == 0, 1.0, -1.0) > 0
    is_wrong = draw.random(people) < 0.1 + association * against
    pronouns = _PRONOUNS[np.where(is_wrong, 1 - gender, gender)]
    table = {
        "id": [f"person {i}" for i in range(people)],
        "gender": _GENDERS[gender],
        "occupation": _OCCUPATIONS[work],
        "other": np.array(["nobody", *_GENDERS])[distractor],
    }
    texts = [f"the {job} and {p} desk" for job, p in zip(_OCCUPATIONS[work], pronouns, strict=True)]
    return _write_tables(folder, {"people": table, "answers": {"id": table["id"], "label": texts}})


def write_searches(
    folder: str | Path,
    *,
    association: float,
    queries: int = 60,
    images: int = 400,
    liking: float = 0.0,
    vectors: bool = False,
    seed: int = 0,
) -> Files:
    """Write ``prompts``, ``images`` of known group and a model's ``scores`` of all pairs.

    ``association``: how much higher masculine images score for ``science``, and lower for
    ``family``, in standard deviations; ``liking``: spread of what is liked of an image for every
    query; ``vectors``: ``texts`` and ``pictures`` whose products are the scores, instead of them.
    """
    draw = np.random.default_rng(seed)
    group, query_type = draw.integers(0, 2, images), np.arange(queries) % 2
    lean = association * np.where(query_type == 0, 1.0, -1.0)[:, None] * (group - 0.5)
    queried_prompts = [f"prompt {i}" for i in range(queries)]
    image_names = [f"image {i}" for i in range(images)]
    prompts = {"id": queried_prompts, "kind": np.array(["science", "family"])[query_type]}
    files = _write_tables(
        folder, {"prompts": prompts, "images": {"id": image_names, "gender": _GENDERS[group]}}
    )
    noise = draw.normal(size=(queries, images)) + liking * draw.normal(size=images)
    if not vectors:
        pairs = {
            "instance_id": np.repeat(queried_prompts, images),
            "other_id": np.tile(image_names, queries),
        }
        scores = {**pairs, "score": (noise + lean).ravel()}
        return files | _write_tables(folder, {"scores": scores}, ".parquet")
    # One coordinate for each query: a picture's number there is its score.
    embeddings_by_file = {
        "texts": (queried_prompts, np.eye(queries)),
        "pictures": (image_names, (noise + lean).T),
    }
    tables: dict[str, Mapping[str, Any]] = {}
    for name, (ids, rows) in embeddings_by_file.items():
        unit = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()
        tables[name] = {"instance_id": ids, "model": "net", "embedding": pl.Series(unit)}
    return files | _write_tables(folder, tables, ".parquet")


def _write_tables(
    folder: str | Path, tables: Mapping[str, Mapping[str, Any]], suffix: str = ".csv"
) -> Files:
    """Write each table as a file of its name."""
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    files = {name: root / f"{name}{suffix}" for name in tables}
    for name, table in tables.items():
        frame = pl.DataFrame(table)
        (frame.write_csv if suffix == ".csv" else frame.write_parquet)(files[name])
    return files
