"""Reading and writing: paths inside a root, atomic writes, content hashes, tables of all sorts.

Nothing else in isolux opens a file. Readers turn every fault of an outside file into a
``FileError`` or ``TableError`` that names the place; writers leave either the whole result or
nothing.
"""

from isolux.io.atomic import staged_directory, write_parquet, write_text
from isolux.io.frames import FORMATS, format_of, read_table
from isolux.io.hashing import sha256_file, sha256_listing
from isolux.io.paths import inside, plain_name

__all__ = [
    "FORMATS",
    "format_of",
    "inside",
    "plain_name",
    "read_table",
    "sha256_file",
    "sha256_listing",
    "staged_directory",
    "write_parquet",
    "write_text",
]
