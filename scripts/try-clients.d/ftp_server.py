"""A small FTP server on loopback, read-only, passive mode only (RFC 959, RFC 2428, RFC 3659).

It notes transfers, so that it can bear witness of what reached the origin.
"""

import os
import pathlib
import socket
import socketserver
import threading
import time


class Session(socketserver.StreamRequestHandler):
    def handle(self):
        self.folder = pathlib.PurePosixPath("/")
        self.listener = None
        self.reply(220, "ready")
        for line in self.rfile:
            words = line.decode("utf-8", "replace").rstrip("\r\n").split(" ", 1)
            verb, argument = words[0].upper(), words[1] if len(words) > 1 else ""
            method = getattr(self, f"do_{verb.lower()}", None)
            if method is None:
                self.reply(502, "not implemented")
            elif method(argument) == "end":
                return

    def finish(self):
        if self.listener is not None:
            self.listener.close()
        super().finish()

    def reply(self, code, text):
        self.wfile.write(f"{code} {text}\r\n".encode())

    def path(self, argument):
        """The file an argument names; None outside of the tree."""
        place = os.path.normpath(str(self.folder / argument)).lstrip("/")
        found = (self.server.tree / place).resolve()
        inside = found == self.server.tree or self.server.tree in found.parents
        return found if inside and found.exists() else None

    def do_user(self, _):
        self.reply(331, "any password")

    def do_pass(self, _):
        self.reply(230, "logged in")

    def do_syst(self, _):
        self.reply(215, "UNIX Type: L8")

    def do_type(self, _):
        self.reply(200, "type set")

    def do_noop(self, _):
        self.reply(200, "done")

    def do_pwd(self, _):
        self.reply(257, f'"{self.folder}"')

    def do_cwd(self, argument):
        found = self.path(argument)
        if found is None or not found.is_dir():
            return self.reply(550, "no such directory")
        self.folder = pathlib.PurePosixPath(os.path.normpath(str(self.folder / argument)))
        return self.reply(250, "changed")

    def do_size(self, argument):
        found = self.path(argument)
        if found is None or not found.is_file():
            return self.reply(550, "no such file")
        return self.reply(213, str(found.stat().st_size))

    def do_mdtm(self, argument):
        found = self.path(argument)
        if found is None or not found.is_file():
            return self.reply(550, "no such file")
        return self.reply(213, time.strftime("%Y%m%d%H%M%S", time.gmtime(found.stat().st_mtime)))

    def listen(self):
        if self.listener is not None:
            self.listener.close()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        return self.listener.getsockname()[1]

    def do_epsv(self, _):
        self.reply(229, f"Entering Extended Passive Mode (|||{self.listen()}|)")

    def do_pasv(self, _):
        port = self.listen()
        self.reply(227, f"Entering Passive Mode (127,0,0,1,{port >> 8},{port & 255})")

    def send(self, verb, argument, content):
        if self.listener is None:
            return self.reply(425, "PASV or EPSV first")
        self.reply(150, "here it comes")
        connection, _ = self.listener.accept()
        with connection:
            connection.sendall(content)
        self.listener.close()
        self.listener = None
        self.server.note_transfer(verb, argument)
        return self.reply(226, "done")

    def do_list(self, argument):
        folder = self.path("" if argument.startswith("-") else argument)
        if folder is None:
            return self.reply(550, "no such directory")
        lines = []
        for entry in sorted(folder.iterdir()):
            facts = entry.stat()
            mode = "drwxr-xr-x" if entry.is_dir() else "-rw-r--r--"
            when = time.strftime("%b %d %H:%M", time.gmtime(facts.st_mtime))
            lines.append(f"{mode} 1 ftp ftp {facts.st_size:12} {when} {entry.name}\r\n")
        return self.send("LIST", argument, "".join(lines).encode())

    def do_nlst(self, argument):
        folder = self.path("" if argument.startswith("-") else argument)
        if folder is None:
            return self.reply(550, "no such directory")
        names = "".join(f"{entry.name}\r\n" for entry in sorted(folder.iterdir()))
        return self.send("NLST", argument, names.encode())

    def do_retr(self, argument):
        found = self.path(argument)
        if found is None or not found.is_file():
            return self.reply(550, "no such file")
        return self.send("RETR", argument, found.read_bytes())

    def do_quit(self, _):
        self.reply(221, "goodbye")
        return "end"


class FTPServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, tree):
        super().__init__(("127.0.0.1", 0), Session)
        self.tree = pathlib.Path(tree).resolve()
        self.lock = threading.Lock()
        self.log = []
        self.port = self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def note_transfer(self, verb, argument):
        with self.lock:
            self.log.append((verb, 226, argument))

    def stop(self):
        self.shutdown()
        self.server_close()
