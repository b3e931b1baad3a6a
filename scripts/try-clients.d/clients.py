"""The clients: each fetches the same things each time it runs, and says what it got.

`run` returns what must be the same both times. `second` is what the origin may see of the second
run: NOTHING, only VALIDATIONS (each answered 304), or ANYTHING where HTTP caching cannot help.
"""

import hashlib
import os
import pathlib
import shutil
import sys

import origins
from origins import run
from proxies import MemoryWatch
from process import find

NOTHING, VALIDATIONS, ANYTHING = "nothing", "validations only", "anything"
PEAK_LIMIT = 200  # MiB, for the proxy while 2 GiB pass through


class Skipped(Exception):
    """The client is not here; the message says what lacks."""


def need(*commands):
    for command in commands:
        if find(command) is None:
            raise Skipped(f"{command} is not installed")


def digest(*paths):
    total = hashlib.sha256()
    for path in sorted(str(path) for path in paths):
        total.update(pathlib.Path(path).name.encode() + b"\0" + pathlib.Path(path).read_bytes())
    return total.hexdigest()


def tree_digest(folder):
    return digest(*[path for path in folder.rglob("*") if path.is_file()])


def expect(condition, text):
    if not condition:
        raise RuntimeError(text)


class Client:
    name = ""
    second = NOTHING
    # Statuses that the second run may meet again: no cache keeps them without being told to.
    tolerated = frozenset()
    cheap = False

    def __init__(self, trial):
        self.trial = trial
        self.origins, self.proxy = trial.origins, trial.proxy
        self.folder = trial.directory / "clients" / type(self).__name__
        self.folder.mkdir(parents=True)
        # Nothing of this machine's own settings: no caches, no exceptions for loopback.
        self.environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin") + ":/usr/sbin:/sbin",
            "HOME": str(self.folder), "LANG": "C.UTF-8", "PIP_CONFIG_FILE": os.devnull,
            "http_proxy": self.proxy.url, "https_proxy": self.proxy.url,
            "ftp_proxy": self.proxy.url}

    def prepare(self):
        """Sees that the client is there; raises Skipped where it is not."""

    def run(self, turn):
        raise NotImplementedError

    def fresh(self, turn, name="out"):
        folder = self.folder / f"{name}-{turn}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def command(self, *words, **options):
        return run(*words, env=self.environment, timeout=600, **options)


class Curl(Client):
    name, cheap = "curl", True

    def run(self, turn):
        out = self.fresh(turn)
        for name in ("small.txt", "middle.bin", "large.bin"):
            self.command("curl", "-sSf", "-D", out.parent / f"{name}-{turn}.head", "-o", out / name,
                         self.origins.url(f"files/{name}"))
            expect((out / name).read_bytes()
                   == (self.origins.tree / "files" / name).read_bytes(), f"{name}: wrong bytes")
            head = (out.parent / f"{name}-{turn}.head").read_text().lower()
            if self.proxy.name == "Larder":
                wanted = "; stored" if turn == 1 else "larder; hit"
                expect("cache-status:" in head and wanted in head,
                       f"{name}, run {turn}: no '{wanted}' in {head!r}")
        return digest(*out.iterdir())


class CurlAfterRestart(Curl):
    name, cheap = "curl, proxy restarted", True

    def run(self, turn):
        if turn == 2:
            expect(self.proxy.stop(), "the proxy did not end in order on SIGTERM")
            self.proxy.start()
        out = self.fresh(turn)
        self.command("curl", "-sSf", "-o", out / "file", self.origins.url("files/middle.bin?again"))
        return digest(out / "file")


class Wget(Client):
    name, cheap = "wget --recursive", True

    def prepare(self):
        need("wget")

    def run(self, turn):
        out = self.fresh(turn)
        self.command("wget", "-q", "-r", "-np", "-nH", "-e", "robots=off", "-P", out,
                     self.origins.url("site/index.html"))
        expect(len(list(out.rglob("*.html"))) == 9, "not all pages came")
        return tree_digest(out)


class Urllib(Client):
    name, cheap = "python urllib", True
    script = ("import sys, urllib.request, hashlib\n"
              "for url in sys.argv[1:]:\n"
              "    body = urllib.request.urlopen(url, timeout=60).read()\n"
              "    print(hashlib.sha256(body).hexdigest())\n")

    def python(self):
        return sys.executable

    def run(self, turn):
        urls = [self.origins.url(f"files/{name}?{type(self).__name__}")
                for name in ("small.txt", "middle.bin")]
        return self.command(self.python(), "-c", self.script, *urls)


class Requests(Urllib):
    name, cheap = "python requests", False
    script = ("import sys, requests, hashlib\n"
              "session = requests.Session()\n"
              "for url in sys.argv[1:]:\n"
              "    answer = session.get(url, timeout=60)\n"
              "    answer.raise_for_status()\n"
              "    print(hashlib.sha256(answer.content).hexdigest())\n")

    def python(self):
        return self.folder / "venv/bin/python"

    def prepare(self):
        try:
            run(sys.executable, "-m", "venv", "--system-site-packages", self.folder / "venv")
            run(self.python(), "-m", "pip", "install", "-q", "requests", timeout=120)
        except Exception as reason:  # No network is no fault of the proxy's.
            raise Skipped(f"requests cannot be had: {str(reason)[-120:]}") from None


class Pip(Client):
    name, second = "pip install", VALIDATIONS

    def prepare(self):
        try:
            run(sys.executable, "-m", "pip", "--version")
        except RuntimeError:
            raise Skipped("pip is not installed") from None

    def run(self, turn):
        out = self.fresh(turn)
        self.command(sys.executable, "-m", "pip", "install", "-q", "--no-cache-dir",
                     "--no-compile", "--disable-pip-version-check", "--root-user-action", "ignore",
                     "--index-url", self.origins.url("simple/"), "--target", out, "pantry-jam")
        found = sorted(out.glob("*.py"))
        expect([path.name for path in found] == ["pantry_jam.py", "pantry_jar.py"],
               "not both packages were installed")
        return digest(*found)


