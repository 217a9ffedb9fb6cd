#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes the pictures of docs/images/notebooks: each notebook as JupyterLab shows it in Chromium, light and dark.

    python -m venv /tmp/lab && /tmp/lab/bin/pip install --group screenshots
    /tmp/lab/bin/python tools/notebook_screenshots.py              writes the pictures
    ... --folder /tmp/pictures --height 20000 [NOTEBOOK ...]        whole notebooks, to look at

The committed outputs are shown; nothing runs. Each notebook is opened without and with `jupyter trust`, 420 and 1,200
pixels wide. The pictures without trust are kept. The program fails if a trusted notebook looks different, or if an
output is wider than its cell.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image, ImageChops
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOKS = ROOT / "examples" / "notebooks"
PICTURES = ROOT / "docs" / "images" / "notebooks"
WIDTHS = (420, 1200)
THEMES = {"light": "JupyterLab Light", "dark": "JupyterLab Dark"}
COLOURS = 32  # of a picture of 2,000 pixels; a longer one has more, up to 256
TIMEOUT_SECONDS = 600  # for the server and for each step of a page; a busy machine takes minutes
STEADY_POLLS = 4  # equal states in a row

# The height of the notebook, the number of its cells, and that of its pictures that are not loaded.
STATE = """() => [
  document.querySelector('.jp-WindowedPanel-outer').scrollHeight,
  document.querySelectorAll('.jp-Notebook .jp-Cell:has(.jp-Cell-inputWrapper)').length,
  [...document.querySelectorAll('.jp-Notebook img')].filter(image => !image.complete).length,
]"""

# Outputs that are wider than their cell and cannot be scrolled.
OVERFLOWING = """() => [...document.querySelectorAll('.jp-OutputArea-output *')].filter(element => {
  const cell = element.closest('.jp-OutputArea-output').getBoundingClientRect();
  if (element.getBoundingClientRect().right <= cell.right + 1) return false;
  for (let each = element.parentElement; each && !each.matches('.jp-OutputArea-output'); each = each.parentElement)
    if (['auto', 'scroll'].includes(getComputedStyle(each).overflowX)) return false;
  return true;
}).map(element => element.tagName + ': ' + element.textContent.slice(0, 60))"""


def write_settings(folder: Path, theme: str) -> None:
    """Writes the settings of JupyterLab, which it reads whenever a page is opened."""
    for name, value in {
        "apputils-extension/themes": {"theme": theme},
        "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
        "notebook-extension/tracker": {"windowingMode": "none", "kernelShutdown": True},
    }.items():
        file = folder / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(value), encoding="utf-8")


@contextmanager
def lab(folder: Path) -> Iterator[str]:
    """Runs JupyterLab with the notebooks and settings of a folder; yields its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    token = secrets.token_hex(16)
    command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", f"--port={port}"]
    command += [f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}"]
    command += [f"--LabApp.user_settings_dir={folder / 'settings'}", f"--LabApp.workspaces_dir={folder / 'workspaces'}"]
    log = folder / "lab.log"
    with (
        log.open("w", encoding="utf-8") as output,
        subprocess.Popen(command, stdout=output, stderr=output, env=environment(folder)) as server,
    ):
        try:
            address = f"http://127.0.0.1:{port}"
            wait_for(f"{address}/api/status?token={token}", server, log)
            yield f"{address}/doc/tree/{{}}?token={token}"
        finally:
            server.terminate()


def environment(folder: Path) -> dict[str, str]:
    """Variables of Jupyter's processes: the signatures of trusted notebooks belong to this run."""
    bin_folder = Path(sys.executable).parent
    return {**os.environ, "JUPYTER_DATA_DIR": str(folder / "data"), "PATH": f"{bin_folder}:{os.environ['PATH']}"}


def wait_for(address: str, server: subprocess.Popen[bytes], log: Path) -> None:
    """Waits until a server answers; RuntimeError with the end of its log if it ends or never answers."""
    end = time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            with urllib.request.urlopen(address, timeout=60):
                return
        except OSError as error:
            if server.poll() is not None or time.monotonic() > end:
                text = log.read_text(encoding="utf-8")[-2000:]
                raise RuntimeError(f"JupyterLab does not answer ({error}); the end of its output:\n{text}") from None
            time.sleep(0.2)


