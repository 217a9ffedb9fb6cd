# SPDX-License-Identifier: Apache-2.0
"""The API reference: every public name once, and links for its other names."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tools")]
import python_rooms  # noqa: E402
import reference_pages  # noqa: E402


@pytest.fixture(scope="module")
def texts():
    return reference_pages.pages()


def documented(texts):
    return re.findall(r"^\.\. auto(?:class|exception|function|data):: (\S+)$", "".join(texts.values()), re.MULTILINE)


def test_all_public_modules_have_a_section():
    public = {name for names in python_rooms.ORDER for name in names if not name.startswith("_")}
    public.add("checkpoint.rules")  # a module in a room
    assert {module for page in reference_pages.PAGES for module in page.modules.split()} == public


def test_each_public_name_is_documented_once_or_refers_to_another_name(texts):
    paths = documented(texts)
    assert len(paths) == len(set(paths))
    home = reference_pages.homes()
    foreign = {name.path for name in reference_pages.all_names() if reference_pages.is_foreign(name)}
    assert set(paths) == {name.path for name in home.values()} - foreign
    for name in reference_pages.all_names():
        if home[name.path].path != name.path:
            assert f"* ``{name.name}``: :py:obj:`{home[name.path].path}`" in "".join(texts.values())


def test_names_are_documented_in_the_module_that_defines_them():
    home = {path: name.path for path, name in reference_pages.homes().items()}
    assert home["artifex_devices.Mesh"] == "artifex_devices.sharding.Mesh"
    assert home["artifex_devices.P"] == "artifex_devices.sharding.PartitionSpec"
    assert home["artifex_devices.sharding.reshard"] == "artifex_devices.reshard"
    assert home["artifex_devices.tree.map"] == "artifex_devices.tree_util.tree_map"
    assert home["artifex_devices.config"] == "artifex_devices.config.config"
    assert home["artifex_devices.measure_batch_size"] == "artifex_devices.batch_measurement.measure_batch_size"


def test_a_name_without_a_page_is_an_error(monkeypatch):
    first, *others = reference_pages.PAGES
    names = first.names.replace("devices ", "", 1) + " unknown"
    shorter = reference_pages.Page(first.name, first.title, names, first.modules)
    monkeypatch.setattr(reference_pages, "PAGES", (shorter, *others))
    with pytest.raises(ValueError, match=r"missing \['devices'\], unknown \['unknown'\]"):
        reference_pages.pages()


def test_pages_are_written_and_old_ones_removed(tmp_path, texts):
    (tmp_path / "old.rst").write_text("")
    reference_pages.write(tmp_path, {"types.rst": "Types"})
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {**texts, "types.rst": "Types"}
