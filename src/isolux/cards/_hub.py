"""The metadata of Hugging Face's cards: YAML before the Markdown, by the Hub's own classes."""

from __future__ import annotations

import re
from typing import Any

from isolux.core.errors import SpecError
from isolux.core.extras import import_optional

_HUB_LICENCES = frozenset(
    (
        "afl-3.0",
        "agpl-3.0",
        "apache-2.0",
        "artistic-2.0",
        "bigscience-openrail-m",
        "bsd",
        "bsd-2-clause",
        "bsd-3-clause",
        "bsl-1.0",
        "c-uda",
        "cc",
        "cc-by-2.0",
        "cc-by-2.5",
        "cc-by-3.0",
        "cc-by-4.0",
        "cc-by-nc-2.0",
        "cc-by-nc-3.0",
        "cc-by-nc-4.0",
        "cc-by-nc-nd-3.0",
        "cc-by-nc-nd-4.0",
        "cc-by-nc-sa-2.0",
        "cc-by-nc-sa-3.0",
        "cc-by-nc-sa-4.0",
        "cc-by-nd-4.0",
        "cc-by-sa-3.0",
        "cc-by-sa-4.0",
        "cc0-1.0",
        "cdla-permissive-1.0",
        "cdla-permissive-2.0",
        "cdla-sharing-1.0",
        "creativeml-openrail-m",
        "ecl-2.0",
        "epl-1.0",
        "epl-2.0",
        "eupl-1.1",
        "gpl",
        "gpl-2.0",
        "gpl-3.0",
        "isc",
        "lgpl",
        "lgpl-2.1",
        "lgpl-3.0",
        "mit",
        "mpl-2.0",
        "ms-pl",
        "odbl",
        "odc-by",
        "openrail",
        "openrail++",
        "osl-3.0",
        "pddl",
        "unlicense",
        "wtfpl",
        "zlib",
    )
)
"""The Hub's identifiers of licences (https://huggingface.co/docs/hub/repositories-licenses)."""


def import_huggingface_hub(purpose: str) -> Any:
    """Import the Hub's own classes."""
    package = "huggingface_hub"
    return import_optional(package, package=package, extra="cards", purpose=purpose)


def to_hub_licence_fields(text: str) -> dict[str, str]:
    """Write a licence as the Hub does: one of its own words, or ``other`` and a name.

    Examples
    --------
    >>> (
    ...     to_hub_licence_fields("CC BY 4.0"),
    ...     to_hub_licence_fields("Research only"),
    ...     to_hub_licence_fields(""),
    ... )
    ({'license': 'cc-by-4.0'}, {'license': 'other', 'license_name': 'research-only'}, {})
    """
    word = re.sub(r"[^a-z0-9.+]+", "-", text.lower()).strip("-")
    if word in _HUB_LICENCES:
        return {"license": word}
    return {"license": "other", "license_name": word[:60] or "unnamed"} if text else {}


def format_validated_front_matter(card_data: Any, card_class: Any) -> str:
    """Write metadata as YAML between two lines of dashes, and have the Hub's class read it back."""
    yaml_text = f"---\n{card_data.to_yaml()}\n---\n"
    read_back = card_class(yaml_text + "\n# card\n").data
    if read_back.to_dict() != card_data.to_dict():
        raise SpecError(
            "the Hub's own classes do not read the metadata of this card as it was written",
            expected="the same metadata",
            found="other metadata",
            hint="write a group or metric of this run without characters that YAML cannot hold",
        )
    return yaml_text
