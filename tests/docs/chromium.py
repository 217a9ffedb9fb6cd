# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, driven over the pipe of its DevTools protocol."""

import itertools
import json
import os
import shutil
import subprocess
import tempfile


def program():
    """Returns the path of Chromium or Chrome, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


class Chromium:
    """One page of a browser."""

    def __init__(self):
        self._folder = tempfile.TemporaryDirectory()
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        # The protocol's pipes are the descriptors 3 and 4 of the browser.
        command = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
        arguments = [
            "bash",
            "-c",
            command,
            "chromium",
            str(to_read),
            str(to_write),
            program(),
            "--headless",
            "--no-sandbox",
        ]
        arguments += [
            "--disable-gpu",
            "--no-first-run",
            f"--user-data-dir={self._folder.name}",
            "--remote-debugging-pipe",
        ]
        self._process = subprocess.Popen(arguments, pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL)
        os.close(to_read)
        os.close(to_write)
        self._numbers = itertools.count(1)
        self._received = b""
        self._loaded = 0  # pages
        self._session = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.send("Page.enable")

    def close(self):
        """Ends the browser."""
        self._session = None
        self.send("Browser.close")
        self._process.wait(60)
        os.close(self._read)
        os.close(self._write)
        self._folder.cleanup()

    def send(self, method, **parameters):
        """Calls a method of the protocol; returns its result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        while True:
            answer = self._next_message()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _next_message(self):
        while b"\0" not in self._received:
            data = os.read(self._read, 1 << 20)
            if not data:
                raise RuntimeError("Chromium has ended")
            self._received += data
        text, _, self._received = self._received.partition(b"\0")
        message = json.loads(text)
        self._loaded += message.get("method") == "Page.loadEventFired"
        return message

    def run(self, script):
        """Returns the value of an expression of JavaScript; awaits a promise."""
        found = self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def resize(self, width, height=900):
        """Gives the page a size in pixels."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, address, *, until):
        """Opens an address; returns when an expression of JavaScript is true."""
        for each in ("about:blank", address):  # of the same page, another fragment would load nothing
            before = self._loaded
            self.send("Page.navigate", url=each)
            while self._loaded == before:
                self._next_message()
        self.wait(until)

    def wait(self, condition):
        """Waits, for at most 60 s, until an expression of JavaScript is true."""
        script = f"""new Promise((done, fail) => {{
          const end = performance.now() + 60000;
          const look = () => {{
            if ({condition}) done();
            else if (performance.now() > end) fail(new Error("still false after 60 s"));
            else setTimeout(look, 20);
          }};
          look();
        }})"""
        self.run(script)
