"""What people of each occupation wear and hold: fifteen families and a table of 52 rows.

A colour that a row does not name is the subject's own (``Look.top``, ``second``, ``bottom``).
Helmets are carried, not worn: whether a head is covered is another attribute (``headwear``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

__all__ = ["OUTFITS", "Outfit"]


@dataclass(frozen=True, slots=True)
class Outfit:
    """A way to be dressed."""

    sleeve: float = 0.5
    neck: Literal["crew", "v", "collar", "scoop", "high"] = "crew"
    hem: float = 0.25
    is_one_piece: bool = False
    bottom: Literal["trousers", "shorts", "skirt"] = "trousers"
    top: str | None = None
    second: str | None = None
    lower: str | None = None
    details: tuple[str, ...] = ()
    prop: str = ""


def _change_outfit(base: Outfit, prop: str, *details: str, **changes: Any) -> Outfit:
    """Change an outfit: what is held, and details and whatever else is named."""
    return replace(base, prop=prop, details=details or base.details, **changes)


_CASUAL = Outfit()
_family = partial(_change_outfit, _CASUAL, "")
_HOODIE = _family("hood", "pocket", sleeve=2)
_SHIRT = _family("buttons", sleeve=2, neck="collar")
_SUIT = _family(
    "lapels", sleeve=2, neck="v", hem=0.42, top="#2b313c", second="#f2f0ea", lower="#262b35"
)
_ROBE = _family(sleeve=2, neck="v", hem=1.9, is_one_piece=True, top="#1f1d22", second="#efece4")
_JERSEY = _family("number", sleeve=0.6, bottom="shorts")
_TANK = _family(sleeve=0, neck="scoop", bottom="shorts")
_SCRUBS = _family(sleeve=0.6, neck="v", hem=0.4, top="#4f9b99", second="#8fc7c4", lower="#468a88")
_UNIFORM = _family(
    "buttons",
    "belt",
    "badge",
    sleeve=2,
    neck="collar",
    top="#33425c",
    second="#c9a545",
    lower="#28334a",
)
_HIVIS = _family("hivis", sleeve=2, neck="collar", top="#3b4a63", second="#f08a24", lower="#35414f")
_WORK = _family("bib", sleeve=1, neck="collar", top="#9a8f78", second="#3d5578", lower="#3d5578")
_APRON = _family("apron", sleeve=2, neck="collar", second="#3f6a53", lower="#2e3138")
_DRESS = _family("sash", sleeve=0, neck="scoop", hem=1.0, is_one_piece=True)
_LEATHER = _family("zip", sleeve=2, neck="high", top="#26252a", second="#8d8f94", lower="#2c2f36")
_FIELD = _family(
    "camouflage", "belt", sleeve=2, neck="collar", top="#6c7148", second="#4a4c30", lower="#5d5f41"
)

OUTFITS: Mapping[str, Outfit] = {
    "astronaut": _change_outfit(
        _CASUAL,
        "space_helmet",
        "suit_panel",
        sleeve=2,
        neck="high",
        hem=0.3,
        is_one_piece=True,
        top="#e9eaec",
        second="#d9733a",
        lower="#e9eaec",
    ),
    "backpacker": _change_outfit(_HOODIE, "backpack", "hood", "straps"),
    "ballplayer": _change_outfit(
        _JERSEY,
        "bat",
        "pinstripes",
        bottom="trousers",
        top="#f1efe8",
        second="#a8322f",
        lower="#e6e3da",
    ),
    "bartender": _change_outfit(_APRON, "bottle", "vest", "bow", top="#f0eee8", second="#1f2024"),
    "basketball_player": _change_outfit(_TANK, "basketball", "number", "trim"),
    "boatman": _change_outfit(_HIVIS, "paddle", "life_vest", top="#3b6f8f", second="#e4572e"),
    "carpenter": _change_outfit(_WORK, "saw"),
    "cheerleader": _change_outfit(
        _TANK,
        "pompoms",
        "chevron",
        bottom="skirt",
        top="#c8352f",
        second="#f6efe0",
        lower="#c8352f",
    ),
    "climber": _change_outfit(_TANK, "rope", "harness", bottom="trousers"),
    "computer_user": _change_outfit(_CASUAL, "laptop", neck="collar"),
    "craftsman": _change_outfit(_APRON, "mallet", sleeve=1, second="#8a5a34"),
    "dancer": _change_outfit(_DRESS, "ribbon", hem=0.85),
    "disk_jockey": _change_outfit(_CASUAL, "headphones", "wave", top="#2a2730"),
    "doctor": _change_outfit(
        _CASUAL,
        "stethoscope",
        "lapels",
        "pocket",
        sleeve=2,
        neck="v",
        hem=0.8,
        top="#f4f6f7",
        second="#8fb7cc",
    ),
    "drummer": _change_outfit(_CASUAL, "drumsticks", sleeve=0),
    "electrician": _change_outfit(_WORK, "cable", top="#d6b24a"),
    "farmer": _change_outfit(_WORK, "pitchfork", "bib", "check", top="#a8463d"),
    "fireman": _change_outfit(
        _HIVIS, "hose", "bands", top="#3a3630", second="#e8d44c", lower="#3a3630"
    ),
    "flutist": _change_outfit(_SHIRT, "flute", top="#24252b"),
    "gardener": _change_outfit(_APRON, "watering_can", second="#5c7f3c", lower="#6b5d4d"),
    "guard": _change_outfit(_UNIFORM, "radio", top="#2c2f36", lower="#25272d"),
    "guitarist": _change_outfit(_CASUAL, "guitar", "wave"),
    "gymnast": _change_outfit(_TANK, "hoop", "trim", top="#6a4aa0", lower="#5a3f8c"),
    "hairdresser": _change_outfit(_CASUAL, "scissors", "apron", top="#2d2c31", second="#5c4a63"),
    "horseman": _change_outfit(
        _SHIRT, "riding_helmet", "lapels", hem=0.4, top="#6e2b2f", lower="#e6dfce"
    ),
    "judge": _change_outfit(_ROBE, "gavel", "bands_white"),
    "laborer": _change_outfit(_HIVIS, "hard_hat"),
    "lawman": _change_outfit(_UNIFORM, "baton", "buttons", "belt", "badge", "tie"),
    "lifeguard": _change_outfit(
        _TANK, "buoy", "cross", top="#d7352c", second="#f7f4ec", lower="#d7352c"
    ),
    "machinist": _change_outfit(_WORK, "wrench", top="#56606c", second="#4b5a70", lower="#4b5a70"),
    "motorcyclist": _change_outfit(_LEATHER, "helmet"),
    "nurse": _change_outfit(
        _SCRUBS, "clipboard", "pocket", "badge", top="#6f9fd0", second="#ffffff", lower="#6f9fd0"
    ),
    "painter": _change_outfit(
        _WORK, "palette", "bib", "splashes", top="#ebe7dd", second="#d9d5c9", lower="#d9d5c9"
    ),
    "patient": _change_outfit(
        _SCRUBS, "drip", "dots", hem=1.0, is_one_piece=True, top="#c9dbe6", second="#9fb9c9"
    ),
    "prayer": _change_outfit(_ROBE, "beads", "sash", top="#d8cdb8", second="#a58c5c"),
    "referee": _change_outfit(
        _JERSEY,
        "whistle",
        "stripes",
        neck="collar",
        top="#f2f2f0",
        second="#1d1d20",
        lower="#1d1d20",
    ),
    "repairman": _change_outfit(_WORK, "toolbox", top="#4b6a8a"),
    "reporter": _change_outfit(_SUIT, "reporter_microphone", top="#7a5d47"),
    "retailer": _change_outfit(_SHIRT, "box", "apron", second="#2f6690"),
    "runner": _change_outfit(_TANK, "bottle", "bib_number"),
    "sculptor": _change_outfit(_APRON, "chisel", sleeve=1, second="#b9ad98"),
    "seller": _change_outfit(_APRON, "basket", "apron", "check", second="#b5473c"),
    "singer": _change_outfit(
        _DRESS, "microphone", "glitter", sleeve=2, hem=0.3, is_one_piece=False
    ),
    "skateboarder": _change_outfit(_HOODIE, "skateboard", bottom="shorts"),
    "soccer_player": _change_outfit(_JERSEY, "football", "number", "trim"),
    "soldier": _change_outfit(_FIELD, "field_pack"),
    "speaker": _change_outfit(_SUIT, "lectern", "lapels", "tie"),
    "student": _change_outfit(_HOODIE, "books"),
    "teacher": _change_outfit(_SHIRT, "book", "cardigan"),
    "tennis_player": _change_outfit(
        _JERSEY, "racket", "trim", neck="collar", top="#f5f5f2", lower="#f5f5f2"
    ),
    "trumpeter": _change_outfit(_SUIT, "trumpet", top="#7d2230", second="#d9b13b"),
    "waiter": _change_outfit(
        _APRON, "tray", "vest", "bow", "apron", top="#f4f2ec", second="#20222a"
    ),
}
"""Occupation to outfit."""
