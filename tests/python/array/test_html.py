# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: well-formed, escaped, bounded, without anything from outside."""

import re

import artifex_devices as ad
import numpy as np
import pytest
from notebook_pages import Page, svg_of


def size_of(picture):
    return float(picture.get("width")), float(picture.get("height"))


def test_an_array_shows_facts_picture_and_value(named):
    array = ad.device_put(np.arange(64.0).reshape(16, 4), named("x", "y"))
    text = array._repr_html_()
    letters = Page(text).letters
    assert "Array float64(16, 4), 512 bytes" in letters
    assert "'x': 2, 'y': 4" in letters
    assert "buffers in one slab, 64 bytes apart" in letters
    assert "[60., 61., 62., 63.]" in letters
    assert len(svg_of(text).findall(".//{http://www.w3.org/2000/svg}rect")) == 8


def test_a_short_value_is_shown_first_and_a_long_one_folded(named):
    value = np.arange(64.0).reshape(16, 4)
    short = ad.device_put(value, named("x", "y")).sum()._repr_html_()
    assert (
        short.splitlines()[2]
        == '<pre style="margin:0.3em 0 0.5em 0;overflow-x:auto;white-space:pre">Array(2016., dtype=float64)</pre>'
    )
    assert "details" not in Page(short).tags
    long = ad.device_put(value, named("x", "y"))._repr_html_()
    assert Page(long).tags[-3:] == ["details", "summary", "pre"]
    four_rows = ad.device_put(value[:4], named())._repr_html_()
    assert four_rows.splitlines()[2].startswith(
        '<pre style="margin:0.3em 0 0.5em 0;overflow-x:auto;white-space:pre">Array([[ 0.,  1.,  2.,  3.],'
    )
    assert "details" in Page(ad.device_put(value[:6], named())._repr_html_()).tags


def test_a_scalar_has_no_picture(named):
    text = ad.device_put(np.ones((16, 4)), named("x", "y")).sum()._repr_html_()
    assert "Array float64(), 8 bytes" in Page(text).letters
    assert "<svg" not in text


@pytest.mark.parametrize("shape", [(0,), (8,), (2, 0), (8, 4, 2, 2)], ids=str)
def test_arrays_of_any_rank(named, shape):
    text = ad.device_put(np.zeros(shape), named())._repr_html_()
    assert svg_of(text).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_deleted_array_shows_facts_only(named):
    array = ad.device_put(np.zeros((16, 4)), named("x", "y"))
    array.delete()
    page = Page(array._repr_html_())
    assert "committed, deleted" in page.letters
    assert page.pictures == []


def test_a_shard_shows_its_value_and_where_it_is(named):
    array = ad.device_put(np.arange(64.0).reshape(16, 4), named("x", None))
    page = Page(array.addressable_shards[5]._repr_html_())
    assert page.letters.split("\n")[1:-1] == [
        "Shard float64(8, 4), 256 bytes",
        "devicecpu:5index[8:16, :]replica1",
        "valueArray([[32., 33., 34., 35.],",
        *[
            f"       [{row[0]:.0f}., {row[1]:.0f}., {row[2]:.0f}., {row[3]:.0f}.],"
            for row in np.arange(36.0, 60).reshape(6, 4)
        ],
        "       [60., 61., 62., 63.]], dtype=float64)",
    ]
    scalar = ad.device_put(np.float32(3), named()).addressable_shards[0]._repr_html_()
    assert (
        scalar.splitlines()[2]
        == '<pre style="margin:0.3em 0 0.5em 0;overflow-x:auto;white-space:pre">Array(3., dtype=float32)</pre>'
    )
    assert "[]" in Page(scalar).letters


def test_names_are_escaped(devices):
    name = "<script>alert('&\"')</script>"
    mesh = ad.Mesh(np.array(devices), (name,))
    sharding = ad.NamedSharding(mesh, ad.P(name))
    array = ad.device_put(np.zeros(8), sharding)
    for text in (array._repr_html_(), mesh._repr_html_(), sharding._repr_html_()):
        assert "<script>" in Page(text).letters
        svg_of(text)


def test_nothing_comes_from_outside(named):
    for shown in (ad.device_put(np.zeros((16, 4)), named("x")), named("x"), named().mesh):
        page = Page(shown._repr_html_())
        assert "http" not in page.letters
        (picture,) = page.pictures
        assert re.findall(r"https?://[^\"']+", picture) == ["http://www.w3.org/2000/svg"]
        assert 'fill="currentColor"' in picture
        assert "svg:root{color:#1f2328;background:#fff}" in picture
        assert "(prefers-color-scheme:dark){svg:root{color:#e6edf3;background:#111}}" in picture


@pytest.mark.parametrize("sizes", [(4096,), (2, 2048), (2048, 2), (64, 64), (4, 4, 256)], ids=str)
def test_pictures_of_big_meshes_are_bounded(sizes):
    names = ("a", "b", "c")[: len(sizes)]
    with ad.simulate(4096):
        mesh = ad.make_mesh(sizes, names)
        sharding = ad.NamedSharding(mesh, ad.P("a"))
        pages = [mesh._repr_html_(), sharding._repr_html_()]
        pages.append(ad.device_put(np.zeros(4096, np.int8), sharding)._repr_html_())
    for text in pages:
        assert len(text) < 200_000
        width, height = size_of(svg_of(text))
        assert width < 2000
        assert height < 2000
    assert "shown" in Page(pages[0]).pictures[0]


def test_a_picture_has_all_cells_of_one_long_axis_that_fit_a_page():
    with ad.simulate(64):
        mesh = ad.make_mesh((64,), ("x",))
        assert Page(mesh._repr_html_()).pictures[0].count("<title>") == 1 + 64
        square = ad.make_mesh((2, 32), ("x", "y"))
        assert Page(square._repr_html_()).pictures[0].count("<title>") == 1 + 64


def test_shardings_and_empty_meshes(devices):
    single = Page(ad.SingleDeviceSharding(devices[3])._repr_html_())
    assert "cpu:3" in single.letters
    assert single.pictures == []
    sharding = Page(ad.NamedSharding(ad.Mesh(np.array(devices), ("x",)), ad.P("x"))._repr_html_())
    assert "P('x',)" in sharding.letters
