"""The rounds of scripts/bench: who takes part in a row, what is stored before, one run each."""

import subprocess
import sys
import time

import cores
import latency
import measure
import residence
import servers
import settings
import tunnels
from rows import ONCE

# How one run of a kind of row is made.
ONE_RUN = {"hit": measure.once, "miss": measure.once, "store": measure.once,
           "tunnel": tunnels.once, "latency": latency.undisturbed,
           "beside": cores.once, "cores": cores.once,
           "idle": residence.idle, "empty": residence.empty}
# Kinds whose objects are in the cache before they are measured.
STORED = ("hit", "latency", "beside", "cores")


def say(text):
    print(text, file=sys.stderr, flush=True)


def applies(server, row):
    """Whether a server, or a class of them, can do what a row asks for."""
    if server.only_rows:
        return row.name in server.only_rows
    if row.kind == "tunnel" or server.only_tunnels:
        return row.kind == "tunnel" and server.makes_tunnels
    if server.answers_only_hits:
        return row.kind == "hit" and not row.setting.log
    if row.kind in ("beside", "cores"):
        return server.has_loops
    return server.stores_on_disk or not (row.kind == "store" or row.setting.memory == 0)


def start_all(options, directory, origin, makers, rows, running):
    """Starts whoever takes part in one of the rows; who cannot is named with the reason."""
    setting = rows[0].setting
    both = f"{options.server_core},{options.load_core}"
    core = both if setting.workers == 2 else options.server_core
    for maker in makers:
        if not any(applies(maker, row) for row in rows):
            continue
        server = maker(directory, origin.port, core, *options.extra.get(maker, []), setting)
        try:
            server.start()
        except (servers.Unavailable, subprocess.CalledProcessError) as reason:
            say(f"bench: {server.name} is left out: {reason}")
            if maker is servers.Larder:
                raise SystemExit("bench: Larder did not start") from None
            continue
        running.append(server)


def fetch(server, row, host, name):
    """Asks for one object and checks what comes."""
    target = f"http://{host}{row.path}{name}"
    status, body = measure.request(server.port, target, host)
    if status != 200 or len(body) != row.size:
        raise measure.Failed(f"{target}: status {status}, {len(body)} bytes")


def warm(server, row, origin):
    """Fetches each object of the working set until all of them are stored."""
    if isinstance(server, servers.Floor):
        server.restart_with(row.size if row.status == 200 else 0)
        return
    host = f"127.0.0.1:{origin.port}"
    if row.kind in ("miss", "store", "idle"):
        fetch(server, row, host, "0" if row.kind == "idle" else "warm")
    if row.kind not in STORED:
        return
    for _ in range(20):
        before = measure.origin_requests(origin.port)
        for index in range(row.count):
            fetch(server, row, host, index)
        if measure.origin_requests(origin.port) == before:
            break
        time.sleep(0.2)  # Who stores on disk does so a little later.
    else:
        raise measure.Failed("objects are not stored, however often they are fetched")
    status, _ = measure.request(server.port, f"http://{host}{row.path}0", host, row.fields)
    if status != row.status:
        raise measure.Failed(f"status {status} in place of {row.status}")


def run_rounds(options, origin, rows, running, results):
    """All rounds of the rows of one setting, servers in turn within each row."""
    nonce, warmed = int(time.time()), set()
    for turn in range(options.rounds):
        for row in rows:
            if turn > 0 and row.kind in ONCE:
                continue
            for server in [server for server in running if applies(type(server), row)]:
                nonce += 1
                prefix = f"{row.path}{nonce}-" if row.count == 0 else row.path
                try:
                    # A floor has one body at a time; the others keep what they have.
                    if (server, row.name) not in warmed or server.answers_only_hits:
                        warm(server, row, origin)
                        warmed.add((server, row.name))
                    run = ONE_RUN[row.kind](server, row, origin, options, prefix)
                except (measure.Failed, OSError, subprocess.SubprocessError) as reason:
                    say(f"bench: {row.name}: {server.name} is left out of this round: {reason}")
                    continue
                tell(turn, row, server, run)
                results.setdefault(row.name, {}).setdefault(server.name, []).append(run)


def tell(turn, row, server, run):
    figures = "  ".join(f"{name} {value:.4g}" for name, value in run.items())
    say(f"  round {turn + 1}  {row.name:10} {server.name:15} {figures}")


def bench(options, directory, makers, origins):
    """{row: {server: [run]}}, setting by setting, so that few servers run at a time.

    `origins` has the one of tunnels, and by None that of all other rows.
    """
    running, results = [], {}
    try:
        for setting in dict.fromkeys(row.setting for row in options.rows):
            rows = [row for row in options.rows if row.setting == setting]
            origin = origins.get(setting, origins[None])
            if origin.process is None:
                origin.start()
            start_all(options, directory, origin, makers, rows, running)
            run_rounds(options, origin, rows, running, results)
            while running:
                running.pop().stop()
    finally:
        for server in running + list(origins.values()):
            server.stop()
    return results


def origins_for(options, directory):
    return {None: servers.Origin(directory, 0, options.load_core),
            settings.TUNNELS: tunnels.Source(directory, 0, options.load_core)}
