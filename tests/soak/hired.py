# SPDX-License-Identifier: Apache-2.0
"""A worker process and its answers; one that died or hung is replaced."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from soak.script import ENVIRONMENT

WORKER = Path(__file__).with_name("worker.py")
PROGRAM_S = 600  # of one program, which takes 1/20 s alone, on a machine that does much else
HANG_S = 30  # of each smaller program while a hang is shrunk; the time of the smallest is PROGRAM_S again


class Hired:
    """Runs programs in a process of its own."""

    def __init__(self, words=()):
        self.words = list(words)
        self.process = None
        self.started = 0

    def start(self):
        self.started += 1
        self.errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        environment = {**os.environ, **ENVIRONMENT, "PYTHONFAULTHANDLER": "1"}
        environment.pop("JAX_NUM_CPU_DEVICES", None)
        self.process = subprocess.Popen(
            [sys.executable, "-X", "dev", str(WORKER), *self.words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            env=environment,
        )
        self.answers = queue.Queue()
        threading.Thread(target=self.listen, args=(self.process.stdout, self.answers), daemon=True).start()
        # It has imported everything: the time of a program is its own. However slow, that is not a hang.
        if self.answers.get() is None:
            code = self.stop()
            raise RuntimeError(f"the worker ended with {code} before its first program:\n{self.stderr_text}")

    @staticmethod
    def listen(stream, answers):
        with stream:
            for line in stream:
                answers.put(json.loads(line))
        answers.put(None)

    def ask(self, program, seconds=PROGRAM_S):
        """None, or the failure: a wrong answer, a crash or a hang."""
        if self.process is None:
            self.start()
        try:
            self.process.stdin.write(json.dumps({"program": program, "seconds": seconds}) + "\n")
            self.process.stdin.flush()
            answer = self.answers.get(timeout=seconds + 60)
        except (queue.Empty, BrokenPipeError):
            answer = None
        if answer is not None:
            if answer["failure"]:
                self.stop()  # what it left behind is nobody else's
            return answer["failure"]
        code = self.stop()
        stderr_text = self.stderr_text
        kind = "hang" if "Timeout (" in stderr_text or code is None else "crash"
        return {
            "library": "?",
            "step": -1,
            "kind": "?",
            "class": kind,
            "text": f"exit status {code}\n{stderr_text[-3000:]}",
        }

    def stop(self):
        """Ends it; its exit status if it had ended by itself."""
        if self.process is None:
            return None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        try:
            code = self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            code = None
        self.process = None
        with self.errors:
            self.errors.seek(0)
            self.stderr_text = self.errors.read().decode(errors="replace")
        return code
