"""Reads pages as people do: in headless Chromium, at the width of a phone or a desktop.

The fixtures are known to every test by `tests/conftest.py`. A test that serves an application needs the marks
of :data:`LOOPBACK`.
"""

import asyncio
import contextlib
import shutil
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from service.kit.http.server import BoundedProtocol

NARROW, PHONE, DESKTOP = 360, 390, 1280
LOOPBACK = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
_CHROMIUM = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""Names of the browser. Without a shell that has no windows, each page costs four times as much."""
_HEIGHT = 844
_PATIENCE_MILLISECONDS = 10_000


def find_chromium() -> str | None:
    """Path of the Chromium that the system has; None without one."""
    return next((path for name in _CHROMIUM if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Headless Chromium, as the system has it, and the loop in which Playwright talks to it.

    Playwright leaves its loop as this thread's own, in which no other may run: it is so in tests with a
    window only.
    """
    found = find_chromium()
    if found is None:
        pytest.skip(
            "pages are not read in a browser: install Chromium (apt-get install chromium-headless-shell)"
        )
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  # a third of a second to import

    with sync_playwright() as playwright:
        # There is no other user to be kept from; a container has no namespaces to give.
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        loop = asyncio.get_running_loop()
        asyncio._set_running_loop(None)
        yield running, loop
        asyncio._set_running_loop(loop)
        running.close()


@pytest.fixture
def window(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens windows of a width. What a browser complains about is an error of the test, unless it is to."""
    chromium, loop = browser
    complaints: list[str] = []
    asyncio._set_running_loop(loop)

    def opened(width: int = DESKTOP, *, complains: bool = False, **options: Any) -> Any:
        context = chromium.new_context(viewport={"width": width, "height": _HEIGHT}, **options)
        context.set_default_timeout(_PATIENCE_MILLISECONDS)
        page = context.new_page()
        if not complains:
            page.on("console", lambda said: said.type == "error" and complaints.append(said.text))
            page.on("pageerror", lambda error: complaints.append(str(error)))
        return page

    yield opened
    for context in chromium.contexts:
        context.close()
    asyncio._set_running_loop(None)
    # An answer that is not 2xx is noted as an error, and is what a test may ask for.
    assert [text for text in complaints if not text.startswith("Failed to load resource")] == []


def violations(page: Any) -> list[str]:
    """What axe-core finds wrong with a page, and where."""
    from axe_playwright_python.sync_playwright import Axe  # noqa: PLC0415

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['html']}" for one in found for node in one["nodes"]]


def overflow(page: Any) -> int:
    """Pixels by which a page is wider than its window."""
    wider: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return wider


def shows(page: Any, content: str, headers: Mapping[str, str] | None = None) -> None:
    """Let a window show a page that is served nowhere."""
    given = {"content-type": "text/html; charset=utf-8", **(headers or {})}
    page.route("**/*", lambda route: route.fulfill(body=content, headers=given))
    page.goto("http://page.test/")


def printed(page: Any, path: Path, **options: Any) -> int:
    """Print a page to PDF; the number of sheets."""
    page.pdf(path=path, **options)
    return path.read_bytes().count(b"/Type /Page\n")


class Caller:
    """Calls a served application as `tests.conftest.Client` calls one in this process.

    That has a loop of its own to run, which cannot be done in a test with a window.
    """

    def __init__(self, app: FastAPI, address: str) -> None:
        self.app = app
        self._client = httpx.Client(base_url=address, trust_env=False, timeout=60)

    def request(self, method: str, url: str, **options: Any) -> httpx.Response:
        return self._client.request(method, url, **options)

    def get(self, url: str, **options: Any) -> httpx.Response:
        return self.request("GET", url, **options)

    def post(self, url: str, json: Any = None, **options: Any) -> httpx.Response:
        return self.request("POST", url, json=json, **options)

    def close(self) -> None:
        self._client.close()


def listening() -> socket.socket:
    """A port of this machine."""
    return socket.create_server(("127.0.0.1", 0))


def address_of(port: socket.socket) -> str:
    """Where browsers reach what listens on a port."""
    return f"http://127.0.0.1:{port.getsockname()[1]}"


@contextlib.contextmanager
def served(app: FastAPI, port: socket.socket | None = None) -> Iterator[str]:
    """An application on loopback, in a thread of this process; its address."""
    port = port or listening()
    config = uvicorn.Config(
        app, loop="asyncio", http=BoundedProtocol, ws="none", access_log=False, log_config=None
    )
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [port]})
    thread.start()
    try:
        yield address_of(port)
    finally:
        running.should_exit = True
        thread.join()
