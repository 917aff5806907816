"""What people of each occupation wear and hold: fifteen families and a table of 52 rows.

A colour that a row does not name is the subject's own (``Look.top``, ``second``, ``bottom``).
Helmets are carried, not worn: whether a head is covered is another attribute (``headwear``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

__all__ = ["OUTFITS", "Outfit"]


@dataclass(frozen=True, slots=True)
class Outfit:
    """A way to be dressed."""

    sleeve: float = 0.5
    neck: Literal["crew", "v", "collar", "scoop", "high"] = "crew"
    hem: float = 0.25
    whole: bool = False
    bottom: Literal["trousers", "shorts", "skirt"] = "trousers"
    top: str | None = None
    second: str | None = None
    lower: str | None = None
    details: tuple[str, ...] = ()
    prop: str = ""


_CASUAL = Outfit()
_HOODIE = Outfit(sleeve=2, details=("hood", "pocket"))
_SHIRT = Outfit(sleeve=2, neck="collar", details=("buttons",))
_SUIT = Outfit(
    sleeve=2,
    neck="v",
    hem=0.42,
    top="#2b313c",
    second="#f2f0ea",
    lower="#262b35",
    details=("lapels",),
)
_ROBE = Outfit(sleeve=2, neck="v", hem=1.9, whole=True, top="#1f1d22", second="#efece4")
_JERSEY = Outfit(sleeve=0.6, bottom="shorts", details=("number",))
_TANK = Outfit(sleeve=0, neck="scoop", bottom="shorts")
_SCRUBS = Outfit(sleeve=0.6, neck="v", hem=0.4, top="#4f9b99", lower="#468a88", second="#8fc7c4")
_UNIFORM = Outfit(
    sleeve=2,
    neck="collar",
    top="#33425c",
    lower="#28334a",
    second="#c9a545",
    details=("buttons", "belt", "badge"),
)
_HIVIS = Outfit(
    sleeve=2, neck="collar", top="#3b4a63", lower="#35414f", second="#f08a24", details=("hivis",)
)
_WORK = Outfit(
    sleeve=1, neck="collar", top="#9a8f78", lower="#3d5578", second="#3d5578", details=("bib",)
)
_APRON = Outfit(sleeve=2, neck="collar", second="#3f6a53", lower="#2e3138", details=("apron",))
_DRESS = Outfit(sleeve=0, neck="scoop", hem=1.0, whole=True, details=("sash",))
_LEATHER = Outfit(
    sleeve=2, neck="high", top="#26252a", lower="#2c2f36", second="#8d8f94", details=("zip",)
)
_FIELD = Outfit(
    sleeve=2,
    neck="collar",
    top="#6c7148",
    lower="#5d5f41",
    second="#4a4c30",
    details=("camouflage", "belt"),
)

OUTFITS: Mapping[str, Outfit] = {
    "astronaut": Outfit(
        sleeve=2,
        neck="high",
        hem=0.3,
        whole=True,
        top="#e9eaec",
        second="#d9733a",
        lower="#e9eaec",
        details=("suit_panel",),
        prop="space_helmet",
    ),
    "backpacker": replace(_HOODIE, details=("hood", "straps"), prop="backpack"),
    "ballplayer": replace(
        _JERSEY,
        top="#f1efe8",
        second="#a8322f",
        lower="#e6e3da",
        bottom="trousers",
        details=("pinstripes",),
        prop="bat",
    ),
    "bartender": replace(
        _APRON, top="#f0eee8", second="#1f2024", details=("vest", "bow"), prop="bottle"
    ),
    "basketball_player": replace(_TANK, details=("number", "trim"), prop="basketball"),
    "boatman": replace(
        _HIVIS, top="#3b6f8f", second="#e4572e", details=("life_vest",), prop="paddle"
    ),
    "carpenter": replace(_WORK, prop="saw"),
    "cheerleader": replace(
        _TANK,
        bottom="skirt",
        top="#c8352f",
        second="#f6efe0",
        lower="#c8352f",
        details=("chevron",),
        prop="pompoms",
    ),
    "climber": replace(_TANK, bottom="trousers", details=("harness",), prop="rope"),
    "computer_user": replace(_CASUAL, neck="collar", prop="laptop"),
    "craftsman": replace(_APRON, sleeve=1, second="#8a5a34", prop="mallet"),
    "dancer": replace(_DRESS, hem=0.85, prop="ribbon"),
    "disk_jockey": replace(_CASUAL, top="#2a2730", details=("wave",), prop="headphones"),
    "doctor": Outfit(
        sleeve=2,
        neck="v",
        hem=0.8,
        top="#f4f6f7",
        second="#8fb7cc",
        details=("lapels", "pocket"),
        prop="stethoscope",
    ),
    "drummer": replace(_CASUAL, sleeve=0, prop="drumsticks"),
    "electrician": replace(_WORK, top="#d6b24a", prop="cable"),
    "farmer": replace(_WORK, top="#a8463d", details=("bib", "check"), prop="pitchfork"),
    "fireman": replace(
        _HIVIS, top="#3a3630", second="#e8d44c", lower="#3a3630", details=("bands",), prop="hose"
    ),
    "flutist": replace(_SHIRT, top="#24252b", prop="flute"),
    "gardener": replace(_APRON, second="#5c7f3c", lower="#6b5d4d", prop="watering_can"),
    "guard": replace(_UNIFORM, top="#2c2f36", lower="#25272d", prop="radio"),
    "guitarist": replace(_CASUAL, details=("wave",), prop="guitar"),
    "gymnast": replace(_TANK, details=("trim",), top="#6a4aa0", lower="#5a3f8c", prop="hoop"),
    "hairdresser": replace(
        _CASUAL, top="#2d2c31", details=("apron",), second="#5c4a63", prop="scissors"
    ),
    "horseman": replace(
        _SHIRT, hem=0.4, top="#6e2b2f", lower="#e6dfce", details=("lapels",), prop="riding_helmet"
    ),
    "judge": replace(_ROBE, details=("bands_white",), prop="gavel"),
    "laborer": replace(_HIVIS, prop="hard_hat"),
    "lawman": replace(_UNIFORM, details=("buttons", "belt", "badge", "tie"), prop="baton"),
    "lifeguard": replace(
        _TANK, top="#d7352c", lower="#d7352c", second="#f7f4ec", details=("cross",), prop="buoy"
    ),
    "machinist": replace(_WORK, top="#56606c", second="#4b5a70", lower="#4b5a70", prop="wrench"),
    "motorcyclist": replace(_LEATHER, prop="helmet"),
    "nurse": replace(
        _SCRUBS,
        top="#6f9fd0",
        lower="#6f9fd0",
        second="#ffffff",
        details=("pocket", "badge"),
        prop="clipboard",
    ),
    "painter": replace(
        _WORK,
        top="#ebe7dd",
        second="#d9d5c9",
        lower="#d9d5c9",
        details=("bib", "splashes"),
        prop="palette",
    ),
    "patient": replace(
        _SCRUBS,
        hem=1.0,
        whole=True,
        top="#c9dbe6",
        second="#9fb9c9",
        details=("dots",),
        prop="drip",
    ),
    "prayer": replace(_ROBE, top="#d8cdb8", second="#a58c5c", details=("sash",), prop="beads"),
    "referee": replace(
        _JERSEY,
        top="#f2f2f0",
        second="#1d1d20",
        lower="#1d1d20",
        neck="collar",
        details=("stripes",),
        prop="whistle",
    ),
    "repairman": replace(_WORK, top="#4b6a8a", prop="toolbox"),
    "reporter": replace(_SUIT, top="#7a5d47", prop="reporter_microphone"),
    "retailer": replace(_SHIRT, details=("apron",), second="#2f6690", prop="box"),
    "runner": replace(_TANK, details=("bib_number",), prop="bottle"),
    "sculptor": replace(_APRON, sleeve=1, second="#b9ad98", prop="chisel"),
    "seller": replace(_APRON, second="#b5473c", details=("apron", "check"), prop="basket"),
    "singer": replace(
        _DRESS,
        whole=False,
        bottom="trousers",
        hem=0.3,
        sleeve=2,
        details=("glitter",),
        prop="microphone",
    ),
    "skateboarder": replace(_HOODIE, bottom="shorts", prop="skateboard"),
    "soccer_player": replace(_JERSEY, details=("number", "trim"), prop="football"),
    "soldier": replace(_FIELD, prop="field_pack"),
    "speaker": replace(_SUIT, details=("lapels", "tie"), prop="lectern"),
    "student": replace(_HOODIE, prop="books"),
    "teacher": replace(_SHIRT, details=("cardigan",), prop="book"),
    "tennis_player": replace(
        _JERSEY, top="#f5f5f2", lower="#f5f5f2", neck="collar", details=("trim",), prop="racket"
    ),
    "trumpeter": replace(_SUIT, top="#7d2230", second="#d9b13b", prop="trumpet"),
    "waiter": replace(
        _APRON, top="#f4f2ec", second="#20222a", details=("vest", "bow", "apron"), prop="tray"
    ),
}
"""Occupation to outfit."""
