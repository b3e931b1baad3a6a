"""What a GiB costs that goes through a tunnel, from the far end to the client."""

import subprocess

import measure
import process

TUNNELS = 8


class Source(process.Server):
    """What is at the far end; it shares the load generator's core."""

    name = "source"

    def command(self):
        return [process.compiled("bulk.c", self.directory), "source", self.port]


def once(server, row, source, options, prefix):
    """One run of a number of bytes; how long it takes depends on who carries them."""
    del prefix
    mebibytes = options.duration * row.size // TUNNELS >> 20
    command = ["taskset", "-c", options.load_core, process.compiled("bulk.c", source.directory),
               "load", server.port, source.port, TUNNELS, mebibytes,
               "direct" if server.relays_blindly else "connect"]
    before = measure.cpu_seconds(server)
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                            timeout=120)
    cpu = measure.cpu_seconds(server) - before
    run = measure.load_line_of(result)
    if run["bytes"] != mebibytes * TUNNELS << 20:
        raise measure.Failed(f"{run['bytes']} bytes came")
    gibibytes = run["bytes"] / (1 << 30)
    return {
        "cpu": cpu * 1e3 / gibibytes, "rate": gibibytes * 1e6 / run["microseconds"],
        "core": cpu * 1e6 / run["microseconds"],
        "resident": measure.resident_mebibytes(server),
    }
