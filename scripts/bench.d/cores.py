"""Hits on two cores against one, on a machine that has no third one for the load.

The load runs on both cores in both runs, so answers a second would tell how it shares them with the
server. What is compared is CPU time: what a request costs a server that has one loop on one core,
against what the busier of two threads spends on one. Two cores with nothing else to do could answer
so many times as much: 2.0 if a request costs the same and both threads do half, less by what
sharing costs (locks, lines of cache, the system's work between cores) and by how unevenly clients
are spread.
"""

import measure


def once(server, row, origin, options, prefix):
    before_origin, before = measure.origin_requests(origin.port), thread_seconds(server)
    run = measure.wrk(f"{options.server_core},{options.load_core}", server.port, origin.port, row,
                      prefix, options.connections, options.duration, threads=2)
    spent = [seconds - before.get(thread, 0) for thread, seconds in thread_seconds(server).items()]
    asked = measure.origin_requests(origin.port) - before_origin
    total = sum(spent)
    # Many threads, none of them bound to a core, are spread by the system.
    busier = max(max(spent), total / 2)
    return {
        "cpu": total * 1e6 / run["requests"], "busier": busier * 1e6 / run["requests"],
        "share": busier / total if total else 0, "origin": asked / run["requests"],
        "rate": run["requests"] * 1e6 / run["microseconds"],
    }


def thread_seconds(server):
    """CPU time by (process, thread)."""
    return {(number, thread): measure.seconds_of(f"{number}/task/{thread}")
            for number in measure.processes(server) for thread in measure.threads(number)}


def compared(figures, alone):
    """A run on two cores with the summary of those on one."""
    return {"speedup": alone["cpu"] / figures["busier"] if figures["busier"] else 0,
            "alone": alone["cpu"], **figures}
