"""Somebody to call: prints what it gets, and answers 200."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        print(self.command, self.path, self.headers.get("seawall-event"), body.decode(errors="replace"))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"ok")

    do_DELETE = do_GET = do_PATCH = do_POST = do_PUT = answer

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("", 8000), Receiver).serve_forever()
