"""`scripts/bench url-loading`: the library beside FoundationNetworking and a bare libcurl loop.

One origin (nginx), one program compiled for both libraries, one turn after the other. Requests a
second depend on the machine, and on what waking a thread costs at the moment: with the same binary
they can differ by a factor of three from one process to the next. So ratios are taken within each
turn, and their median counts.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent.parent
sys.path.insert(0, str(HERE.parent))

import servers  # noqa: E402

LARDER, FOUNDATION, CURL = "URLLoading", "FoundationNetworking", "libcurl, a bare loop"
LARGE = 1 << 30
# kind: title, path at the origin, who takes part
ROWS = {
    "sequential": ("small GETs, one after the other", "/miss/small/0", (LARDER, FOUNDATION, CURL)),
    "concurrent": ("small GETs, 64 in flight", "/miss/small/0", (LARDER, FOUNDATION, CURL)),
    "cached": ("small GETs answered from the cache", "/hit/small/0", (LARDER,)),
    "memory": ("1 GiB into one Data", "/miss/large/0", (LARDER, FOUNDATION)),
    "file": ("1 GiB into a file", "/miss/large/0", (LARDER, FOUNDATION)),
    "slow": ("1 GiB to a delegate that takes 200 µs a piece", "/miss/large/0",
             (LARDER, FOUNDATION)),
}
# What was set out for: row, against whom, the least ratio of rates.
GOALS = [("sequential", FOUNDATION, 3.0), ("concurrent", FOUNDATION, 4.0),
         ("sequential", CURL, 0.6), ("concurrent", CURL, 0.6)]
CACHE_GOAL, MEMORY_GOAL = 10.0, 64 << 10
# Turns of a row of small GETs in each round: they are short, and swing most.
TURNS = 4


class Origin(servers.Origin):
    """The bench's origin with the sizes that this one needs."""

    sizes = {"small": 100}

    def command(self):
        command = super().command()
        # A hole in a file: nothing has to be written, and the disk is not what is measured.
        with open(self.directory / "tree" / "large", "wb") as file:
            file.truncate(LARGE)
        configuration = pathlib.Path(command[-1])
        configuration.write_text(
            configuration.read_text().replace("([0-9]+[km])", "(small|large)"))
        return command


def say(text):
    print(text, file=sys.stderr, flush=True)


