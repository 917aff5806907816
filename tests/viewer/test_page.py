"""One file: nothing in it can end its data or run, and a file that is too large says why."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import re
from dataclasses import replace

import polars as pl
import pytest

import isolux.viewer as page_file
from isolux.core.errors import OutputError
from isolux.viewer import Contents, DisplayedRun, build_page_contents, build_standalone_page
from tests.report import _runs as runs
from tests.viewer._runs import audited


def test_the_tables_come_back_out_of_the_page():
    contents = build_page_contents([DisplayedRun(audited(), "a")])
    text = build_standalone_page(contents)
    for name, table in contents.tables.items():
        (data,) = re.findall(f'id="table-{name}">([^<]*)</script>', text)
        assert pl.read_parquet(io.BytesIO(gzip.decompress(base64.b64decode(data)))).equals(table)
    (said,) = re.findall(r'id="manifest">([^<]*)</script>', text)
    assert json.loads(said) == json.loads(json.dumps(contents.manifest))


def test_hostile_names_cannot_end_the_data_or_begin_a_script():
    text = build_standalone_page(build_page_contents([DisplayedRun(runs.hostile_run(), "a")]))
    clean = build_standalone_page(build_page_contents([DisplayedRun(audited(), "a")]))
    for tag in ("<script", "</script", "<img", "<svg", "<!--"):
        assert text.count(tag) == clean.count(tag), tag


def test_the_policy_names_the_one_script_and_the_one_style_and_no_network():
    text = build_standalone_page(build_page_contents([DisplayedRun(audited(), "a")]))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert "default-src 'none'" in policy
    assert "connect-src 'none'" in policy
    assert "unsafe" not in policy
    for kind, tag in (("script", '<script type="module">'), ("style", "<style>")):
        found = re.findall(f"{tag}(.*?)</{kind}>", text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(found[0].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_a_page_that_is_too_large_is_refused_with_what_to_leave_out(monkeypatch):
    monkeypatch.setattr(page_file, "BUNDLE_LIMIT_MB", 0.15)
    contents = build_page_contents([DisplayedRun(runs.wide_run(), "a")])
    with pytest.raises(OutputError, match=r"0.15 MB at most(.|\n)*pairs 1\.\d MB(.|\n)*--metric"):
        build_standalone_page(contents)


def test_the_same_run_gives_the_same_bytes():
    made = [
        build_standalone_page(build_page_contents([DisplayedRun(audited(), "a")])) for _ in range(2)
    ]
    assert made[0] == made[1]
    with pytest.raises(ValueError, match="not JSON compliant"):
        build_standalone_page(Contents({"bad": float("nan")}, {}))


def test_the_tables_of_a_paper_are_on_no_page_without_single_people():
    """A paper's table has a row for a group of one person too."""
    said = {"name": "p", "title": "t", "tables": {"T": {"columns": ["n"], "rows": [[1]]}}}
    run = replace(audited(), record={**audited().record, "protocol": said})
    (own,) = build_page_contents([DisplayedRun(run, "a")], people=True).manifest["runs"]
    assert own["paper"]["tables"] == [{"caption": "T", "columns": ["n"], "rows": [["1"]]}]
    (own,) = build_page_contents([DisplayedRun(run, "a")]).manifest["runs"]
    assert own["paper"] is None
