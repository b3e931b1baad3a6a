"""Smart HTTP for git: hands each request to `git http-backend` as CGI (RFC 3875).

nginx stands before it, so bodies come with a Content-Length, and nginx's log is the witness.
"""

import http.server
import os
import pathlib
import subprocess
import threading
import urllib.parse


class Handler(http.server.BaseHTTPRequestHandler):
    def environment(self):
        url = urllib.parse.urlsplit(self.path)
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "GATEWAY_INTERFACE": "CGI/1.1", "SERVER_PROTOCOL": self.request_version,
            "GIT_PROJECT_ROOT": str(self.server.projects), "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory",
            "GIT_CONFIG_VALUE_0": "*",
            "REQUEST_METHOD": self.command, "QUERY_STRING": url.query,
            "PATH_INFO": urllib.parse.unquote(url.path.removeprefix("/git")),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": self.headers.get("Content-Length", ""),
            "REMOTE_ADDR": "127.0.0.1", "REMOTE_USER": "",
        }
        for field, variable in (("Content-Encoding", "HTTP_CONTENT_ENCODING"),
                                ("Git-Protocol", "GIT_PROTOCOL")):
            if field in self.headers:
                environment[variable] = self.headers[field]
        return environment

    def answer(self):
        length = int(self.headers.get("Content-Length") or 0)
        result = subprocess.run(["git", "http-backend"], input=self.rfile.read(length),
                                env=self.environment(), capture_output=True)
        head, _, body = result.stdout.partition(b"\r\n\r\n")
        if result.returncode != 0 or not head:
            self.send_error(500, "git http-backend failed")
            return
        fields = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        status = next((value for name, value in fields if name.lower() == "status"), "200 OK")
        self.send_response(int(status.split()[0]))
        for name, value in fields:
            if name.lower() != "status":
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = answer

    def log_message(self, *_):
        pass


class GitServer(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, projects):
        super().__init__(("127.0.0.1", 0), Handler)
        self.projects = pathlib.Path(projects)
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def stop(self):
        self.shutdown()
        self.server_close()
