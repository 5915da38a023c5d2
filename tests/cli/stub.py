"""A server that is none of ours: it answers each path with what a test says."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[str], tuple[int, object]]
"""Takes a path and gives a status and what becomes JSON."""


@contextmanager
def stub(answer: Answer) -> Iterator[str]:
    """Serve, and give the base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _speaking(answer))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _speaking(answer: Answer) -> type[BaseHTTPRequestHandler]:
    class Speaking(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            status, content = answer(self.path)
            data = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            pass

    return Speaking