def wait_until_drawn(page: Page, cells: int) -> int:
    """Waits until all cells and pictures are there and the height no longer changes; returns the height."""
    end = time.monotonic() + TIMEOUT_SECONDS
    before: list[int] = []
    unchanged = 0
    while unchanged < STEADY_POLLS:
        now = page.evaluate(STATE)
        unchanged = unchanged + 1 if now == before and now[1] == cells and now[2] == 0 else 0
        before = now
        if time.monotonic() > end:
            raise TimeoutError(f"a notebook is not drawn after {TIMEOUT_SECONDS} s: {now}")
        page.wait_for_timeout(200)
    return before[0]


def picture_of(
    page: Page, address: str, width: int, max_height: int, theme: str, cells: int
) -> tuple[Image.Image, list[str]]:
    """The cells of a notebook as they are drawn, and the outputs that do not fit."""
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 1000})
    page.goto(address)
    page.wait_for_selector(".jp-Notebook .jp-OutputArea-output")
    page.wait_for_selector("#jupyterlab-splash", state="detached")
    dialog = page.locator(".jp-Dialog button.jp-mod-reject, .jp-Dialog button.jp-mod-accept")
    page.wait_for_timeout(500)
    if dialog.count():  # no kernel is needed
        dialog.first.click()
    page.add_style_tag(
        content=".jp-Notebook-footer, .jp-Toolbar, .jp-cell-toolbar, #jp-top-panel { display: none !important }"
    )
    height = wait_until_drawn(page, cells)
    page.set_viewport_size({"width": width, "height": min(height, max_height) + 60})
    wait_until_drawn(page, cells)
    shot = page.locator(".jp-NotebookPanel-notebook").screenshot(animations="disabled")
    return Image.open(io.BytesIO(shot)).convert("RGB"), page.evaluate(OVERFLOWING)


def main() -> int:
    """Takes all pictures; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--browser", default=shutil.which("chromium"), help="the program of Chromium")
    parser.add_argument("--folder", type=Path, default=PICTURES, help="where the pictures are written")
    parser.add_argument("--height", type=int, default=2000, help="of a picture, in pixels; longer notebooks are cut")
    parser.add_argument("notebooks", nargs="*", type=Path)
    arguments = parser.parse_args()
    notebooks = arguments.notebooks or sorted(NOTEBOOKS.glob("*.ipynb"))
    arguments.folder.mkdir(parents=True, exist_ok=True)
    problems = []
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        for path in notebooks:
            for kind in ("untrusted", "trusted"):
                (folder / kind).mkdir(exist_ok=True)
                shutil.copy(path, folder / kind)
        trusted = [str(folder / "trusted" / path.name) for path in notebooks]
        subprocess.run([sys.executable, "-m", "jupyter", "trust", *trusted], check=True, env=environment(folder))
        browser = playwright.chromium.launch(
            executable_path=arguments.browser, args=["--no-sandbox"], timeout=TIMEOUT_SECONDS * 1000
        )
        write_settings(folder, THEMES["light"])
        with lab(folder) as address:
            for theme, jupyter_theme in THEMES.items():
                write_settings(folder, jupyter_theme)
                page = browser.new_page()
                page.set_default_timeout(TIMEOUT_SECONDS * 1000)
                for path in notebooks:
                    cells = len(json.loads(path.read_text(encoding="utf-8"))["cells"])
                    for width in WIDTHS:
                        target = arguments.folder / f"{path.stem}_{theme}_{width}.png"
                        how = (width, arguments.height, theme, cells)
                        picture, wide = picture_of(page, address.format(f"untrusted/{path.name}"), *how)
                        again, _ = picture_of(page, address.format(f"trusted/{path.name}"), *how)
                        problems += [f"{target.name}: {each}" for each in wide]
                        if picture.size != again.size or ImageChops.difference(picture, again).getbbox():
                            problems.append(f"{target.name}: the trusted notebook looks different")
                        colours = min(256, COLOURS * -(-picture.height // 2000))
                        picture.quantize(colours, dither=Image.Dither.NONE).save(target, optimize=True)
                        size = target.stat().st_size
                        print(f"{target.name}: {picture.width} x {picture.height}, {size} bytes", flush=True)
                page.close()
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
