"""The servers that scripts/bench measures: how each is found, configured and started."""

import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import time

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

    def __init__(self, directory, origin, core):
        self.directory = directory / self.name.lower().replace(" ", "-")
        self.directory.mkdir(mode=0o755)
        self.origin = origin
        self.core = core
        self.port = free_port()
        self.process = None
        self.environment = dict(os.environ)

    def command(self):
        raise NotImplementedError

    def binary(self, command):
        path = find(command)
        if path is None:
            hint = f" (Debian: {self.package})" if self.package else ""
            raise Unavailable(f"{command} is not installed{hint}")
        return path

    def start(self):
        command = ["taskset", "-c", str(self.core)] + [str(word) for word in self.command()]
        with open(self.directory / "output.log", "ab") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.directory,
                env=self.environment, start_new_session=True)
        try:
            wait_for_port(self.port, self.process)
        except Unavailable as problem:
            self.stop()
            raise Unavailable(f"{problem}; see {self.directory}/output.log") from None

    def stop(self):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, 9)
            self.process.wait()


class Floor(Server):
    """The bare epoll loop; it has one body, so it is started anew for each row."""

    name = "bare C loop"
    answers_only_hits = True
    body_bytes = 1024

    def command(self):
        binary = self.directory.parent / "floor"
        if not binary.exists():
            compiler = self.binary("cc")
            subprocess.run([compiler, "-O2", "-o", binary, HERE / "floor.c"], check=True)
        return [binary, self.port, self.body_bytes]

    def restart_with(self, body_bytes):
        if self.body_bytes == body_bytes and self.process is not None:
            return
        self.stop()
        self.body_bytes = body_bytes
        self.port = free_port()
        self.start()


class Larder(Server):
    name = "Larder"

    def __init__(self, directory, origin, core, binary):
        super().__init__(directory, origin, core)
        self.path = binary
        for kind in ("cache", "state", "runtime", "config"):
            (self.directory / kind).mkdir(mode=0o700)
        self.environment.update(
            XDG_CACHE_HOME=str(self.directory / "cache"),
            XDG_STATE_HOME=str(self.directory / "state"),
            XDG_RUNTIME_DIR=str(self.directory / "runtime"),
            XDG_CONFIG_HOME=str(self.directory / "config"))

    def command(self):
        file = fill_in("larder.yaml", self.directory / "larder.yaml", port=self.port,
                       dir=self.directory)
        return [self.path, "serve", "--config", file]


class Nginx(Server):
    name = "nginx"
    package = "nginx-light"

    def command(self):
        file = fill_in("nginx.conf", self.directory / "nginx.conf", dir=self.directory,
                       port=self.port, origin=self.origin)
        owned_by("www-data", self.directory)
        return [self.binary("nginx"), "-e", self.directory / "error.log", "-c", file]


class HAProxy(Server):
    name = "HAProxy"
    package = "haproxy"
    stores_on_disk = False

    def command(self):
        file = fill_in("haproxy.cfg", self.directory / "haproxy.cfg", port=self.port,
                       origin=self.origin)
        return [self.binary("haproxy"), "-db", "-f", file]


class Squid(Server):
    name = "Squid"
    package = "squid"

    def command(self):
        binary = self.binary("squid")
        file = fill_in("squid.conf", self.directory / "squid.conf", dir=self.directory,
                       port=self.port)
        (self.directory / "cache").mkdir(exist_ok=True)
        owned_by("proxy", self.directory, self.directory / "cache")
        with open(self.directory / "prepare.log", "wb") as log:
            subprocess.run([binary, "-N", "-z", "-f", file], check=True, stdout=log, stderr=log)
        return [binary, "-N", "-f", file]


class TrafficServer(Server):
    name = "Traffic Server"
    package = "trafficserver"

    def command(self):
        binary = self.binary("traffic_server")
        layout = self.layout()
        for name in ("records.config", "storage.config", "ip_allow.yaml"):
            fill_in(f"trafficserver/{name}", self.directory / "etc" / name, dir=self.directory,
                    port=self.port)
        (self.directory / "runroot.yaml").write_text(
            "".join(f"{name}: {path}\n" for name, path in layout.items()))
        self.environment["TS_RUNROOT"] = str(self.directory)
        return [binary]

    def layout(self):
        layout = {
            "prefix": self.directory, "exec_prefix": self.directory,
            "bindir": "/usr/bin", "sbindir": "/usr/sbin", "libexecdir": "/usr/lib/trafficserver",
            "libdir": "/usr/lib", "datadir": "/usr/share", "includedir": "/usr/include",
            "mandir": "/usr/share/man", "infodir": "/usr/share/info",
        }
        for name, folder in (("sysconfdir", "etc"), ("localstatedir", "var"),
                             ("runtimedir", "run"), ("logdir", "log"), ("cachedir", "cache")):
            layout[name] = self.directory / folder
            layout[name].mkdir(exist_ok=True)
            owned_by("trafficserver", layout[name])
        owned_by("trafficserver", self.directory)
        return layout


class Varnish(Server):
    name = "Varnish"
    package = "varnish"
    stores_on_disk = False

    def command(self):
        binary = self.binary("varnishd")
        self.binary("cc")  # It compiles its configuration.
        file = fill_in("varnish.vcl", self.directory / "varnish.vcl", origin=self.origin)
        return [binary, "-F", "-a", f"127.0.0.1:{self.port}", "-f", file, "-s", "malloc,512m",
                "-n", self.directory / "work", "-j", "none", "-p", "timeout_idle=600"]


PEERS = [HAProxy, Nginx, TrafficServer, Squid, Varnish]


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
        file = fill_in("nginx-origin.conf", self.directory / "origin.conf", dir=self.directory,
                       port=self.port, tree=tree)
        return [self.binary("nginx"), "-e", self.directory / "origin-error.log", "-c", file]
