"""The small service over HTTP, on loopback."""

import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx


@contextlib.contextmanager
def serving(service, context=None):
    """The address under which a fake service answers, by HTTPS with the certificate of a context."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self):
            content = self.rfile.read(int(self.headers.get("content-length", 0)))
            url = f"http://127.0.0.1{self.path}"
            request = httpx.Request(self.command, url, headers=dict(self.headers), content=content)
            answered = service.answer(request)
            self.send_response(answered.status_code)
            self.send_header("content-length", str(len(answered.content)))
            self.end_headers()
            self.wfile.write(answered.content)

        do_POST = do_PUT = answer  # noqa: N815  # names that the base class looks for

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_):
            """A worker that ends cuts its connections."""

    server = Server(("127.0.0.1", 0), Handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