class Apt(Client):
    name, second = "apt-get", VALIDATIONS
    tolerated = frozenset({404})  # It looks for the signatures that this repository has none of.

    def prepare(self):
        need("apt-get", "dpkg-deb", "dpkg-scanpackages")

    def configuration(self, root):
        """Everything apt reads or writes lies in this folder, nothing on the machine."""
        for name in ("state/lists/partial", "cache/archives/partial", "etc/parts", "log"):
            (root / name).mkdir(parents=True)
        (root / "state/status").touch()
        (root / "etc/sources.list").write_text(
            f"deb [trusted=yes] {self.origins.url('debian/')} ./\n")
        settings = {
            "Dir::State": root / "state", "Dir::State::status": root / "state/status",
            "Dir::Cache": root / "cache", "Dir::Etc": root / "etc", "Dir::Log": root / "log",
            "Dir::Etc::sourcelist": root / "etc/sources.list", "Dir::Etc::sourceparts": "-",
            "Dir::Etc::parts": root / "etc/parts", "Acquire::Languages": "none",
            "Acquire::http::Proxy": self.proxy.url, "Acquire::Retries": "0",
            "APT::Sandbox::User": "root", "APT::Update::Post-Invoke-Success": "",
        }
        file = root / "apt.conf"
        file.write_text("".join(f'{name} "{value}";\n' for name, value in settings.items()))
        self.environment["APT_CONFIG"] = str(file)

    def run(self, turn):
        out = self.fresh(turn)
        self.configuration(out)
        said = self.command("apt-get", "-q", "update")
        expect("Err:" not in said and "W:" not in said, f"apt-get update: {said}")
        self.command("apt-get", "-q", "-y", "install", "--download-only", "pantry-spoon")
        found = list((out / "cache/archives").glob("*.deb"))
        expect(len(found) == 2, f"{len(found)} packages came, not 2")
        return digest(*found)


class Git(Client):
    name, second, cheap = "git clone", ANYTHING, True

    def prepare(self):
        need("git")

    def run(self, turn):
        out = self.fresh(turn)
        self.command("git", "clone", "-q", self.origins.url("git/pantry.git"), out / "copy")
        return self.command("git", "-C", out / "copy", "rev-parse", "HEAD")


class FTP(Client):
    # A directory has no date that would tell how long its listing is good for: it is listed anew.
    name, second, cheap = "curl ftp:// (directory and file)", VALIDATIONS, True
    tolerated = frozenset({226})

    def run(self, turn):
        out = self.fresh(turn)
        root = f"ftp://127.0.0.1:{self.origins.ftp_server.port}/"
        before = len(self.origins.ftp_server.log)
        self.command("curl", "-sSf", "-o", out / "listing", root)
        self.command("curl", "-sSf", "-o", out / "page", f"{root}page1.html")
        verbs = [verb for verb, _, _ in self.origins.ftp_server.log[before:]]
        expect(turn == 1 or "RETR" not in verbs, f"the second run had {verbs}")
        expect("page1.html" in (out / "listing").read_text(), "the listing lacks page1.html")
        expect((out / "page").read_bytes()
               == (self.origins.tree / "site/page1.html").read_bytes(), "wrong bytes")
        return digest(out / "page")


class Tunnel(Client):
    name, second, cheap = "curl https:// (CONNECT)", ANYTHING, True

    def run(self, turn):
        out = self.fresh(turn)
        self.command("curl", "-sSf", "--cacert", self.origins.directory / "certificate.pem",
                     "-o", out / "file",
                     f"https://127.0.0.1:{self.origins.https}/files/large.bin")
        expect((out / "file").read_bytes()
               == (self.origins.tree / "files/large.bin").read_bytes(), "wrong bytes")
        return digest(out / "file")


class Chromium(Client):
    name = "Chromium"

    def prepare(self):
        need("chromium")

    def run(self, turn):
        said = self.command(
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
            "--disable-background-networking", "--disable-component-update", "--disable-sync",
            "--no-first-run", "--disable-default-apps", f"--user-data-dir={self.fresh(turn)}",
            f"--proxy-server={self.proxy.url}", "--proxy-bypass-list=<-loopback>",
            "--virtual-time-budget=10000", "--dump-dom",
            self.origins.url("browser/index.html"))
        expect("the script ran" in said, f"the page's script did not run: {said[-500:]}")
        return said


class BigFile(Client):
    name = "2 GiB file"

    def run(self, turn):
        with MemoryWatch(self.proxy.process.pid) as watch:
            said = self.command("curl", "-sSf", "-o", os.devnull, "-w",
                                "%{size_download} %{speed_download}",
                                self.origins.url("files/big.bin"))
        size, speed = said.split()
        self.trial.remark(
            f"run {turn}: {float(speed) / (1 << 20):.0f} MiB/s, resident at most "
            f"{watch.peak:.0f} MiB (of it {watch.peak_anonymous:.0f} MiB not of files)")
        expect(int(size) == origins.BIG_FILE_BYTES, f"{size} bytes came")
        expect(watch.peak < PEAK_LIMIT or self.proxy.name != "Larder",
               f"the proxy's resident memory reached {watch.peak:.0f} MiB; the limit is {PEAK_LIMIT}")
        return size


CLIENTS = [Curl, Wget, Urllib, Requests, Pip, Apt, Git, FTP, Tunnel, Chromium, BigFile,
           CurlAfterRestart]
