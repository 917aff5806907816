"""Data sets of the Hugging Face hub: fetched once, as Parquet, and then read from disk.

The hub keeps a copy of every public data set as Parquet, at the revision ``refs/convert/parquet``:
``<configuration>/<part>/0000.parquet``. Only an address that begins with ``hub://`` reaches for the
network, and only then is their library imported.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from isolux.core.errors import FileError, UnknownNameError, extract_first_line

_ADDRESS = re.compile(r"hub:/{1,2}(?P<name>[\w.-]+(?:/[\w.-]+)?)")
_PARQUET_REVISION = "refs/convert/parquet"


def is_hub_address(path: str | Path) -> bool:
    """Tell an address of the hub from a path."""
    return str(path).startswith("hub:")


def download_dataset_folder(address: str | Path, configuration: str | None) -> Path:
    """Fetch a data set and return the folder of its configuration."""
    address_match = _ADDRESS.fullmatch(str(address))
    if address_match is None:
        raise FileError(
            "this is not an address of the hub",
            expected="hub://OWNER/NAME",
            found=repr(str(address)),
        )
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
    try:
        import huggingface_hub
    except ImportError as error:
        raise FileError(
            "fetching from the hub needs the package huggingface_hub",
            where=str(address),
            hint='pip install "isolux[hub]"',
        ) from error
    file_patterns = ["*.parquet"] if configuration is None else [f"{configuration}/*.parquet"]
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                repo_id=address_match["name"],
                repo_type="dataset",
                revision=_PARQUET_REVISION,
                allow_patterns=file_patterns,
            )
        )
    except (OSError, ValueError, RuntimeError) as error:  # theirs are of these kinds
        raise FileError(
            "the hub does not give this data set",
            expected="a data set that the hub shows as Parquet, and a way to reach the hub",
            found=extract_first_line(error),
            where=str(address),
        ) from error
    return folder / _choose_configuration_or_raise(folder, configuration, str(address))


def _choose_configuration_or_raise(folder: Path, configuration: str | None, source: str) -> str:
    configurations = sorted(
        {file.relative_to(folder).parts[0] for file in folder.glob("*/**/*.parquet")}
    )
    if not configurations:
        raise FileError("there is no Parquet file in this data set", where=source)
    if configuration is None and len(configurations) == 1:
        return configurations[0]
    if configuration is None or configuration not in configurations:
        raise UnknownNameError("configuration", configuration or "", configurations, where=source)
    return configuration