def arguments(given):
    parser = argparse.ArgumentParser(prog="bench url-loading", description=__doc__.split("\n")[0])
    parser.add_argument("--rows", default=",".join(ROWS), help="(default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="(%(default)s)")
    parser.add_argument("--count", type=int, default=20_000, help="small GETs a run (%(default)s)")
    parser.add_argument("--binary", help="the URLLoadingBench to run (default: a release build)")
    parser.add_argument("--no-foundation", action="store_true")
    parser.add_argument("--json", metavar="FILE", help="write the figures there, too")
    options = parser.parse_args(given)
    if not (1 <= options.rounds <= 50 and 100 <= options.count <= 1_000_000):
        parser.error("1 to 50 rounds of 100 to 1000000 requests, please")
    unknown = [row for row in options.rows.split(",") if row not in ROWS]
    if unknown:
        parser.error(f"no row is called {unknown[0]}; there are: {', '.join(ROWS)}")
    return options


def build(options, directory):
    """The programs to run, by who they stand for."""
    programs = {}
    if options.binary:
        programs[LARDER] = [options.binary]
    else:
        say("bench: building URLLoadingBench (release)")
        command = ["swift", "build", "--package-path", ROOT, "-c", "release"]
        subprocess.run(command + ["--product", "URLLoadingBench"], check=True, stdout=sys.stderr)
        shown = subprocess.run(command + ["--show-bin-path"], check=True, capture_output=True,
                               text=True)
        programs[LARDER] = [f"{shown.stdout.strip()}/URLLoadingBench"]
    if not options.no_foundation:
        say("bench: building the same program with FoundationNetworking")
        sources = sorted((ROOT / "Tests" / "URLLoadingBench").glob("*.swift"))
        twin = directory / "foundation-bench"
        subprocess.run(
            ["swiftc", "-O", "-swift-version", "5", "-parse-as-library", "-suppress-warnings",
             "-D", "FOUNDATION_NETWORKING", "-o", twin, *sources], check=True)
        programs[FOUNDATION] = [twin]
    loop = directory / "multi-loop"
    subprocess.run(["cc", "-O2", HERE / "multi-loop.c", "-lcurl", "-o", loop], check=True)
    programs[CURL] = [loop]
    return programs


def command(name, program, row, url, options):
    count = options.count if row in ("sequential", "concurrent", "cached") else 1
    if name == CURL:
        return [*program, url, str(count), "64" if row == "concurrent" else "1"], count
    if name == FOUNDATION and count > 1:
        # It is slower by an order of magnitude: fewer are enough, and the round stays short.
        count = max(100, count // 5)
    if row == "cached":
        count *= 5
    return [*program, row, url, str(count)], count


def once(name, program, row, origin, options):
    url = f"http://127.0.0.1:{origin.port}{ROWS[row][1]}"
    line, count = command(name, program, row, url, options)
    done = subprocess.run(line, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        say(f"bench: {row}: {name} is left out of this round: {done.stderr.strip()[:300]}")
        return None
    figures = json.loads(done.stdout)
    if figures["bytes"] not in (100 * count, LARGE):
        say(f"bench: {row}: {name} is left out of this round: {figures['bytes']} bytes came")
        return None
    figures["rate"] = count / figures["seconds"]
    figures["cpu_each"] = figures["cpu"] / count * 1e6
    return figures


def measure(options, programs, origin):
    """Every run, by row: for each turn, the figures by who they are of."""
    results = {}
    for turn in range(options.rounds):
        for row in options.rows.split(","):
            for _ in range(TURNS if row in ("sequential", "concurrent") else 1):
                taken = {}
                for name in ROWS[row][2]:
                    if name not in programs:
                        continue
                    figures = once(name, programs[name], row, origin, options)
                    if figures is None:
                        continue
                    say(f"  round {turn + 1}  {row:11} {name:22} {figures['seconds']:8.2f} s "
                        f"{figures['rate']:10.1f}/s")
                    taken[name] = figures
                results.setdefault(row, []).append(taken)
    return results


def medians(results):
    """By row and name."""
    found = {}
    for row, turns in results.items():
        for name in ROWS[row][2]:
            runs = [turn[name] for turn in turns if name in turn]
            if runs:
                found.setdefault(row, {})[name] = {
                    key: statistics.median(run.get(key, 0) for run in runs) for key in runs[0]}
    return found


def paired(turns, other):
    """The library's rate against another's of the same turn, as the median; None without any."""
    ratios = [turn[LARDER]["rate"] / turn[other]["rate"] for turn in turns
              if LARDER in turn and other in turn]
    return statistics.median(ratios) if ratios else None


def table(row, found):
    small = row in ("sequential", "concurrent", "cached")
    head = ("requests/s | CPU µs/request" if small else "MB/s | peak MiB | beyond the program's own")
    lines = [f"**{ROWS[row][0]}**", "", f"| | {head} |", "| --- " + "| ---: " * head.count("|")
             + "| ---: |"]
    for name, f in found.items():
        if small:
            lines.append(f"| {name} | {f['rate']:,.0f} | {f['cpu_each']:.1f} |")
        else:
            lines.append(f"| {name} | {f['bytes'] / f['seconds'] / 1e6:,.0f} | "
                         f"{f['peak'] / 1024:,.0f} | {(f['peak'] - f['before']) / 1024:,.0f} |")
    return "\n".join(lines)


def goals(results, turns):
    """What was set out for, and what came of it."""
    for row, other, least in GOALS:
        ratio = paired(turns.get(row, []), other)
        if ratio is not None:
            yield f"{row}: {ratio:.2f} × {other} (at least {least})", ratio >= least
    if "cached" in results and LARDER in results.get("sequential", {}):
        ratio = results["cached"][LARDER]["rate"] / results["sequential"][LARDER]["rate"]
        yield f"cached: {ratio:.1f} × a GET from the network (at least {CACHE_GOAL})", \
            ratio >= CACHE_GOAL
    for row, own in (("memory", LARGE >> 10), ("file", 0), ("slow", 0)):
        figures = results.get(row, {}).get(LARDER)
        if figures:
            beyond = figures["peak"] - figures["before"] - own
            yield f"{row}: {beyond / 1024:.0f} MiB beyond the body asked for (under 64)", \
                beyond < MEMORY_GOAL


def main(given):
    options = arguments(given)
    for tool in ("nginx", "cc", "swiftc"):
        if servers.find(tool) is None:
            raise SystemExit(f"bench: {tool} not found; scripts/install-dependencies bench installs "
                             "what the bench needs")
    with tempfile.TemporaryDirectory(prefix="larder-bench.") as name:
        directory = pathlib.Path(name)
        directory.chmod(0o755)
        # Nothing is pinned: programs and origin share what the machine has.
        cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))
        origin = Origin(directory, 0, cores)
        try:
            programs = build(options, directory)
            origin.start()
            turns = measure(options, programs, origin)
        except servers.Unavailable as reason:
            raise SystemExit(f"bench: the origin did not start: {reason}") from None
        except subprocess.CalledProcessError as reason:
            raise SystemExit(f"bench: {reason}") from None
        finally:
            origin.stop()
    results = medians(turns)
    for row, found in results.items():
        print(table(row, found) + "\n")
    for line, reached in goals(results, turns):
        print(f"{'reached' if reached else 'MISSED'}  {line}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=2) + "\n")
    return 0 if results else 1
