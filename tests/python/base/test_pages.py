# SPDX-License-Identifier: Apache-2.0
"""Parts of pages for notebooks, and pictures: their exact text."""

import base64

from artifex_devices._base import html
from artifex_devices._base.svg import Picture, draw
from notebook_pages import Page

CELL = "padding:1px 1em 1px 0;text-align:left;vertical-align:top"
TABLE = '<table style="margin:0 0 0.5em 0;border-collapse:collapse;font-size:13px">'
PRE = '<pre style="margin:0.3em 0 0.5em 0;overflow-x:auto;white-space:pre">'
ROW = '<tr style="background-color:transparent">'


def test_a_page_has_a_title_and_the_parts_that_are_not_empty():
    page = html.page("a < b", "", html.note("x & y"), html.folded("more", html.preformatted("1\n 2")))
    assert page.splitlines() == [
        '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.5">',
        '<div style="font-weight:600">a &lt; b</div>',
        '<div style="opacity:0.7">x &amp; y</div>',
        f"<details><summary>more</summary>{PRE}1",
        " 2</pre></details>",
        "</div>",
    ]
    assert Page(page).letters == "\na < b\nx & y\nmore1\n 2\n"


def test_facts_are_rows_of_two_columns():
    assert html.facts([("spec", "P('x')")]) == (
        f'<div style="overflow-x:auto">{TABLE}{ROW}<td style="{CELL};white-space:nowrap;opacity:0.7">spec</td>'
        f'<td style="{CELL}">P(&#x27;x&#x27;)</td></tr></table></div>'
    )
    assert html.facts([]) == ""


def test_long_words_of_facts_may_break_behind_slashes_and_dots():
    text = "see https://docs.example.com/tpu/v5e, or a/b"
    found = html.facts([("[S2]", text)])
    assert "see https://<wbr/>docs.<wbr/>example.<wbr/>com/<wbr/>tpu/<wbr/>v5e, or a/b" in found
    assert Page(found).letters.endswith(text)
    assert "&lt;" + 24 * "x" + ".<wbr/>y" in html.facts([("a", "<" + 24 * "x" + ".y")])


def test_a_table_without_rows_is_left_out():
    line = f"{CELL};white-space:nowrap"
    assert html.table(("a", "b"), [("1", "<2>")]) == (
        f'<div style="overflow-x:auto">{TABLE}{ROW}<th style="{line}">a</th><th style="{line}">b</th></tr>'
        f'{ROW}<td style="{line}">1</td><td style="{line}">&lt;2&gt;</td></tr></table></div>'
    )
    assert html.table(("a", "b"), []) == ""


def test_short_cells_of_a_table_stay_on_one_line():
    page = html.table(("a",), [("x" * 24,), ("x" * 25,)])
    assert f'<td style="{CELL};white-space:nowrap">{"x" * 24}</td>' in page
    assert f'<td style="{CELL};min-width:18em">{"x" * 25}</td>' in page


def test_a_value_of_more_than_four_lines_is_folded():
    assert html.around_value("1\n2\n3\n4", "x") == (
        f"{PRE}1\n2\n3\n4</pre>",
        "x",
    )
    assert html.around_value("1\n2\n3\n4\n5", "x") == (
        "x",
        f"<details><summary>value</summary>{PRE}1\n2\n3\n4\n5</pre></details>",
    )


def test_a_picture_is_an_image_that_scales_to_the_page():
    picture = draw("a & b", 120, 30, '<path d="M0 0H9"/>')
    assert repr(picture) == "<Picture 120 x 30: a & b>"
    data = base64.b64encode(picture.encode()).decode()
    assert picture._repr_html_() == (
        f'<img alt="a &amp; b" width="120" style="max-width:100%;height:auto" src="data:image/svg+xml;base64,{data}"/>'
    )
    assert Page(picture._repr_html_()).pictures == [picture]
    assert picture._repr_svg_() == picture
    assert type(picture._repr_svg_()) is str
    assert picture == (
        '<svg xmlns="http://www.w3.org/2000/svg" width="120" height="30" viewBox="0 0 120 30" role="img" '
        'font-family="system-ui, sans-serif" font-size="12" fill="currentColor" style="max-width:100%;height:auto">\n'
        "<title>a &amp; b</title>\n"
        "<style>svg:root{color:#1f2328;background:#fff}@media (prefers-color-scheme:dark)"
        "{svg:root{color:#e6edf3;background:#111}}</style>\n"
        '<path d="M0 0H9"/></svg>\n'
    )


def test_any_text_may_be_a_picture():
    assert repr(Picture("<svg/>")) == "<Picture: SVG of 6 characters>"
    assert Picture("<svg/>")._repr_html_().startswith('<img alt="picture" style=')
    assert Page(Picture("<svg/>")._repr_html_()).pictures == ["<svg/>"]
