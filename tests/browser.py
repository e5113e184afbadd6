"""A page in headless Chromium, driven through its DevTools protocol over a pipe.

https://chromedevtools.github.io/devtools-protocol/ names the methods.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
#: Seconds for which an answer is awaited.
PATIENCE = 20


def find_chromium() -> str | None:
    """Where Chromium is; None if it is not installed."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Page:
    """One page without a network, or with `online=True` for a server on this machine.

    `complaints` are uncaught errors, and what the page wrote to the console as a warning or an
    error; `requests` are the addresses of all that was asked for.
    """

    def __init__(self, profile: Path, *, online: bool = False) -> None:
        arguments = [
            *(find_chromium() or "chromium", "--headless=new", "--no-sandbox", "--disable-gpu"),
            *("--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run"),
            *("--disable-component-update", "--disable-sync", "--disable-quic"),
            *(f"--user-data-dir={profile}", "--remote-debugging-pipe"),
        ]
        (of_chromium, self._out), (self._in, to_us) = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (of_chromium, to_us)]

        def place_pipes() -> None:
            for number, end in zip((3, 4), ends, strict=True):  # the numbers Chromium looks at
                os.dup2(end, number)

        self._process = subprocess.Popen(
            arguments, preexec_fn=place_pipes, close_fds=False, stderr=subprocess.DEVNULL
        )
        for end in (of_chromium, to_us, *ends):
            os.close(end)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.complaints: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Runtime", "Log", "Network", "Page"):
            self.call(f"{domain}.enable")
        if not online:
            speeds = dict(latency=0, downloadThroughput=0, uploadThroughput=0)
            self.call("Network.emulateNetworkConditions", offline=True, **speeds)

    def __enter__(self) -> Page:
        return self

    def __exit__(self, *args: Any) -> None:
        self._session = None
        with contextlib.suppress(OSError, TimeoutError):
            self.call("Browser.close")
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError(f"Chromium has not answered for {PATIENCE} s")
            part = os.read(self._in, 1 << 16)
            if not part:
                raise OSError("Chromium has ended")
            self._buffer += part
        text, _, self._buffer = self._buffer.partition(b"\0")
        answer = json.loads(text)
        self._note(answer.get("method"), answer.get("params", {}))
        return answer

    def _note(self, event: str | None, parameters: dict[str, Any]) -> None:
        kind = parameters.get("type") or parameters.get("entry", {}).get("level")
        written = event in {"Runtime.consoleAPICalled", "Log.entryAdded"}
        if event == "Runtime.exceptionThrown" or (written and kind in {"error", "warning"}):
            self.complaints.append(json.dumps(parameters)[:1000])
        elif event == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"][:200])

    def open(self, path: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a file in a window of this size and wait until its script has run."""
        self.go(path.resolve().as_uri(), width=width, height=height, dark=dark)
        self.wait("document.body && document.body.dataset.ready === 'true'")

    def go(self, link: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Open a link in a window of this size."""
        size = dict(width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Emulation.setTouchEmulationEnabled", enabled=width < 600)
        scheme = "dark" if dark else "light"
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},  # no wait for a scroll
        ]
        self.call("Emulation.setEmulatedMedia", features=features)
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=link)

    def wait(self, condition: str, seconds: float = PATIENCE) -> None:
        """Wait until an expression is true in the page."""
        end = time.monotonic() + seconds
        while not self.value(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {condition}; {self.complaints}")
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        """The value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"])[:1000])
        return result["result"].get("value")

    def click(self, selector: str, x: float = 0.5, y: float = 0.5) -> None:
        """Click where the first such element is, after scrolling to it."""
        left, top, width, height = self.value(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();"
            "return [r.left, r.top, r.width, r.height]; })()"
        )
        at = dict(x=left + x * width, y=top + y * height)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", **at)
        time.sleep(0.1)  # plotly looks for the nearest point not more often than that
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, button="left", clickCount=1, **at)

    def upload(self, selector: str, path: Path) -> None:
        """Choose a file in the first such input."""
        root = self.call("DOM.getDocument")["root"]["nodeId"]
        node = self.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self.call("DOM.setFileInputFiles", nodeId=node, files=[str(path.resolve())])

    def picture(self, path: Path) -> None:
        """Write a picture of the window to a .png file."""
        data = self.call("Page.captureScreenshot", captureBeyondViewport=False)["data"]
        path.write_bytes(base64.b64decode(data))

    def key(self, name: str) -> None:
        """Press a key, such as Tab or Enter."""
        code = {"Tab": 9, "Enter": 13}[name]
        pressed = dict(key=name, code=name, windowsVirtualKeyCode=code)
        self.call(
            "Input.dispatchKeyEvent", type="keyDown", text={13: "\r"}.get(code, ""), **pressed
        )
        self.call("Input.dispatchKeyEvent", type="keyUp", **pressed)
