"""The proxy under trial: Larder, or Squid as a stand-in to try the trial itself."""

import os
import pathlib
import re
import subprocess
import threading
import time

from process import Unavailable, find, free_port, owned_by, wait_for_port

LARDER = """\
listeners:
  - address: 127.0.0.1:{port}
    session: default
sessions:
  default: {{ kind: default, cache: {{ memory: 64 MiB, disk: 10 GiB }} }}
# Nothing leaves this machine.
access:
  - action: allow
    clients: [127.0.0.0/8]
    destinations: [127.0.0.0/8]
connect-ports: [443, {https}]
log:
  access: {{ format: squid, to: {log} }}
"""

SQUID = """\
http_port 127.0.0.1:{port}
acl here dst 127.0.0.0/8
acl tunnel_ports port {https}
http_access deny CONNECT !tunnel_ports
http_access allow localhost here
http_access deny all
cache_mem 64 MB
maximum_object_size 4 GB
cache_dir aufs {directory}/cache 10000 16 256
refresh_pattern . 0 10% 1440
access_log stdio:{log} logformat=squid
cache_log {directory}/cache.log
pid_filename {directory}/squid.pid
coredump_dir none
netdb_filename none
pinger_enable off
visible_hostname trial
shutdown_lifetime 0 seconds
"""


class Proxy:
    name = ""

    def __init__(self, directory, https):
        self.directory = directory / "proxy"
        self.directory.mkdir(mode=0o755)
        self.log = self.directory / "access.log"
        self.log.touch()
        self.port = free_port()
        self.https = https
        self.process = None
        self.environment = dict(os.environ)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def configure(self, template, name):
        file = self.directory / name
        file.write_text(template.format(
            port=self.port, https=self.https, log=self.log, directory=self.directory))
        return file

    def start(self):
        with open(self.directory / "output.log", "ab") as log:
            self.process = subprocess.Popen(
                [str(word) for word in self.command()], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, env=self.environment)
        try:
            wait_for_port(self.port, self.process)
        except Unavailable as reason:
            said = (self.directory / "output.log").read_text(errors="replace").strip()[-2000:]
            self.stop()
            raise Unavailable(f"{self.name} did not start: {reason}\n{said}") from None

    def stop(self):
        """Ends the proxy in order; whether it did within the time that its drain may take."""
        if self.process is None or self.process.poll() is not None:
            return self.process is None or self.process.returncode == 0
        self.process.terminate()
        try:
            return self.process.wait(30) == 0
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False

    def requests(self):
        """How many requests its access log tells of; waits until the log has been quiet."""
        count, quiet = -1, 0
        while quiet < 3:
            now = len(self.log.read_bytes().splitlines())
            quiet = quiet + 1 if now == count else 0
            count = now
            time.sleep(0.1)
        return count


class Larder(Proxy):
    name = "Larder"

    def __init__(self, directory, https, binary):
        super().__init__(directory, https)
        self.binary = pathlib.Path(binary).resolve()
        for kind in ("cache", "state", "runtime", "config"):
            (self.directory / kind).mkdir(mode=0o700)
            self.environment[f"XDG_{kind.upper()}_{'DIR' if kind == 'runtime' else 'HOME'}"] = str(
                self.directory / kind)

    def command(self):
        return [self.binary, "serve", "--config", self.configure(LARDER, "larder.yaml")]


class Squid(Proxy):
    name = "Squid (stand-in)"

    def command(self):
        file = self.configure(SQUID, "squid.conf")
        if not (self.directory / "cache").exists():
            (self.directory / "cache").mkdir()
            owned_by("proxy", self.directory, self.directory / "cache", self.log)
            subprocess.run([find("squid"), "-N", "-z", "-f", file], check=True, capture_output=True)
        return [find("squid"), "-N", "-f", file]


class MemoryWatch:
    """Watches a process's resident memory until it is told to stop: the peaks, in MiB."""

    def __init__(self, process):
        self.process = process
        self.peak, self.peak_anonymous = 0, 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def sample(self):
        try:
            text = pathlib.Path(f"/proc/{self.process}/status").read_text()
        except OSError:
            return
        facts = {name: int(value) / 1024 for name, value in
                 re.findall(r"^(VmRSS|RssAnon):\s+(\d+) kB", text, re.M)}
        self.peak = max(self.peak, facts.get("VmRSS", 0))
        self.peak_anonymous = max(self.peak_anonymous, facts.get("RssAnon", 0))

    def watch(self):
        while not self.ended.wait(0.05):
            self.sample()

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()
        self.sample()
