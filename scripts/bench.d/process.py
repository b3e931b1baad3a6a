"""What servers that scripts/bench starts have in common, and its origin."""

import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import time

import rows
import settings

HERE = pathlib.Path(__file__).resolve().parent


class Unavailable(Exception):
    """A server that cannot take part; the message says why."""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def find(command):
    """The path of a command, also where only root has it on PATH."""
    folders = os.environ.get("PATH", "") + ":/usr/local/sbin:/usr/sbin:/sbin"
    return shutil.which(command, path=folders)


def fill_in(template, target, **values):
    text = (HERE / template).read_text()
    for name, value in values.items():
        text = text.replace(f"@{name.upper()}@", str(value))
    target.write_text(text)
    return target


def compiled(source, directory, *libraries):
    """The program that a C file of this folder makes, compiled once."""
    binary = directory / pathlib.Path(source).stem
    if not binary.exists():
        compiler = find("cc")
        if compiler is None:
            raise Unavailable("cc is not installed (Debian: gcc)")
        subprocess.run([compiler, "-O2", "-Wall", "-o", binary, HERE / source, *libraries],
                       check=True)
    return binary


def wait_for_port(port, process, seconds=30):
    """Waits until something listens: connecting is the event, the clock only its limit."""
    limit = time.monotonic() + seconds
    while time.monotonic() < limit:
        if process.poll() is not None:
            raise Unavailable(f"it ended at once with status {process.returncode}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise Unavailable(f"nothing listens on port {port} after {seconds} s")


def owned_by(user, *paths):
    """Gives directories to the account to which a server steps down when root starts it."""
    if os.geteuid() != 0:
        return
    try:
        account = pwd.getpwnam(user)
    except KeyError:
        return
    for path in paths:
        os.chown(path, account.pw_uid, account.pw_gid)


class Server:
    """A running server: its process tree and its port."""

    name = ""
    package = None
    stores_on_disk = True
    answers_only_hits = False
    only_rows = ()  # The names of the rows that it can do; empty: what its other properties say.
    makes_tunnels = False
    only_tunnels = False
    relays_blindly = False
    has_loops = True

    def __init__(self, directory, origin, core, setting=settings.USUAL):
        name = self.name.lower().replace(" ", "-").replace(",", "")
        self.directory = directory / setting.name / name
        self.directory.parent.mkdir(mode=0o755, exist_ok=True)
        self.directory.mkdir(mode=0o755)
        self.origin = origin
        self.core = core
        self.setting = setting
        self.port = free_port()
        self.process = None
        self.companions = []
        self.environment = dict(os.environ)

    def command(self):
        raise NotImplementedError

    def configure(self, template, target, **values):
        """The template, filled in with what most of them want to know."""
        return fill_in(template, self.directory / target, dir=self.directory, port=self.port,
                       origin=self.origin, **values)

    def binary(self, command):
        path = find(command)
        if path is None:
            hint = f" (Debian: {self.package})" if self.package else ""
            raise Unavailable(f"{command} is not installed{hint}")
        return path

    def launch(self, command):
        command = ["taskset", "-c", str(self.core)] + [str(word) for word in command]
        with open(self.directory / "output.log", "ab") as log:
            return subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory,
                env=self.environment, start_new_session=True)

    def start(self):
        self.process = self.launch(self.command())
        try:
            wait_for_port(self.port, self.process)
        except Unavailable as problem:
            self.stop()
            raise Unavailable(f"{problem}; see {self.directory}/output.log") from None
        except BaseException:
            self.stop()  # Whoever stops the servers does not know of this one yet.
            raise

    def accompany(self, command):
        """Starts what the server needs another process for; its cost is the server's."""
        self.companions.append(self.launch(command))

    def roots(self):
        """The processes whose trees are the server."""
        return [process.pid for process in [self.process] + self.companions]

    def stop(self):
        for process in self.companions + [self.process]:
            if process is None or process.poll() is not None:
                continue
            process.terminate()
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, 9)
                process.wait()
        self.companions = []


class Origin(Server):
    """nginx with real files; it shares the load generator's core, never the measured one."""

    name = "origin"
    package = "nginx-light"
    sizes = {"1k": 1 << 10, "4k": 4 << 10, "100k": 100 << 10, "1m": 1 << 20}

    def command(self):
        tree = self.directory / "tree"
        tree.mkdir(exist_ok=True)
        for name, size in self.sizes.items():
            (tree / name).write_bytes(os.urandom(size))
            os.utime(tree / name, (rows.CHANGED, rows.CHANGED))
        file = fill_in("nginx-origin.conf", self.directory / "origin.conf", dir=self.directory,
                       port=self.port, tree=tree)
        return [self.binary("nginx"), "-e", self.directory / "origin-error.log", "-c", file]
