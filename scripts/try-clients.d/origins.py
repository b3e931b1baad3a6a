"""What the clients fetch: a tree, package repositories, and the servers that offer them."""

import gzip
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "bench.d"))

from ftp_server import FTPServer  # noqa: E402
from git_server import GitServer  # noqa: E402
from process import find, free_port, wait_for_port  # noqa: E402

# A pixel, as PNG.
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8cf"
    "c0f01f0005000101a5f645400000000049454e44ae426082")
BIG_FILE_BYTES = 2 << 30


def run(*command, **options):
    """Runs a command that has to succeed; what it printed."""
    words = [str(word) for word in command]
    result = subprocess.run(words, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: status {result.returncode}: "
                           f"{(result.stderr or result.stdout).strip()[-2000:]}")
    return result.stdout


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def make_site(tree):
    """Pages with links for wget, scripts and pictures for a browser, files for the others."""
    links = "".join(f'<a href="page{n}.html">{n}</a>\n' for n in range(8))
    write(tree / "site/index.html", f"<!doctype html><title>Site</title>\n{links}")
    for n in range(8):
        write(tree / f"site/page{n}.html", f"<!doctype html><title>{n}</title>\n<p>{n}</p>\n" * 20)
    write(tree / "browser/index.html",
          '<!doctype html><html><head><title>Page</title><link rel="icon" href="icon.ico">'
          '<link rel="stylesheet" href="style.css"></head><body><p id="said">nothing ran</p>'
          '<img src="pixel.png" alt=""><script src="script.js"></script></body></html>\n')
    write(tree / "browser/style.css", "p { color: green }\n")
    write(tree / "browser/script.js",
          'document.getElementById("said").textContent = "the script ran";\n')
    write(tree / "browser/pixel.png", PIXEL)
    write(tree / "browser/icon.ico", PIXEL)
    write(tree / "favicon.ico", PIXEL)
    for name, size in (("small.txt", 1000), ("middle.bin", 300_000), ("large.bin", 5_000_000)):
        write(tree / f"files/{name}", os.urandom(size))
    with open(tree / "files/big.bin", "wb") as big:
        big.truncate(BIG_FILE_BYTES)  # Sparse: it takes no room on the disk.


