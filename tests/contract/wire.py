"""Calls an application in this process with bytes that no client library would send."""

import asyncio
from urllib.parse import unquote

from tests.inline import Loop


class Wire:
    """One caller of an application."""

    def __init__(self, app, headers):
        self._app = app
        self._own = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        self._runner = Loop()

    def send(self, hostile):
        """Status, headers and content of the answer."""
        path, _, query = hostile.target.partition(b"?")
        length = [] if hostile.chunk_bytes else [(b"content-length", str(len(hostile.body)).encode())]
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "server": ("127.0.0.1", 8000),
            "client": (hostile.address, 50000),
            "root_path": "",
            "method": hostile.method,
            "path": unquote(path.decode()),
            "raw_path": path,
            "query_string": query,
            "headers": [(b"host", b"127.0.0.1:8000"), *self._own, *length, *hostile.headers],
            "state": {},
        }
        size = hostile.chunk_bytes or max(len(hostile.body), 1)
        parts = [hostile.body[start : start + size] for start in range(0, len(hostile.body), size)] or [b""]
        messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        messages[-1]["more_body"] = False
        messages.reverse()
        answer = []

        async def receive():
            return messages.pop() if messages else await asyncio.Event().wait()

        async def send(message):
            answer.append(message)

        self._runner.run(self._app(scope, receive, send))
        content = b"".join(message.get("body", b"") for message in answer)
        return answer[0]["status"], dict(answer[0]["headers"]), content

    def close(self):
        self._runner.close()
