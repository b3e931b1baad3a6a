"""The rows of scripts/bench: what is asked for, under which setting, and what is to be reached."""

import collections

import settings

# `count` objects make the working set; 0 means that every request is for a new one. `fields` go
# with each request, `status` is what must come.
# No two requests of a row that `varies` have the same bytes.
# `needs` is a row whose figures this one's are made of, or compared with.
Row = collections.namedtuple(
    "Row", "name title path size count kind setting fields status goals needs varies",
    defaults=[settings.USUAL, {}, 200, (), None, False])
# A figure of Larder's is to be at most (for `at_least`: no less than) `factor` times that of
# `server`, or `factor` itself where there is none. BEST stands for the best peer of the row; `row`
# for another row that the other's figure is taken from.
Goal = collections.namedtuple("Goal", "factor server row at_least", defaults=[None, None, False])

FLOOR, LARDER, BEST = "bare C loop", "Larder", "best peer"
# The floors of the rows in which an origin is asked, and in which what it sends is stored.
FETCH_FLOOR, STORE_FLOOR = "bare libcurl loop", "bare libcurl and LMDB loop"
FLOORS = (FLOOR, FETCH_FLOOR, STORE_FLOOR)
HAPROXY, NGINX, TRAFFIC_SERVER = "HAProxy", "nginx", "Traffic Server"

# The origin's files have this time of change, so that their entity tags are known.
CHANGED = 0x5f000000


def entity_tag(size):
    """As nginx makes it of a file's time and size."""
    return f'"{CHANGED:x}-{size:x}"'


ROWS = [
    Row("hit-1k", "hit, 1 KiB (1,000 objects)", "/hit/1k/", 1 << 10, 1000, "hit",
        goals=(Goal(1.0, HAPROXY), Goal(1.5, FLOOR))),
    Row("hit-1k-varied", "hit, 1 KiB (1,000 objects), each request numbered", "/hit/1k/", 1 << 10,
        1000, "hit", varies=True),
    Row("hit-100k", "hit, 100 KiB (200 objects)", "/hit/100k/", 100 << 10, 200, "hit",
        goals=(Goal(0.85, BEST),)),
    Row("hit-1m", "hit, 1 MiB (50 objects)", "/hit/1m/", 1 << 20, 50, "hit",
        goals=(Goal(0.7, BEST),)),
    Row("hit-304", "conditional request answered 304 (1,000 objects)", "/hit/1k/", 1 << 10, 1000,
        "hit", fields={"If-None-Match": entity_tag(1 << 10)}, status=304,
        goals=(Goal(1.0, HAPROXY, "hit-1k"),), needs="hit-1k"),
    Row("miss-1k", "miss, 1 KiB, not storable", "/miss/1k/", 1 << 10, 1000, "miss",
        goals=(Goal(1.0, TRAFFIC_SERVER), Goal(1.0, NGINX))),
    Row("miss-100k", "miss, 100 KiB, streamed", "/miss/100k/", 100 << 10, 200, "miss",
        goals=(Goal(1.0, TRAFFIC_SERVER),)),
    Row("miss-1m", "miss, 1 MiB, streamed", "/miss/1m/", 1 << 20, 50, "miss",
        goals=(Goal(1.0, TRAFFIC_SERVER),)),
    Row("store-4k", "miss, 4 KiB, stored on disk", "/store/4k/", 4 << 10, 0, "store",
        goals=(Goal(1.2, TRAFFIC_SERVER), Goal(0.5, NGINX))),
    Row("hit-1k-log", "hit, 1 KiB (1,000 objects), access log in a file", "/hit/1k/", 1 << 10,
        1000, "hit", setting=settings.LOGGED, goals=(Goal(1.0, HAPROXY),)),
    Row("disk-4k", "hit from disk, warm pages, 4 KiB (1,000 objects)", "/hit/4k/", 4 << 10, 1000,
        "hit", setting=settings.DISK, goals=(Goal(1.0, BEST),)),
    Row("disk-1m", "hit from disk, warm pages, 1 MiB (50 objects)", "/hit/1m/", 1 << 20, 50, "hit",
        setting=settings.DISK, goals=(Goal(1.0, BEST),)),
    # `size` is what is carried for each second of --duration.
    Row("tunnel", "CONNECT, bulk", None, 2 << 30, 1, "tunnel", setting=settings.TUNNELS,
        goals=(Goal(1.0, HAPROXY),)),
    Row("p99", "latency of hits of 1 KiB at half of saturation", "/hit/1k/", 1 << 10, 1000,
        "latency", goals=(Goal(1.0, BEST),)),
    Row("one-core", "hits of 1 KiB on one core, the load on both", "/hit/1k/", 1 << 10, 1000,
        "beside", setting=settings.CORE),
    Row("cores", "hits of 1 KiB on two cores against one", "/hit/1k/", 1 << 10, 1000, "cores",
        setting=settings.CORES, goals=(Goal(1.8, at_least=True),), needs="one-core"),
    # `count` is that of the connections.
    Row("idle", "idle keep-alive connections, each after one hit of 1 KiB", "/hit/1k/", 1 << 10,
        10_000, "idle", setting=settings.CROWDED, goals=(Goal(8.0),)),
    Row("empty", "resident memory, empty, as each server comes", None, 0, 1, "empty",
        setting=settings.EMPTY, goals=(Goal(40.0),)),
]
# A second round in the same process would tell of what the first one left.
ONCE = ("idle", "empty")