def make_wheel(folder, name, requires):
    """A wheel with one module (binary distribution format of the Python packaging user guide)."""
    title, version = name.replace("-", "_"), "1.0"
    info = f"{title}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {other}\n" for other in requires)
    files = {
        f"{title}.py": f"NAME = '{name}'\n" + "# filler\n" * 5000,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: try-clients\nRoot-Is-Purelib: true\n"
                         "Tag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    target = folder / f"{title}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(target, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(path, text)
    return target


def make_package_index(tree):
    """A simple repository (PEP 503) of two packages, of which one needs the other."""
    folder = tree / "packages"
    folder.mkdir()
    for name, requires in (("pantry-jam", ["pantry-jar"]), ("pantry-jar", [])):
        wheel = make_wheel(folder, name, requires)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        write(tree / f"simple/{name}/index.html",
              f'<!doctype html><a href="../../packages/{wheel.name}#sha256={digest}">'
              f"{wheel.name}</a>\n")


def make_debian_repository(tree, work):
    """A flat repository of two packages, of which one needs the other; not signed."""
    folder = tree / "debian"
    folder.mkdir()
    for name, needs in (("pantry-spoon", "Depends: pantry-drawer\n"), ("pantry-drawer", "")):
        root = work / name
        write(root / "DEBIAN/control",
              f"Package: {name}\nVersion: 1.0\nArchitecture: all\n{needs}"
              "Maintainer: Nobody <nobody@localhost>\nDescription: nothing much\n")
        write(root / f"usr/share/{name}/content", os.urandom(50_000))
        run("dpkg-deb", "--build", "--root-owner-group", root, folder / f"{name}_1.0_all.deb")
    packages = run("dpkg-scanpackages", "--multiversion", ".", cwd=folder)
    write(folder / "Packages", packages)
    (folder / "Packages.gz").write_bytes(gzip.compress(packages.encode(), mtime=0))
    lines = ["Suite: pantry", f"Date: {time.strftime('%a, %d %b %Y %H:%M:%S UTC', time.gmtime())}",
             "SHA256:"]
    for name in ("Packages", "Packages.gz"):
        content = (folder / name).read_bytes()
        lines.append(f" {hashlib.sha256(content).hexdigest()} {len(content)} {name}")
    write(folder / "Release", "\n".join(lines) + "\n")


def make_git_project(projects, work):
    copy = work / "copy"
    copy.mkdir()
    identity = ["-c", "user.name=Nobody", "-c", "user.email=nobody@localhost"]
    run("git", "init", "-q", "-b", "main", copy)
    for n in range(5):
        write(copy / f"file{n}", os.urandom(40_000))
        run("git", "-C", copy, "add", ".")
        run("git", "-C", copy, *identity, "commit", "-q", "-m", f"Add file {n}")
    projects.mkdir()
    run("git", "clone", "-q", "--bare", copy, projects / "pantry.git")


def age(tree, days=10):
    """Makes everything older, so that the heuristic takes it for fresh for a while."""
    then = time.time() - days * 86_400
    for path in tree.rglob("*"):
        os.utime(path, (then, then))


class Origins:
    """nginx, git and FTP on loopback, and what they have answered so far."""

    def __init__(self, directory):
        self.directory = directory / "origin"
        self.tree = self.directory / "tree"
        self.tree.mkdir(parents=True)
        self.directory.chmod(0o755)
        self.make_content()
        self.http, self.https = free_port(), free_port()
        self.git_server = GitServer(self.directory / "projects")
        self.ftp_server = FTPServer(self.tree / "site")
        self.nginx = self.start_nginx()
        self.fences = 0

    def make_content(self):
        work = self.directory / "work"
        work.mkdir()
        make_site(self.tree)
        make_package_index(self.tree)
        if find("dpkg-scanpackages"):
            make_debian_repository(self.tree, work)
        make_git_project(self.directory / "projects", work)
        age(self.tree)
        for path in [self.tree, *self.tree.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
            "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
            self.directory / "key.pem", "-out", self.directory / "certificate.pem")

    def start_nginx(self):
        text = (HERE / "nginx.conf").read_text()
        for name, value in (("DIR", self.directory), ("TREE", self.tree), ("HTTP", self.http),
                            ("HTTPS", self.https), ("GIT", self.git_server.port)):
            text = text.replace(f"@{name}@", str(value))
        write(self.directory / "nginx.conf", text)
        shutil.copy(HERE / "mime.types", self.directory / "mime.types")
        with open(self.directory / "output.log", "wb") as log:
            process = subprocess.Popen(
                [find("nginx"), "-e", self.directory / "error.log", "-c",
                 self.directory / "nginx.conf"], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        try:
            wait_for_port(self.http, process)
        except BaseException:
            process.terminate()
            raise
        return process

    def url(self, path):
        return f"http://127.0.0.1:{self.http}/{path}"

    def witnessed(self):
        """All lines of nginx's log so far, as (method, status, path).

        A request of our own is the fence: when its line is there, all earlier ones are.
        """
        self.fences += 1
        run("curl", "-sS", "--noproxy", "*", self.url(f"fence?{self.fences}"))
        mark = f"/fence?{self.fences}"
        limit = time.monotonic() + 10
        while time.monotonic() < limit:
            lines = (self.directory / "access.log").read_text().splitlines()
            if lines and lines[-1].endswith(mark):
                break
            time.sleep(0.02)
        fields = [line.split(" ", 2) for line in lines]
        return [(m, int(s), path) for m, s, path in fields if not path.startswith("/fence?")]

    def stop(self):
        self.nginx.terminate()
        self.nginx.wait(10)
        self.git_server.stop()
        self.ftp_server.stop()
