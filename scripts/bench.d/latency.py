"""How long hits take at half of what a server can answer at most.

Each server is loaded with half of its own most: at a rate that is the same for all, a slow one is
nearly full while a fast one is nearly idle, and the figures would tell of the rate.

Server and load run under a real-time policy where the system allows it (root). Otherwise whatever
else runs on the machine for some milliseconds is what the hundredth percentile tells of: 3 to 7 ms
for every server, in place of 0.15, on a machine that was busy by a few percent.
"""

import os

import measure
import process


def policy(server, kind, priority):
    """Puts all threads of a server, and what this process starts, under a policy."""
    threads = [int(thread) for number in measure.processes(server)
               for thread in measure.threads(number)]
    for thread in threads + [0]:
        try:
            os.sched_setscheduler(thread, kind, os.sched_param(priority))
        except ProcessLookupError:
            pass  # It has ended since it was listed.


def undisturbed(server, row, origin, options, prefix):
    """One run, in real time if that is allowed."""
    try:
        try:
            policy(server, os.SCHED_FIFO, 1)
            alone = 1
        except PermissionError:
            alone = 0
        return once(server, row, origin, options, prefix) | {"alone": alone}
    finally:
        policy(server, os.SCHED_OTHER, 0)


def once(server, row, origin, options, prefix):
    """One run: the most there can be, for a second, then half of that."""
    del prefix  # Nothing here is new to the proxy.
    binary = process.compiled("paced.c", origin.directory)

    def load(seconds, rate):
        return measure.paced(binary, options.load_core, server.port, origin.port, row,
                             options.connections, seconds, rate)

    full = load(1, 0)
    most = full["requests"] * 1e6 / full["microseconds"]
    before = measure.cpu_seconds(server)
    half = load(options.duration, int(most / 2))
    cpu = measure.cpu_seconds(server) - before
    rate = half["requests"] * 1e6 / half["microseconds"]
    if rate < most * 0.49:
        raise measure.Failed(f"{rate:.0f} answers a second in place of {most / 2:.0f}")
    return {
        "p99": half["p99"], "p50": half["p50"], "p999": half["p999"], "rate": rate, "most": most,
        "core": cpu * 1e6 / half["microseconds"],
    }
