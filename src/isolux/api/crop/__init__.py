"""``isolux.crop``: cut people or faces out of a dataset's pictures, as a publication does.

    load → who is shown where → a recipe → a PNG for each person → the list of all

Crops go back to the dataset by ``isolux predict --crops OUT``, which shows a model each person's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import polars as pl

from isolux.api.crop import recipes as of_recipes
from isolux.api.crop.crop_store import (
    CropFolder,
    CropRow,
    compute_crop_key,
)
from isolux.api.crop.predicted_boxes import attach_predicted_boxes
from isolux.api.crop.recipes import (
    NO_BOX,
    NO_MASK,
    CropFunction,
    CropOptions,
    CropRecipe,
    Person,
    find_recipe,
    list_people,
    read_subjects,
)
from isolux.core import progress
from isolux.core.containers import Dataset
from isolux.core.errors import InputError, IsoluxError
from isolux.core.notes import Caution
from isolux.engine.source_images import (
    SourceImage,
    decode_and_crop_units,
    find_image_folder,
    hash_image_file,
    list_source_images,
)
from isolux.geometry import crops as of_crops
from isolux.io import images as of_images
from isolux.io.image_folder import ImageFolder
from isolux.models import hash_module_sources
from isolux.people.sources import load_people_or_take_dataset

_BATCH_SIZE = 4  # pictures: a photo of 50 megapixels and its crops are 0.5 GB
_FHIBE_DOWNSCALED_PX = 2048  # pixels: the longer side of FHIBE's smaller photos
_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class CropResult:
    """What was cut out.

    Parameters
    ----------
    crops : polars.DataFrame
        One row a person: ``id``, ``image_id``, ``subject_id``, ``file`` below ``folder`` (null: no
        crop), its ``width`` and ``height``, ``sha256`` of the picture, the ``reason`` for none.
    folder : Path
    notes : tuple of str
        Cautions first.
    n_new_crops : int
        Crops that were cut out now; the others were there.
    """

    crops: pl.DataFrame
    folder: Path
    notes: tuple[str, ...]
    n_new_crops: int


def crop(
    data: Dataset | str | Path,
    *,
    recipe: str,
    out: str | Path,
    box: Literal["face", "person"] | None = None,
    factor: float | None = None,
    size: int | None = None,
    padding: float | None = None,
    square_position: Literal["left", "centre"] | None = None,
    boxes: str | None = None,
    images: str | None = None,
    only: Sequence[str] = (),
    withdrawn: str | None = None,
    allow_unmatched: bool = False,
    data_option: Sequence[str] = (),
    overwrite: bool = False,
) -> CropResult:
    r"""Cut people or faces out of a dataset's pictures.

    The same call goes on where it was stopped.

    Parameters
    ----------
    data : Dataset or str
        A dataset, or NAME:PATH (``fhibe:FHIBE``).
    recipe : str
        box, fhibe, aligned, casual-conversations, miap or fairface: how they are cut out; or whole,
        person-black, person-blurred or background-black: what is hidden in the photo.
    out : str or Path
        The directory to write, or to resume.
    box : {"face", "person"}, optional
        Which box is cut out; face: the face's box if the data have one. Default: the recipe's.
    factor : float, optional
        Factor by which a box is enlarged about its centre; default: the recipe's.
    size : int, optional
        Side length of the crop in pixels; default: the recipe's, or as large as the box.
    padding : float, optional
        For fairface: what is added on each side, 0.25 or 1.25 as published; default: 0.25.
    square_position : {"left", "centre"}, optional
        For miap: where the square of a wide box lies; default: left, as in the paper.
    boxes : str, optional
        Boxes for data without any, one person an image: a directory of isolux predict, or a file.
    images : str, optional
        The folder that contains the pictures; default: looked for near the annotation.
    only : sequence of str
        Who is cut out: ``"age>=20"``.
    withdrawn : str, optional
        File with the ids of people who withdrew: they are left out, and crops of them removed.
    allow_unmatched : bool
        Continue even if an id in ``withdrawn`` matches nobody.
    data_option : sequence of str
        A setting specific to the dataset, NAME=VALUE.
    overwrite : bool
        Replace crops of other data, or from another recipe.

    Returns
    -------
    CropResult

    Raises
    ------
    UnknownNameError, SpecError
        No such recipe, or a setting that it does not know.
    InputError
        No one could be cut out.
    OutputError
        Something else is at ``out``.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from isolux.datasets import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Image.new("RGB", (20, 10)).save(Path(folder) / "a.png")
    ...     file = Path(folder) / "boxes.json"
    ...     _ = file.write_text(
    ...         '{"images": [{"id": 1, "file_name": "a.png", "width": 20, "height": 10}],'
    ...         ' "annotations": [{"id": 7, "image_id": 1, "category_id": 1,'
    ...         ' "bbox": [2, 2, 4, 4], "area": 16, "iscrowd": 0}],'
    ...         ' "categories": [{"id": 1, "name": "person"}]}')
    ...     people = load("coco", file)
    ...     found = crop(people, recipe="box", factor=1.5, out=Path(folder) / "faces")
    >>> found.crops.select("id", "width", "height", "reason").row(0)
    ('7', 6, 6, None)
    """
    crop_recipe = find_recipe(recipe)
    options = crop_recipe.fill_defaults(CropOptions(box, factor, size, padding, square_position))
    dataset = load_people_or_take_dataset(
        data,
        only=only,
        withdrawn=withdrawn,
        allow_unmatched=allow_unmatched,
        data_option=data_option,
        images=images,
    )
    if boxes is not None:
        dataset = attach_predicted_boxes(dataset, boxes)
    crop_run = _CropRun(
        dataset,
        crop_recipe,
        options,
        CropFolder(out),
        hash_module_sources(of_crops, of_images, of_recipes),
    )
    record = {
        "data": str(data) if not isinstance(data, Dataset) else dataset.name,
        "recipe": recipe,
        "settings": asdict(options) | ({} if boxes is None else {"boxes": str(boxes)}),
        "inputs": dict(dataset.inputs),
    }
    return crop_run.execute(record, overwrite=overwrite)


@dataclass
class _CropRun:
    dataset: Dataset
    recipe: CropRecipe
    options: CropOptions
    folder: CropFolder
    code: str
    n_new_crops: int = 0

    def execute(self, record: Mapping[str, Any], *, overwrite: bool) -> CropResult:
        people = list_people(self.dataset)
        images = [
            p for p in list_source_images(self.dataset, "boxes", "image") if p.image_id in people
        ]
        subjects = read_subjects(self.dataset)
        self.folder.open(
            record,
            [person.id for image_people in people.values() for person in image_people],
            overwrite=overwrite,
        )
        rows: list[CropRow] = []
        try:
            for k, image_rows in enumerate(self._crop_images(images, people, subjects), start=1):
                rows += image_rows
                progress.report_step(f"cutting out: {k:,} of {len(images):,} pictures")
            _refuse_if_no_crops(rows, self.recipe)
        except BaseException:
            self.folder.discard()
            raise
        order = {name: k for k, name in enumerate(self.dataset.instances["instance_id"])}
        rows.sort(key=lambda row: order[row.id])
        table = self.folder.close(record, rows)
        return CropResult(table, self.folder.path, self._build_notes(rows), self.n_new_crops)

    def _crop_images(
        self,
        images: Sequence[SourceImage],
        people: Mapping[str, Sequence[Person]],
        subjects: Mapping[str, str | None],
    ) -> Iterator[list[CropRow]]:
        """Crop images in batches, in order."""
        folder = find_image_folder(self.dataset)
        queue = iter(images)
        with ThreadPoolExecutor(_BATCH_SIZE) as threads:
            while batch := list(islice(queue, _BATCH_SIZE)):
                yield from threads.map(
                    lambda image: self._crop_image(image, folder, people[image.image_id], subjects),
                    batch,
                )

    def _crop_image(
        self,
        image: SourceImage,
        folder: ImageFolder,
        people: Sequence[Person],
        subjects: Mapping[str, str | None],
    ) -> list[CropRow]:
        sha256 = hash_image_file(image, folder)
        crop_functions: dict[str, CropFunction | str] = {
            person.id: self._crop_function_or_reason(person) for person in people
        }
        names = {
            person.id: self.folder.name(
                person,
                compute_crop_key(self.recipe.name, self.options, person, sha256 or "", self.code),
            )
            for person in people
        }
        sizes = {person.id: self.folder.size(names[person.id]) for person in people}
        pixels: of_crops.Pixels | str | None = None
        rows = []
        for person in people:
            crop_function, size = crop_functions[person.id], sizes[person.id]
            reason = crop_function if isinstance(crop_function, str) else None
            if not isinstance(crop_function, str) and (size is None or sha256 is None):
                pixels = self._decode_image(image, folder) if pixels is None else pixels
                size, reason = self._write_crop(crop_function, pixels, names[person.id])
            width, height = size if size and reason is None else (None, None)
            rows.append(
                CropRow(
                    person.id,
                    image.image_id,
                    subjects.get(person.id),
                    names[person.id] if reason is None else None,
                    width,
                    height,
                    sha256,
                    reason,
                )
            )
        return rows

    def _crop_function_or_reason(self, person: Person) -> CropFunction | str:
        try:
            return self.recipe.build_crop(person, self.options)
        except IsoluxError as error:
            return _format_error(error)

    def _decode_image(self, image: SourceImage, folder: ImageFolder) -> of_crops.Pixels | str:
        (cut,) = decode_and_crop_units(image, folder).crops
        if cut.pixels is None:
            return cut.reason or "the picture could not be used"
        return cut.pixels

    def _write_crop(
        self, crop_function: CropFunction, pixels: of_crops.Pixels | str, name: str
    ) -> tuple[tuple[int, int] | None, str | None]:
        if isinstance(pixels, str):
            return None, pixels
        try:
            crop_pixels = crop_function(pixels)
        except IsoluxError as error:
            return None, _format_error(error)
        self.folder.write(name, crop_pixels)
        self.n_new_crops += 1
        return (crop_pixels.shape[1], crop_pixels.shape[0]), None

    def _build_notes(self, rows: Sequence[CropRow]) -> tuple[str, ...]:
        reasons = Counter(row.reason for row in rows if row.reason is not None)
        notes: list[str] = []
        if reasons:
            examples = "; ".join(
                f"{reason} ({n:,})" for reason, n in reasons.most_common(_MAX_LISTED)
            )
            remainder = "; …" if len(reasons) > _MAX_LISTED else ""
            notes.append(
                Caution(
                    f"{reasons.total():,} of {len(rows):,} people have no crop:"
                    f" {examples}{remainder}."
                )
            )
        if self.recipe.name == "aligned" and self.dataset.name == "fhibe":
            widths = self.dataset.images["width"].fill_null(0)
            heights = self.dataset.images["height"].fill_null(0)
            if (
                pl.select(pl.max_horizontal(widths, heights)).to_series().max()
                == _FHIBE_DOWNSCALED_PX
            ):
                notes.append(
                    Caution(
                        "These faces are cut from photos of 2,048 pixels; FHIBE's own are from the "
                        "full-size photos, and sharper."
                    )
                )
        notes += [
            f"{self.recipe.name}: {open_question}." for open_question in self.recipe.open_questions
        ]
        return (*self.dataset.notes, *notes)


_NO_MASK_HINT = "--data-option segments=true loads FHIBE's parts, whose union is the person's mask"
_NO_BOX_HINT = (
    "find them by a detector (isolux predict … --model mtcnn: --out found; then --boxes found), or "
    "load data that have them, such as coco:people.json"
)


def _format_error(error: IsoluxError) -> str:
    return error.problem if error.found is None else f"{error.problem}: {error.found}"


def _refuse_if_no_crops(rows: Sequence[CropRow], recipe: CropRecipe) -> None:
    if any(row.reason is None for row in rows):
        return
    reasons = Counter(row.reason for row in rows).most_common(_MAX_LISTED)
    raise InputError(
        "nobody could be cut out",
        expected=f"what the recipe {recipe.name!r} needs: {recipe.title}",
        found="; ".join(f"{reason} ({n:,})" for reason, n in reasons) or "no people",
        hint=_NO_BOX_HINT
        if any(reason == NO_BOX for reason, _ in reasons)
        else _NO_MASK_HINT
        if any(reason == NO_MASK for reason, _ in reasons)
        else None,
    )
