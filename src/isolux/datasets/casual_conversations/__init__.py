"""Casual Conversations, versions 1 and 2: videos of paid people who said their age and gender.

Hazirbas et al. (2021; 2022). Reads the JSON of either, or the list of pictures that Fairness
Indicators' code makes of version 1. Videos are not opened: frames that were extracted elsewhere are
chosen from a folder. Videos of one person are alike, so the person is what was sampled.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, SpecError
from isolux.core.formatting import AND_MORE, join_first
from isolux.core.info import DatasetInfo, Reference
from isolux.datasets._files import Inputs, build_recursive_patterns, find_single_file
from isolux.datasets._relative_paths import IMAGE_NAME_PATTERN, list_relative_file_paths
from isolux.datasets._tables import (
    build_clustered_dataset,
    convert_years_to_age_groups,
    melt_columns_to_attribute_rows,
)
from isolux.datasets.casual_conversations.annotation_files import (
    ConversationVideos,
    parse_conversations,
)
from isolux.io.hashing import sha256_listing
from isolux.io.refusals import refuse_cells

AGE_EDGES = (18, 30, 45, 70)
"""Where Fairness Indicators parts ages (Table 4): 18 up to 30, 30 up to 45, 45 up to 70, 70+."""

_MAX_LISTED_VIDEOS = 10  # videos without a frame that a note spells out

INFO = DatasetInfo(
    title="Casual Conversations",
    summary="45,186 (version 1) and 26,467 (version 2) videos of people who said who they are.",
    references=(
        Reference(
            key="casual-conversations",
            citation="Hazirbas, C., Bitton, J., Dolhansky, B., Pan, J., Gordo, A., & Canton Ferrer,"
            " C. (2021). Towards measuring fairness in AI: The Casual Conversations dataset. IEEE"
            " Transactions on Biometrics, Behavior, and Identity Science.",
            location="version 1",
            url="https://arxiv.org/abs/2104.02821",
        ),
        Reference(
            key="casual-conversations-v2",
            citation="Hazirbas, C., Bang, Y., Yu, T., Assar, P., Porgali, B., Albiero, V.,"
            " Hermanek, S., Pan, J., McReynolds, E., Bogen, M., Fung, P., & Canton Ferrer, C."
            " (2022). Casual Conversations v2: Designing a large consent-driven dataset to measure"
            " algorithmic bias and robustness. arXiv.",
            location="version 2",
            url="https://arxiv.org/abs/2211.05809",
        ),
    ),
    licence="Casual Conversations' own licence (Meta): evaluation only",
    training_allowed=False,
    training_terms="its licence is for the evaluation of models, not for their training",
    withdrawal="as the publisher's terms say; no list of withdrawals comes with the data",
    label_source="self-reported",
    terms=(
        ("age", "self-reported age"),
        ("age_group", "self-reported age"),
        ("gender", "self-reported gender"),
        ("skin_type", "annotated skin type (Fitzpatrick)"),
        ("skin_type_confidence", "how sure annotators were of the skin type"),
        ("skin_tone", "annotated skin tone (Monk scale)"),
        ("skin_tone_confidence", "how sure annotators were of the skin tone"),
        ("lighting", "annotated lighting"),
        ("country", "self-reported country"),
        ("state_region", "self-reported state or region"),
        ("native_language", "self-reported native language"),
    ),
    assumptions=(
        "people are independent of one another, videos and frames of one person are not",
        "a person shows in every frame that is chosen",
    ),
)
_FRAME_FILE_NAME = r"(?s)^(?:.*/)?([^/]+?)(?:_raw)?[_-]?frame[_-]?([0-9]{1,18})\.[^./]+$"
_FRAME_IN_FOLDER = r"(?s)^(?:.*/)?([^/]+)/[^/0-9]*([0-9]{1,18})\.[^./]+$"


def load(
    path: str | Path,
    *,
    pictures: str | Path | None = None,
    frames: int = 1,
) -> Dataset:
    r"""Load Casual Conversations.

    ``cluster`` of ``isolux.load`` may be ``subject`` (where not given), ``video``, ``row``, or
    an attribute.

    Parameters
    ----------
    path : str or Path
        ``CasualConversations.json``, ``CasualConversations_mini.json``,
        ``CasualConversationsV2.json``, Fairness Indicators' list, or a folder that holds one.
    pictures : str or Path, optional
        The folder of extracted frames or face crops: ``<video>_raw_frame00000012.jpg``, as version
        2 publishes them, or ``<video>/<number>.jpg``. Not given: ``images`` (``--images``), else a
        video is judged as a whole. Of a list of pictures only their folder.
    frames : int
        How many of a video's pictures to take, evenly over those there are. 1: the middle one,
        which among face crops is the middle frame with a face (Fairness Indicators, appendix B.1;
        FHIBE's statistics). FHIBE measures diversity on 10 of version 1 and 3 of version 2.

    Returns
    -------
    Dataset
        ``instances``: a video, or ``<video>#<frame>``, with ``subject_id`` and ``video_id``; a
        video without a picture stays as itself. ``attributes``: ``age`` (years, as ``number`` too),
        ``age_group`` (Fairness Indicators' bins), ``gender``, ``skin_type`` (``1`` to ``6`` in
        both versions); version 1 ``lighting`` (``dark``, ``bright``); version 2 ``skin_tone``
        (``1`` to ``10``), confidences, ``country``, ``state_region``, ``native_language``. Null
        where it is not known.

    Raises
    ------
    FileError, TableError
        A damaged file, a subject or video that occurs twice, an age or skin tone that is none, a
        folder without frames of these videos.
    SpecError
        ``frames`` without ``pictures``, or below 1.

    Examples
    --------
    >>> import tempfile
    >>> text = '{"0208": {"files": ["CC/0208/0208_00.MP4"], "label": {"age": "20", "gender":'
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "CasualConversations.json"
    ...     _ = file.write_text(text + ' "Female", "skin-type": "5"}}}')
    ...     dataset = load(folder)
    >>> dataset.instances.select("instance_id", "cluster_id").row(0)
    ('0208_00', '0208')
    >>> dataset.values_of("age_group")["value"].item()
    '18-29'
    """
    _check_frame_settings(frames, pictures)
    names = ("CasualConversations.json", "CasualConversationsV2.json")
    file = find_single_file(
        path, build_recursive_patterns(*names), "Casual Conversations annotations"
    )
    source, inputs = str(file), Inputs()
    conversations = parse_conversations(inputs.read(file), source)
    video_units = _build_video_units(conversations, pictures, frames, inputs)
    return build_clustered_dataset(
        "casual_conversations",
        INFO,
        instances=video_units.units.select(
            "instance_id",
            "subject_id",
            image_id="instance_id",
            classes=pl.lit(["person"]),
            video_id="video",
            frame_index="frame_index",
        ),
        attributes=_build_casual_attribute_rows(video_units.units, conversations),
        images=video_units.units.select(image_id="instance_id", uri="uri"),
        inputs=inputs,
        source=source,
        notes=(*video_units.notes, *_note_people_without_age(conversations.table)),
        cluster="subject",
        clusters={"subject": "subject_id", "video": "video_id", "image": "image_id", "row": None},
    )


def _check_frame_settings(frames: int, pictures: str | Path | None) -> None:
    if frames < 1:
        raise SpecError("frames cannot be set to that", expected="1 or more", found=str(frames))
    if frames > 1 and pictures is None:
        raise SpecError(
            "several frames per video are requested, but there are no pictures to choose from",
            expected="pictures, the folder of extracted frames",
            found=f"frames={frames}",
            hint="videos are not opened: extract their frames, and name their folder with"
            " --data-option pictures=FOLDER (pictures=FOLDER)",
        )


@dataclass(frozen=True, slots=True)
class _VideoUnits:
    units: pl.DataFrame
    notes: tuple[str, ...]


def _build_video_units(
    conversations: ConversationVideos, pictures: str | Path | None, frames: int, inputs: Inputs
) -> _VideoUnits:
    """Make a unit of each chosen frame, or of each video."""
    videos = conversations.table
    if pictures is None or (conversations.has_pictures and frames == 1):
        units = videos.with_columns(instance_id="video", frame_index=pl.lit(None, dtype=pl.Int64))
        return _VideoUnits(units, ())
    if conversations.has_pictures:
        raise SpecError(
            "this list names pictures, not videos: there are no frames to choose",
            expected="the list without pictures, or the JSON of the videos",
            found="pictures",
        )
    root = Path(pictures).expanduser()
    frame_choice = choose_frames_of_videos(root, videos["video"], frames)
    inputs[str(root)] = frame_choice.digest
    units = videos.rename({"uri": "file"}).join(
        frame_choice.table, on="video", how="left", maintain_order="left_right"
    )
    unit_ids = (
        pl.when(pl.col("uri").is_null())
        .then("video")
        .otherwise(pl.format("{}#{}", "video", "frame_index"))
    )
    return _VideoUnits(
        units.with_columns(instance_id=unit_ids),
        _build_frame_notes(units, frame_choice.n_unmatched),
    )


def _build_frame_notes(units: pl.DataFrame, n_unmatched: int) -> tuple[str, ...]:
    notes = []
    missing = units.filter(pl.col("uri").is_null())["video"]
    if len(missing):
        notes.append(
            f"{len(missing):,} video(s) have no picture and are kept as they are: "
            f"{join_first(missing, _MAX_LISTED_VIDEOS, AND_MORE)}."
        )
    if n_unmatched:
        notes.append(f"{n_unmatched:,} picture(s) are of no video that the file lists.")
    return tuple(notes)


def _build_casual_attribute_rows(
    units: pl.DataFrame, conversations: ConversationVideos
) -> pl.DataFrame:
    """Build the attributes of videos, and of people where the file has them by person."""

    def add_age_group_column(rows: pl.DataFrame) -> pl.DataFrame:
        return rows.with_columns(age_group=convert_years_to_age_groups(rows["age"], AGE_EDGES))

    def append_age_group_name(names: tuple[str, ...]) -> tuple[str, ...]:
        return (*names, "age_group") if "age" in names else names

    tables = [
        melt_columns_to_attribute_rows(
            add_age_group_column(units),
            "instance_id",
            append_age_group_name(conversations.attributes),
        )
    ]
    if conversations.subject_attributes:
        people = add_age_group_column(units.unique("subject_id", keep="first", maintain_order=True))
        subject_attributes = append_age_group_name(conversations.subject_attributes)
        tables.append(
            melt_columns_to_attribute_rows(
                people, "subject_id", subject_attributes, unit_kind="subject"
            )
        )
    return pl.concat(tables)


def _note_people_without_age(videos: pl.DataFrame) -> tuple[str, ...]:
    n_without_age = videos.filter(pl.col("age").is_null())["subject_id"].n_unique()
    return (f"{n_without_age:,} people did not tell their age.",) if n_without_age else ()


@dataclass(frozen=True, slots=True)
class ChosenFrames:
    """``table``: ``video``, ``frame_index``, ``uri``; ``n_unmatched``: images of no such video."""

    table: pl.DataFrame
    n_unmatched: int
    digest: str


def choose_frames_of_videos(root: Path, videos: pl.Series, n_frames: int) -> ChosenFrames:
    """Choose up to ``n_frames`` frames of each video, evenly spaced; 1: the middle one."""
    if not root.is_dir():
        raise FileError("there is no such folder of frames", where=str(root))
    files = list_relative_file_paths(root)
    pictures = files.filter(files.str.contains(IMAGE_NAME_PATTERN)).to_frame("uri")
    parsed = pictures.select(
        "uri",
        video=pl.coalesce(
            pl.col("uri").str.extract(_FRAME_FILE_NAME, 1),
            pl.col("uri").str.extract(_FRAME_IN_FOLDER, 1),
        ),
        frame_index=pl.coalesce(
            pl.col("uri").str.extract(_FRAME_FILE_NAME, 2),
            pl.col("uri").str.extract(_FRAME_IN_FOLDER, 2),
        ).cast(pl.Int64),
    )
    known_frames = parsed.filter(pl.col("video").is_in(videos.implode()))
    if known_frames.is_empty():
        raise FileError(
            "the folder holds no frame of these videos",
            expected=f"such as {videos[0]}_frame00000012.jpg" if len(videos) else None,
            found=repr(pictures["uri"][0]) if pictures.height else "no picture",
            where=str(root),
        )
    is_repeated = known_frames.select(pl.struct("video", "frame_index").is_duplicated()).to_series()
    problem, expected = "a frame is there twice", "each frame of a video once"
    refuse_cells(is_repeated, known_frames["uri"].alias(""), problem, expected, str(root))
    return ChosenFrames(
        _select_frames_evenly(known_frames, n_frames),
        parsed.height - known_frames.height,
        sha256_listing(root),
    )


def _select_frames_evenly(frames: pl.DataFrame, n_frames: int) -> pl.DataFrame:
    """Keep the frames in the middle of ``n_frames`` equal parts of each video's list."""
    ordered = frames.sort("video", "frame_index").with_columns(
        place=pl.int_range(pl.len()).over("video")
    )
    part_numbers = pl.DataFrame({"part": pl.int_range(n_frames, eager=True)})
    positions = (
        ordered.group_by("video", maintain_order=True)
        .agg(pl.len().cast(pl.Int64))
        .join(part_numbers, how="cross", maintain_order="left")
        # The middle of part i, ⌊(i + ½) · length / n⌋, in whole numbers.
        .select("video", place=(2 * pl.col("part") + 1) * pl.col("len") // (2 * n_frames))
        .unique()
    )
    return ordered.join(positions, on=["video", "place"], how="semi", maintain_order="left").select(
        "video", "frame_index", "uri"
    )
