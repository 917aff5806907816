"""Values from other programs: which columns, which cells, and which are refused."""

from __future__ import annotations

import math

import polars as pl
import pytest

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.predictions import unit_values


def written(folder, text):
    path = folder / "net.csv"
    path.write_text(text)
    return path


def test_names_of_columns_tell_the_metric(tmp_path):
    path = written(tmp_path, "file,LPIPS,psnr_dB,CURRICULAR_FACE,note\na.png,0.2,30,0.9,x\n")
    assert unit_values.read(path).rows() == [
        ("net", "a.png", "lpips", 0.2),
        ("net", "a.png", "psnr", 30.0),
        ("net", "a.png", "identity_cosine", 0.9),
    ]


def test_columns_may_be_named(tmp_path):
    path = written(tmp_path, "id,lpips,lpips_vgg,dists\na,0.2,0.3,0.1\n")
    found = unit_values.read(path, columns=["lpips_vgg", "dists"], model="m")
    assert found.rows() == [("m", "a", "lpips", 0.3), ("m", "a", "dists", 0.1)]
    with pytest.raises(TableError, match=r"two columns hold lpips(.|\n)*'lpips', 'lpips_vgg'"):
        unit_values.read(path)


def test_empty_and_nan_are_null_and_psnr_may_be_infinite(tmp_path):
    path = written(tmp_path, "id,lpips,psnr\na,,inf\nb,nan,20\n")
    assert unit_values.read(path)["value"].to_list() == [None, math.inf, None, 20.0]
    with pytest.raises(TableError, match=r"not finite(.|\n)*row 1, column 'lpips'"):
        unit_values.read(written(tmp_path, "id,lpips\na,inf\n"))
    with pytest.raises(TableError, match=r"not finite(.|\n)*-inf(.|\n)*column 'psnr'"):
        unit_values.read(written(tmp_path, "id,psnr\na,-inf\n"))


def test_what_convert_writes_is_read_again(tmp_path):
    first = unit_values.read(written(tmp_path, "id,model,lpips,psnr\na,m,0.1,inf\nb,n,0.2,9\n"))
    first.write_parquet(tmp_path / "again.parquet")
    assert unit_values.read(tmp_path / "again.parquet").equals(first)
    assert first["model"].to_list() == ["m", "m", "n", "n"]


def test_types_of_parquet_and_text_of_csv_are_alike(tmp_path):
    csv = unit_values.read(written(tmp_path, "id,ssim\n1,0.5\n2,1\n"))
    pl.DataFrame({"id": [1, 2], "ssim": [0.5, 1.0]}).write_parquet(tmp_path / "net.parquet")
    assert unit_values.read(tmp_path / "net.parquet").equals(csv)


@pytest.mark.parametrize(
    ("text", "error", "told"),
    [
        ("id,label\na,x\n", UnknownNameError, "no column named 'lpips'"),
        ("who,lpips\na,1\n", SpecError, "no column says whom a value is about"),
        ("id,lpips\na,low\n", TableError, r"not numbers(.|\n)*'low'(.|\n)*row 1, column 'lpips'"),
        ("id,lpips\na,1\na,2\n", TableError, "two rows have the same model"),
        ("id,lpips\n,1\n", TableError, "have no id"),
    ],
)
def test_tables_that_cannot_be_used(tmp_path, text, error, told):
    with pytest.raises(error, match=told):
        unit_values.read(written(tmp_path, text))


def test_a_column_that_is_not_there(tmp_path):
    path = written(tmp_path, "id,lpips\na,1\n")
    with pytest.raises(UnknownNameError, match="did you mean 'lpips'"):
        unit_values.read(path, columns=["lpip"])
