"""What a server process tree cost while wrk loaded it."""

import http.client
import json
import os
import pathlib
import re
import statistics
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


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
        process = waiting.pop()
        found.append(process)
        waiting += children.get(process, [])
    return found


def stat_fields(process):
    """The fields of /proc/PID/stat from the state on (the command may hold any character)."""
    try:
        text = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    return text[text.rindex(")") + 2:].split()


def cpu_seconds(root):
    """User and system time of the tree, with all threads and children that were waited for."""
    ticks = 0
    for process in process_tree(root):
        fields = stat_fields(process)
        if fields:
            ticks += sum(int(field) for field in fields[11:15])
    return ticks / TICKS_PER_SECOND


def resident_mebibytes(root):
    """Proportional set size of the tree: pages shared between processes count once."""
    total = 0
    for process in process_tree(root):
        try:
            text = pathlib.Path(f"/proc/{process}/smaps_rollup").read_text()
        except OSError:
            continue
        match = re.search(r"^Pss:\s+(\d+) kB", text, re.M)
        total += int(match.group(1)) if match else 0
    return total / 1024


def request(port, target, host):
    """One request in absolute form: (status, body)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.putrequest("GET", target, skip_host=True)
        connection.putheader("Host", host)
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


def load(core, port, origin, prefix, count, connections, seconds):
    """Runs wrk; what its script printed."""
    command = [
        "taskset", "-c", str(core), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s",
        "--timeout", "10s", "-s", str(HERE / "load.lua"), f"http://127.0.0.1:{port}/", "--",
        f"http://127.0.0.1:{origin}", prefix, str(count)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60)
    lines = [line for line in result.stdout.splitlines() if line.startswith("LOAD ")]
    if result.returncode != 0 or not lines:
        raise Failed(f"wrk failed: {result.stderr.strip() or result.stdout.strip()}")
    return json.loads(lines[0][5:])


def once(server, row, origin, options, prefix):
    """One run of one row against one server."""
    before_origin, before_cpu = origin_requests(origin.port), cpu_seconds(server.process.pid)
    run = load(options.load_core, server.port, origin.port, prefix, row.count,
               options.connections, options.duration)
    cpu = cpu_seconds(server.process.pid) - before_cpu
    asked = origin_requests(origin.port) - before_origin
    if run["requests"] == 0 or run["failed_statuses"] or run["failed_sockets"]:
        raise Failed(f"{run['requests']} answers, {run['failed_statuses']} with a wrong status, "
                     f"{run['failed_sockets']} connections failed")
    return {
        "cpu": cpu * 1e6 / run["requests"],
        "rate": run["requests"] * 1e6 / run["microseconds"],
        "p99": run["p99"] / 1000,
        "resident": resident_mebibytes(server.process.pid),
        "core": cpu * 1e6 / run["microseconds"],
        "origin": asked / run["requests"],
    }


def summary(runs):
    """Medians of the rounds, and how far the CPU cost spread around its own."""
    costs = [run["cpu"] for run in runs]
    result = {name: statistics.median(run[name] for run in runs) for name in runs[0]}
    result["spread"] = (max(costs) - min(costs)) / 2 / result["cpu"] if result["cpu"] else 0
    result["rounds"] = len(runs)
    return result
