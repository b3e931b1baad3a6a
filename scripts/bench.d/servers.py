"""The servers that scripts/bench measures: how each is found, configured and started."""

import subprocess

import process
import settings
from process import Origin, Server, Unavailable, find, owned_by  # noqa: F401


class Floor(Server):
    """The bare epoll loop; it has one body, so it is started anew for each row."""

    name = "bare C loop"
    answers_only_hits = True
    has_loops = False
    body_bytes = 1024

    def command(self):
        return [process.compiled("floor.c", self.directory.parent), self.port, self.body_bytes]

    def restart_with(self, body_bytes):
        if self.body_bytes == body_bytes and self.process is not None:
            return
        self.stop()
        self.body_bytes = body_bytes
        self.port = process.free_port()
        self.start()


class Pass(Server):
    """The bare epoll loop around libcurl: what is left for a server that speaks to origins by it."""

    name = "bare libcurl loop"
    only_rows = ("miss-1k",)

    def command(self):
        return [process.compiled("pass.c", self.directory.parent, "-lcurl", "-llmdb"), self.port]


class StoringPass(Pass):
    """The same with LMDB: what is left for a server that keeps what it gets in that, too."""

    name = "bare libcurl and LMDB loop"
    only_rows = ("store-4k",)

    def command(self):
        return [*super().command(), self.directory]


class Relay(Server):
    """The bare loop for tunnels."""

    name = "bare C loop"
    makes_tunnels = True
    only_tunnels = True

    def command(self):
        return [process.compiled("relay.c", self.directory.parent), self.port]


class Larder(Server):
    name = "Larder"
    makes_tunnels = True

    def __init__(self, directory, origin, core, binary, setting=settings.USUAL):
        super().__init__(directory, origin, core, setting)
        self.path = binary
        for kind in ("cache", "state", "runtime", "config"):
            (self.directory / kind).mkdir(mode=0o700)
        self.environment.update(
            XDG_CACHE_HOME=str(self.directory / "cache"),
            XDG_STATE_HOME=str(self.directory / "state"),
            XDG_RUNTIME_DIR=str(self.directory / "runtime"),
            XDG_CONFIG_HOME=str(self.directory / "config"))

    def command(self):
        memory = self.setting.memory
        file = self.configure(
            "larder.yaml", "larder.yaml", memory="64 MiB" if memory is None else f"{memory} MiB",
            log=self.directory / "access.log" if self.setting.log else "none",
            workers=self.setting.workers or "automatic", connections=self.setting.connections,
            tunnel_port=self.origin if self.setting == settings.TUNNELS else 443)
        return [self.path, "serve", "--config", file]


class Nginx(Server):
    name = "nginx"
    package = "nginx-light"

    def command(self):
        log = f"{self.directory}/access.log combined buffer=64k flush=1s"
        file = self.configure(
            "nginx.conf", "nginx.conf", log=log if self.setting.log else "off",
            workers=self.setting.workers or 1, connections=self.setting.connections)
        owned_by("www-data", self.directory)
        return [self.binary("nginx"), "-e", self.directory / "error.log", "-c", file]


class HAProxy(Server):
    """It writes its log to a descriptor at once; this one is the file of its output.

    CONNECT it does not know: what tunnels are compared with is its relaying of a port.
    """

    name = "HAProxy"
    package = "haproxy"
    stores_on_disk = False
    makes_tunnels = True
    splices = True

    @property
    def relays_blindly(self):
        return self.setting == settings.TUNNELS

    def command(self):
        if self.relays_blindly:
            file = self.configure(
                "haproxy-tcp.cfg", "haproxy.cfg", connections=self.setting.connections,
                pipes="tune.pipesize 1048576" if self.splices else "",
                splice="option splice-response" if self.splices else "")
            return [self.binary("haproxy"), "-db", "-f", file]
        file = self.configure(
            "haproxy.cfg", "haproxy.cfg",
            log="log stdout format raw daemon" if self.setting.log else "",
            requests="log global\n    option httplog" if self.setting.log else "",
            memory=64 if self.setting.memory is None else self.setting.memory,
            workers=self.setting.workers or 1, connections=self.setting.connections)
        return [self.binary("haproxy"), "-db", "-f", file]


class CopyingHAProxy(HAProxy):
    """As it relays without being told to splice."""

    name = "HAProxy, copying"
    splices = False
    only_tunnels = True


class Squid(Server):
    name = "Squid"
    package = "squid"
    has_loops = False
    makes_tunnels = True

    def command(self):
        binary = self.binary("squid")
        memory = self.setting.memory
        file = self.configure(
            "squid.conf", "squid.conf", memory=256 if memory is None else memory,
            log=f"stdio:{self.directory}/access.log" if self.setting.log else "none")
        (self.directory / "cache").mkdir(exist_ok=True)
        owned_by("proxy", self.directory, self.directory / "cache")
        with open(self.directory / "prepare.log", "wb") as log:
            subprocess.run([binary, "-N", "-z", "-f", file], check=True, stdout=log, stderr=log)
        return [binary, "-N", "-f", file]


class TrafficServer(Server):
    name = "Traffic Server"
    package = "trafficserver"
    makes_tunnels = True

    def command(self):
        binary = self.binary("traffic_server")
        layout = self.layout()
        memory = self.setting.memory
        for name in ("records.config", "storage.config", "ip_allow.yaml", "logging.yaml"):
            self.configure(
                f"trafficserver/{name}", f"etc/{name}",
                memory=-1 if memory is None else memory << 20, cutoff=(4 << 20) if memory else 0,
                log=2 if self.setting.log else 0, workers=self.setting.workers or 1,
                tunnel_port=self.origin if self.setting == settings.TUNNELS else 443)
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
    """Its log is memory that others read; varnishncsa, who writes the file, is counted in."""

    name = "Varnish"
    package = "varnish"
    stores_on_disk = False

    def command(self):
        binary = self.binary("varnishd")
        self.binary("cc")  # It compiles its configuration.
        file = self.configure("varnish.vcl", "varnish.vcl")
        return [binary, "-F", "-a", f"127.0.0.1:{self.port}", "-f", file, "-s", "malloc,512m",
                "-n", self.directory / "work", "-j", "none", "-p", "timeout_idle=600"]

    def start(self):
        super().start()
        if self.setting.log:
            self.accompany([self.binary("varnishncsa"), "-n", self.directory / "work",
                            "-w", self.directory / "access.log"])


PEERS = [HAProxy, CopyingHAProxy, Nginx, TrafficServer, Squid, Varnish]
