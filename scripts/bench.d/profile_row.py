"""`scripts/bench --profile ROW`: where Larder's time goes under the load of a row.

perf, if it can be had, samples all threads (instructions where the machine counts them, else time);
otherwise valgrind's callgrind runs Larder, some fifty times slower, and counts instructions.
"""

import pathlib
import signal
import subprocess
import sys
import tempfile
import threading

import measure
import rounds
import servers

LINES = 40


def profile(options, row, binary):
    if row.kind not in ("hit", "miss", "store", "latency", "tunnel"):
        raise SystemExit(f"bench: there is nothing to profile in the row {row.name}")
    directory = pathlib.Path(tempfile.mkdtemp(prefix="larder-profile."))
    directory.chmod(0o755)
    sampled = servers.find("perf") is not None and can_sample()
    if not sampled and servers.find("valgrind") is None:
        raise SystemExit("bench: neither perf nor valgrind is here (Debian: linux-perf, valgrind)")
    origin = rounds.origins_for(options, directory)
    origin = origin.get(row.setting, origin[None])
    larder = (servers.Larder if sampled else Counted)(
        directory, origin.port, options.server_core, binary, row.setting)
    try:
        origin.start()
        larder.origin = origin.port
        larder.start()
        rounds.warm(larder, row, origin)
        (sample if sampled else count)(options, row, larder, origin, directory)
    except measure.Failed as reason:
        raise SystemExit(f"bench: {row.name}: {reason}") from None
    finally:
        larder.stop()
        origin.stop()
    if not sampled:
        show_counts(directory)
    return 0


def can_sample():
    """Whether perf may watch a process of ours: a setting of the system can forbid it."""
    tried = subprocess.run(["perf", "record", "-q", "-o", "/dev/null", "--", "true"],
                           capture_output=True)
    return tried.returncode == 0


def load(options, row, larder, origin):
    run = rounds.ONE_RUN[row.kind](larder, row, origin, options, f"{row.path}profile-")
    rounds.tell(0, row, larder, run)


def sample(options, row, larder, origin, directory):
    data = directory / f"{row.name}.perf"
    command = ["perf", "record", "-q", "-F", "2999", "--call-graph", "fp", "-o", data, "-p",
               str(larder.process.pid)]
    perf = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    worker = threading.Thread(target=load, args=(options, row, larder, origin))
    worker.start()
    worker.join()
    perf.send_signal(signal.SIGINT)
    perf.wait()
    for title, keys in (("by thread and library", "comm,dso"), ("by symbol", "dso,sym")):
        shown = subprocess.run(
            ["perf", "report", "-i", data, "--no-children", "-g", "none", "--sort", keys,
             "--stdio"], capture_output=True, text=True).stdout
        lines = [line.rstrip() for line in shown.splitlines()
                 if line.strip() and not line.startswith("#")]
        print(f"**{row.name}, {title}**\n\n```\n{readable(lines[:LINES])}```\n")
    print(f"perf report -i {data} --no-children -g caller has the call trees.")


def readable(lines):
    """Swift's names as they are in the source."""
    text = "\n".join(lines) + "\n"
    if servers.find("swift") is None:
        return text
    return subprocess.run(["swift", "demangle", "--simplified"], input=text, capture_output=True,
                          text=True).stdout


class Counted(servers.Larder):
    """Larder under callgrind, which begins to count when it is told to."""

    def command(self):
        # valgrind 3.19 ends at once at what the compiler writes for debuggers (DWARF 5).
        bare = self.directory / "larder"
        subprocess.run(["strip", "--strip-debug", "-o", bare, self.path], check=True)
        self.path = bare
        return ["valgrind", "--tool=callgrind", "--instr-atstart=no", "--separate-threads=yes",
                f"--callgrind-out-file={self.directory.parent.parent}/callgrind.out"
                ] + super().command()


def count(options, row, larder, origin, directory):
    del directory
    control = ["callgrind_control", str(larder.process.pid)]
    subprocess.run([control[0], "-i", "on", control[1]], check=True, stdout=subprocess.DEVNULL)
    load(options, row, larder, origin)
    subprocess.run([control[0], "-i", "off", control[1]], check=True, stdout=subprocess.DEVNULL)


def show_counts(directory):
    files = sorted(directory.glob("callgrind.out*"))
    shown = subprocess.run(["callgrind_annotate", "--threshold=90"] + files, capture_output=True,
                           text=True).stdout
    print(readable(shown.splitlines()[:LINES * 2]))
    print(f"the data: {directory}/callgrind.out*", file=sys.stdout)
