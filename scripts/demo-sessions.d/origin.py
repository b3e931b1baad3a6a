"""The origin of scripts/demo-sessions: says its port on standard output, and serves until killed.

    /page      may be cached; tells which fetch it is
    /login     sets a persistent and a session cookie, whose values are secrets
    /whoami    the names of the cookies that came, never cached
    /account   behind Basic, never cached
"""

import base64
import http.server
import itertools
import sys

KEEP, SESSION, USER, PASSWORD = sys.argv[1:5]
FETCHES = itertools.count(1)


class Origin(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self, status, body, *fields):
        content = (body + "\n").encode()
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        if self.path == "/page":
            self.answer(200, f"fetch {next(FETCHES)}", ("Cache-Control", "max-age=3600"))
        elif self.path == "/login":
            self.answer(
                200, "welcome", ("Cache-Control", "no-store"),
                ("Set-Cookie", f"keep={KEEP}; Max-Age=86400; HttpOnly"),
                ("Set-Cookie", f"sid={SESSION}; HttpOnly"))
        elif self.path == "/whoami":
            pairs = [p.strip().split("=") for p in self.headers.get("Cookie", "").split(";")]
            known = {"keep": KEEP, "sid": SESSION}
            names = sorted(p[0] for p in pairs if len(p) == 2 and known.get(p[0]) == p[1])
            self.answer(200, " ".join(names) or "none", ("Cache-Control", "no-store"))
        elif self.path == "/account":
            wanted = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
            if self.headers.get("Authorization") == wanted:
                self.answer(200, f"account of {USER}", ("Cache-Control", "no-store"))
            else:
                self.answer(401, "who?", ("WWW-Authenticate", 'Basic realm="demo"'))
        else:
            self.answer(404, "not here")

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Origin)
print(server.server_port, flush=True)
server.serve_forever()
