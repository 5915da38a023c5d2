"""Stands in for llama.cpp in a child: a server that says what it is told, hangs, dies and does not load, all on demand.

On the path of a child in front of the real package. What goes wrong while it loads stands in `FAKE_LLAMA`, what goes wrong
while it answers in the last message. Its `/health` is well whatever happens, as llama.cpp's is.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_FOR_EVER = threading.Event()  # Never set.
_STUCK = threading.Event()  # The loop that makes answers does nothing any more.
_WORDS = ("One ", "two ", "three ")

match os.environ.get("FAKE_LLAMA", ""):
    case "missing":
        raise ImportError("libllama.so: cannot open shared object file: No such file or directory")
    case "aborts":
        os.abort()
    case "is killed":
        os.kill(os.getpid(), signal.SIGKILL)
    case "hangs":
        _FOR_EVER.wait()
    case _:
        pass


class Anything:
    """Takes every parameter."""

    def __getattr__(self, name: str) -> Anything:
        made = Anything()
        setattr(self, name, made)
        return made


CommonParams = Anything
llama_pooling_type = llama_load_mode = Anything()


class Answer(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Tell of the slots, unless the loop is stuck."""
        if self.path == "/slots" and _STUCK.is_set():
            _FOR_EVER.wait()
        self._whole(b"[]")

    def do_POST(self) -> None:
        """Say three words, with a misfortune after the second, or before the first one."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = str(asked["messages"][-1]["content"]) if "messages" in asked else ""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        if "at once" in prompt:
            self._suffer(prompt)
        for number, word in enumerate(_WORDS):
            if number == len(_WORDS) - 1:
                self._suffer(prompt)
            self._event({"choices": [{"index": 0, "delta": {"content": word}}]})
        self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self._event({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""

    def _suffer(self, prompt: str) -> None:
        self.wfile.flush()
        if "hang" in prompt:
            _STUCK.set()
            _FOR_EVER.wait()
        if "memory" in prompt:
            os._exit(137)  # As a container ends whoever takes too much.
        if "crash" in prompt:
            os.abort()

    def _event(self, data: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
        self.wfile.flush()

    def _whole(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


class Server:
    """Listens on a free port."""

    def __init__(self, params: Anything) -> None:
        del params
        if os.environ.get("FAKE_LLAMA") == "refuses":
            raise RuntimeError("Failed to init server, please check the input params.")
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    @property
    def listening_address(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._http.server_port}"
