# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: well-formed, escaped, bounded, without anything from outside."""

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import artifex_devices as ad
import numpy as np
import pytest


class Page(HTMLParser):
    """Collects tags and letters; asserts that tags nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.letters = [], [], ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.letters += data


def svg_of(page):
    (picture,) = re.findall(r"(?s)<svg .*?</svg>", page)
    return ET.fromstring(picture)


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
    picture = svg_of(text)
    assert len(picture.findall(".//{http://www.w3.org/2000/svg}rect")) == 8


@pytest.mark.parametrize("shape", [(), (0,), (8,), (2, 0), (8, 4, 2, 2)], ids=str)
def test_arrays_of_any_rank(named, shape):
    text = ad.device_put(np.zeros(shape), named())._repr_html_()
    Page(text)
    assert svg_of(text).tag == "{http://www.w3.org/2000/svg}svg"


def test_a_deleted_array_shows_facts_only(named):
    array = ad.device_put(np.zeros((16, 4)), named("x", "y"))
    array.delete()
    text = array._repr_html_()
    assert "committed, deleted" in Page(text).letters
    assert "<svg" not in text


def test_names_are_escaped(devices):
    name = "<script>alert('&\"')</script>"
    mesh = ad.Mesh(np.array(devices), (name,))
    sharding = ad.NamedSharding(mesh, ad.P(name))
    array = ad.device_put(np.zeros(8), sharding)
    for text in (array._repr_html_(), mesh._repr_html_(), sharding._repr_html_()):
        page = Page(text)
        assert "script" not in page.tags
        assert "<script>" in page.letters
        svg_of(text)


def test_nothing_comes_from_outside_and_colours_are_the_pages(named):
    for shown in (ad.device_put(np.zeros((16, 4)), named("x")), named("x"), named().mesh):
        text = shown._repr_html_()
        page = Page(text)
        assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
        assert re.findall(r"https?://[^\"']+", text) == ["http://www.w3.org/2000/svg"]
        assert 'fill="currentColor"' in text
        assert not re.search(r"[^-]color:#|background:", text.replace("svg:root{color:#", ""))


@pytest.mark.parametrize("sizes", [(4096,), (2, 2048), (2048, 2), (64, 64), (4, 4, 256)], ids=str)
def test_pictures_of_big_meshes_are_bounded(sizes):
    names = ("a", "b", "c")[: len(sizes)]
    with ad.simulate(4096):
        mesh = ad.make_mesh(sizes, names)
        sharding = ad.NamedSharding(mesh, ad.P("a"))
        pages = [mesh._repr_html_(), sharding._repr_html_()]
        pages.append(ad.device_put(np.zeros(4096, np.int8), sharding)._repr_html_())
    for text in pages:
        assert len(text) < 150_000
        width, height = size_of(svg_of(text))
        assert width < 2000
        assert height < 2000
    assert "shown" in Page(pages[0]).letters


def test_shardings_and_empty_meshes(devices):
    single = Page(ad.SingleDeviceSharding(devices[3])._repr_html_())
    assert "cpu:3" in single.letters
    assert "svg" not in single.tags
    sharding = Page(ad.NamedSharding(ad.Mesh(np.array(devices), ("x",)), ad.P("x"))._repr_html_())
    assert "P('x',)" in sharding.letters
