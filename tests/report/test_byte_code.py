"""Templates' code is kept between processes, and never used for a template that has changed."""

from __future__ import annotations

import jinja2
import pytest

from isolux.report.byte_code import KeptTemplates


def said(folder) -> str:
    """Read the one template as a process of its own would."""
    loader = jinja2.FileSystemLoader(folder)
    (folder / "how.py").touch()
    environment = jinja2.Environment(
        loader=loader, autoescape=True, bytecode_cache=KeptTemplates(folder, folder / "how.py")
    )
    return environment.get_template("page.j2").render(name="<b>")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "page.j2").write_text("light of {{ name }}")
    assert said(tmp_path) == "light of &lt;b&gt;"
    return tmp_path


def kept(folder):
    (file,) = (folder / "__pycache__").iterdir()
    return file


def test_a_template_is_compiled_once(folder, monkeypatch):
    def compiled(*_, **__):
        raise AssertionError("compiled again")

    monkeypatch.setattr(jinja2.Environment, "compile", compiled)
    assert said(folder) == "light of &lt;b&gt;"


def test_a_template_that_changed_is_read_anew(folder):
    before = kept(folder).read_bytes()
    (folder / "page.j2").write_text("dusk of {{ name }}")
    assert said(folder) == "dusk of &lt;b&gt;"
    assert kept(folder).read_bytes() != before


def test_other_settings_compile_anew(folder):
    before = kept(folder).read_bytes()
    (folder / "how.py").write_text("autoescape = True\n")
    assert said(folder) == "light of &lt;b&gt;"
    assert kept(folder).read_bytes() != before


def test_another_version_compiles_anew(folder, monkeypatch):
    before = kept(folder).read_bytes()
    monkeypatch.setattr(jinja2, "__version__", "99")
    assert said(folder) == "light of &lt;b&gt;"
    assert kept(folder).read_bytes() != before


@pytest.mark.parametrize("cut", [0, 10, 70, -1])
def test_what_was_cut_short_is_compiled_anew(folder, cut):
    whole = kept(folder).read_bytes()
    kept(folder).write_bytes(whole[:cut])
    assert said(folder) == "light of &lt;b&gt;"
    assert kept(folder).read_bytes() == whole


def test_where_nothing_may_be_kept_it_works(tmp_path):
    (tmp_path / "page.j2").write_text("light of {{ name }}")
    (tmp_path / "__pycache__").write_text("a file")
    assert said(tmp_path) == "light of &lt;b&gt;"
