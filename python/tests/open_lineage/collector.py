"""A stand-in for a collector on this machine; a real one (Marquez) needs Docker."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import schemas


class Collector:
    """Keeps each body with its path and headers, and answers `status`, `seconds` later."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.status = 201
        self.seconds = 0.0
        taken = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                taken.taken.append((self.path, dict(self.headers), json.loads(body)))
                time.sleep(taken.seconds)
                self.send_response(taken.status)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def events(self) -> schemas.Events:
        return schemas.Events(schemas.valid(body) for _, _, body in self.taken)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
