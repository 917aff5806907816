"""Reading and writing: paths inside a root, atomic writes, content hashes, tables of all sorts.

Nothing else in isolux opens a file. Readers turn every fault of an outside file into a
``FileError`` or ``TableError`` that names the place; writers leave either the whole result or
nothing.
"""

from isolux.io.atomic import staged_directory, write_parquet, write_text
from isolux.io.frames import FORMATS, detect_table_format, read_table
from isolux.io.hashing import sha256_file, sha256_listing
from isolux.io.paths import check_file_name, resolve_inside

__all__ = [
    "FORMATS",
    "check_file_name",
    "detect_table_format",
    "read_table",
    "resolve_inside",
    "sha256_file",
    "sha256_listing",
    "staged_directory",
    "write_parquet",
    "write_text",
]
