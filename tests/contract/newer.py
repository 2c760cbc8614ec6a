"""A service as it may be in a year: its answers have members and values that the document does not know."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx

from tests.contract.test_document import OPERATIONS, target, validator

MEMBER, VALUE = "of_a_newer_service", "value_of_a_newer_service"
NOT_FORWARDED = {"connection", "content-encoding", "content-length", "host", "transfer-encoding"}


def newer(schema, value):
    """A value of this schema with a member more in every object, and of each choice one that is not known."""
    schema = target(schema)
    choices = schema.get("oneOf", schema.get("anyOf"))
    if choices:
        return newer(next(each for each in choices if validator(each).is_valid(value)), value)
    if isinstance(value, list):
        return [newer(schema["items"], each) for each in value]
    if isinstance(value, dict) and "properties" in schema:
        known = {name: newer(schema["properties"].get(name, {}), each) for name, each in value.items()}
        return {**known, MEMBER: {"deep": [1]}}
    return VALUE if schema.get("enum") and isinstance(value, str) else value


def newer_answer(name):
    """The answer that the document shows for an operation, of a newer service; its status."""
    responses = OPERATIONS[name][2]["responses"]
    status = next(each for each in responses if each.startswith("2"))
    content = responses[status].get("content", {}).get("application/json")
    return int(status), content and newer(content["schema"], content["example"])


@contextmanager
def serving_newer(service, name):
    """An address where the service answers, and to one operation as a newer one would."""
    _, path, document = OPERATIONS[name]
    schema = document["responses"]["200"]["content"]["application/json"]["schema"]

    def change(asked, answer):
        right = asked == path and answer.is_success
        return json.dumps(newer(schema, answer.json())).encode() if right else answer.content

    with between(service, change) as address:
        yield address


@contextmanager
def between(service, change):
    """An address that passes requests on; ``change`` says what comes back, None breaks the connection."""

    class Between(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _pass_on(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            kept = {key: value for key, value in self.headers.items() if key.lower() not in NOT_FORWARDED}
            with httpx.Client(trust_env=False) as client:
                answer = client.request(self.command, service + self.path, content=body, headers=kept)
            content = change(self.path, answer)
            if content is None:
                self.close_connection = True
                return
            self.send_response(answer.status_code)
            for key, value in answer.headers.items():
                if key not in NOT_FORWARDED:
                    self.send_header(key, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = _pass_on  # noqa: N815 (named by the base class)

        def log_message(self, *_):
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Between)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
