# SPDX-License-Identifier: Apache-2.0
"""Each page of the built site in Chromium, 1,280 and 400 pixels wide: nothing is wider than its place."""

from pathlib import Path

import chromium
import pytest

SITE = Path(__file__).resolve().parents[2] / "build" / "docs"
# Listings of code, lists of names, and the playground, which has tests of its own.
NOT_PAGES = ("_modules/", "_static/", "genindex", "playground/")
WIDTHS = (1280, 400)

# Returns whether the page scrolls sideways, and each table and picture that is wider than the element that scrolls it,
# or than its section. In a narrow window tables may scroll.
WIDE_ELEMENTS = """(() => {
  const found = [];
  const page = document.documentElement;
  if (page.scrollWidth > page.clientWidth) found.push(`the page is ${page.scrollWidth} px wide`);
  const scrolls = (place) => ["auto", "scroll"].includes(getComputedStyle(place).overflowX);
  for (const element of document.querySelectorAll("article table, article img, article svg")) {
    let place = element.parentElement;
    while (!scrolls(place) && !place.matches("section, article")) place = place.parentElement;
    const excess = Math.round(element.getBoundingClientRect().right - place.getBoundingClientRect().right);
    if (excess <= 1 || (element.tagName === "TABLE" && page.clientWidth < 800 && scrolls(place))) continue;
    const text = (element.alt || element.textContent).replace(/\\s+/g, " ").trim().slice(0, 50);
    found.push(`${element.tagName.toLowerCase()} "${text}" is ${excess} px too wide`);
  }
  return found;
})()"""


@pytest.mark.skipif(chromium.program() is None, reason="Chromium is not installed")
def test_no_table_or_picture_is_wider_than_its_place():
    names = sorted(page.relative_to(SITE).as_posix() for page in SITE.rglob("*.html"))
    pages = [name for name in names if not name.startswith(NOT_PAGES)]
    assert len(pages) > 100
    browser = chromium.Chromium()
    found = []
    try:
        for name in pages:
            browser.open((SITE / name).as_uri(), until="true")
            for width in WIDTHS:
                browser.resize(width)
                found += [f"{name} at {width} px: {each}" for each in browser.run(WIDE_ELEMENTS)]
    finally:
        browser.close()
    assert found == []
