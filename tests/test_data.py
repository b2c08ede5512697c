"""Data is what the manifest says, and the digits are the digits."""

import hashlib

import numpy as np
import pytest

from helpers import data


def test_manifest_matches_every_committed_file():
    listed = {entry["path"]: entry for entry in data.manifest()}
    there = {path.relative_to(data.DATA).as_posix() for path in data.DATA.glob("published/*.csv")}
    assert set(listed) == there
    for path, entry in listed.items():
        content = (data.DATA / path).read_bytes()
        assert entry["bytes"] == len(content)
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
        assert entry["source"]
        assert entry["licence"]


def test_digits_have_the_shapes_and_ranges_they_say():
    (x_train, y_train), (x_test, y_test) = data.digits()
    assert x_train.shape == (1536, 64)
    assert x_test.shape == (261, 64)
    assert x_train.dtype == x_test.dtype == np.float32
    assert y_train.dtype == y_test.dtype == np.int32
    assert (x_train.min(), x_train.max()) == (0, 1)
    assert sorted(set(y_train)) == list(range(10))


def test_digits_are_those_of_scikit_learn():
    from sklearn.datasets import load_digits  # noqa: PLC0415  (half a second)

    bunch = load_digits()
    order = np.random.default_rng(0).permutation(len(bunch.target))
    (x_train, y_train), (x_test, y_test) = data.digits()
    np.testing.assert_array_equal(np.concatenate([x_train, x_test]), bunch.data[order] / 16)
    np.testing.assert_array_equal(np.concatenate([y_train, y_test]), bunch.target[order])


def test_digits_split_depends_on_the_seed_alone():
    again = data.digits()[0][0]
    assert np.array_equal(data.digits()[0][0], again)
    assert not np.array_equal(data.digits(seed=1)[0][0], again)


def test_digits_refuse_an_impossible_test_set():
    with pytest.raises(ValueError, match="from 1 to 1796, not 1797"):
        data.digits(test_size=1797)


def test_goyal_table_as_printed():
    table = data.table("goyal_2017_warmup")
    assert table.column("top1_error_percent") == [23.60, 24.84, 25.88, 23.74]
    assert "arXiv:1706.02677" in str(table)
    with pytest.raises(KeyError, match="There is no column 'error'"):
        table.column("error")


def test_unknown_table_lists_those_there_are():
    with pytest.raises(ValueError, match="goyal_2017_warmup"):
        data.table("nothing")


def test_printed_table_aligns_numbers_right_and_words_left():
    lines = str(data.Table([{"name": "a", "n": 5}, {"name": "bcdef", "n": 1000}])).splitlines()
    assert lines == ["name      n", "─────  ────", "a         5", "bcdef  1000"]


def test_text_is_real_prose():
    assert len(data.text()) > 300_000
