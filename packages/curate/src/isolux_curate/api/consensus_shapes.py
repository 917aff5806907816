"""Consensus objects from several annotators' drawings: from a dataset to a folder of tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from isolux.core.containers import Dataset
from isolux.people.sources import load_people_or_take_dataset
from isolux_curate.shapes import MaskRule, Shapes, ShapeType, find_consensus_shapes


def consensus_shapes(
    data: Dataset | str | Path,
    *,
    kind: ShapeType = "boxes",
    annotator: str = "annotator",
    min_annotators: int = 2,
    min_similarity: float = 0.5,
    mask_rule: MaskRule = "vote",
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    data_option: Sequence[str] = (),
) -> Shapes:
    r"""Find the objects that several annotators drew, one box, mask or pose each.

    Parameters
    ----------
    data : Dataset or str
        NAME:FILE of a dataset with one instance a drawing (``coco:drawn.json``, a table with the
        columns ``box_x, box_y, box_w, box_h``), or such a dataset.
    kind : {"boxes", "masks", "keypoints"}
        What was drawn.
    annotator : str
        The attribute that says who drew each; in COCO's form ``"attributes": {"annotator": …}``.
    min_annotators : int
        How many annotators must have drawn an object.
    min_similarity : float
        How similar drawings of one object must be, on average: IoU, for keypoints object keypoint
        similarity; above 0, up to 1.
    mask_rule : {"vote", "staple"}
        vote (pixels that more than half drew) or staple (weights annotators by how well they seem
        to draw; with three or fewer it tends to follow only one of them).
    withdrawn : str, optional
        File with the ids of people who withdrew.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.
    data_option : sequence of str
        A setting of the loader, NAME=VALUE.

    Returns
    -------
    Shapes
        ``.objects``, ``.annotators``, ``.drawings``, ``.notes``; ``.write(folder)``.

    Raises
    ------
    SpecError
        Nobody drew that; a drawing without an annotator, or with two.

    Examples
    --------
    >>> import tempfile
    >>> rows = "image,annotator,box_x,box_y,box_w,box_h\n"
    >>> rows += "a.jpg,x,0,0,10,10\na.jpg,y,1,0,10,10\na.jpg,y,50,0,10,10\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "drawn.csv"
    ...     _ = file.write_text(rows)
    ...     found = consensus_shapes(f"table:{file}")
    >>> found.objects.select("drawn_by", "iou", "status", "box_x").to_dicts()[0]
    {'drawn_by': 2, 'iou': 0.8181818181818182, 'status': 'agreed', 'box_x': 0.5}
    """
    dataset = load_people_or_take_dataset(
        data, withdrawn=withdrawn, allow_unmatched=allow_unmatched, data_option=data_option
    )
    return find_consensus_shapes(
        dataset,
        kind,
        annotator_column=annotator,
        min_annotators=min_annotators,
        min_similarity=min_similarity,
        mask_rule=mask_rule,
    )
