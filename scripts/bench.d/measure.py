"""What a server process tree cost while wrk loaded it."""

import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess
import time

import process

HERE = pathlib.Path(__file__).resolve().parent
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
# Seconds after which what a server had gathered for its disk has been written.
SETTLING = 0.3


class Failed(Exception):
    """A measurement that would not mean anything; the message says why."""


def process_tree(root):
    """The process `root` and all that descend from it, from /proc (proc(5))."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = stat_fields(entry)
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry))
    found, waiting = [], [root]
    while waiting:
        number = waiting.pop()
        found.append(number)
        waiting += children.get(number, [])
    return found


def stat_fields(number):
    """The fields of /proc/PID/stat from the state on (the command may hold any character)."""
    try:
        text = pathlib.Path(f"/proc/{number}/stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2:].split()


def processes(server):
    return [number for root in server.roots() for number in process_tree(root)]


def cpu_seconds(server):
    """User and system time of its trees, with all threads and children that were waited for."""
    return sum(seconds_of(number, children=True) for number in processes(server))


def seconds_of(number, children=False):
    """User and system time of a process, or of a thread ("PID/task/TID"); 0 when it is gone."""
    fields = stat_fields(number)
    if not fields:
        return 0
    return sum(int(field) for field in fields[11:15 if children else 13]) / TICKS_PER_SECOND


def threads(number):
    try:
        return os.listdir(f"/proc/{number}/task")
    except OSError:
        return []


def resident_mebibytes(server, kind="Pss"):
    """Proportional set size of its trees: pages shared between processes count once."""
    total = 0
    for number in processes(server):
        try:
            text = pathlib.Path(f"/proc/{number}/smaps_rollup").read_text()
        except OSError:
            continue
        match = re.search(rf"^{kind}:\s+(\d+) kB", text, re.M)
        total += int(match.group(1)) if match else 0
    return total / 1024


def request(port, target, host, fields=None):
    """One request in absolute form: (status, body)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.putrequest("GET", target, skip_host=True)
        connection.putheader("Host", host)
        for name, value in (fields or {}).items():
            connection.putheader(name, value)
        connection.endheaders()
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def origin_requests(port):
    """How many requests the origin has answered, those for this number left out."""
    _, text = request(port, "/requests", "origin")
    origin_requests.asked += 1
    return int(text.split(b"\n")[2].split()[2]) - origin_requests.asked


origin_requests.asked = 0


def wrk(core, port, origin, row, prefix, connections, seconds, threads=1):
    """As many requests as there can be; what its script printed."""
    return load_line(
        ["taskset", "-c", str(core), "wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s",
         "--timeout", "10s", "-s", HERE / "load.lua", f"http://127.0.0.1:{port}/", "--",
         f"http://127.0.0.1:{origin}", prefix, row.count] + ["varied"] * row.varies,
        seconds, row)


def paced(binary, core, port, origin, row, connections, seconds, rate):
    """`rate` requests a second, 0 for as many as there can be; what it printed."""
    fields = [word for field in row.fields.items() for word in field]
    return load_line(
        ["taskset", "-c", str(core), binary, port, f"http://127.0.0.1:{origin}", row.path,
         row.count, connections, seconds, rate] + fields, seconds, row)


def load_line(command, seconds, row):
    """Runs what makes load, and takes the line with the figures from all that it says."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=seconds + 60)
    return judged(load_line_of(result), row)


def load_line_of(result):
    lines = [line for line in result.stdout.splitlines() if line.startswith("LOAD ")]
    if result.returncode != 0 or not lines:
        raise Failed(f"no load: {result.stderr.strip() or result.stdout.strip()}")
    return json.loads(lines[0][5:])


def judged(run, row):
    """The run, where all that came is what was asked for."""
    if run["requests"] == 0 or run["failed_statuses"] or run["failed_sockets"]:
        raise Failed(f"{run['requests']} answers, {run['failed_statuses']} with a wrong status, "
                     f"{run['failed_sockets']} connections failed")
    if row.status == 304 and run["bytes"] / run["requests"] > row.size:
        raise Failed("the answers had bodies")
    return run


def once(server, row, origin, options, prefix):
    """One run of one row against one server."""
    before_origin, before_cpu = origin_requests(origin.port), cpu_seconds(server)
    if row.status == 304:
        # wrk waits for the body whose length such an answer may tell.
        run = paced(process.compiled("paced.c", origin.directory), options.load_core, server.port,
                    origin.port, row, options.connections, options.duration, 0)
    else:
        run = wrk(options.load_core, server.port, origin.port, row, prefix, options.connections,
                  options.duration)
    if row.kind == "store":
        # What was received last is written still; each server has its due.
        time.sleep(SETTLING)
    cpu = cpu_seconds(server) - before_cpu
    asked = origin_requests(origin.port) - before_origin
    return {
        "cpu": cpu * 1e6 / run["requests"],
        "rate": run["requests"] * 1e6 / run["microseconds"],
        "p99": run["p99"] / 1000,
        "resident": resident_mebibytes(server),
        "core": cpu * 1e6 / run["microseconds"],
        "origin": asked / run["requests"],
    }


def summary(runs, cost="cpu"):
    """Medians of the rounds, and how far the cost spread around its own."""
    costs = [run[cost] for run in runs]
    result = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    result["spread"] = (max(costs) - min(costs)) / 2 / result[cost] if result[cost] else 0
    result["rounds"] = len(runs)
    return result
