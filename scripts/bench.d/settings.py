"""What the servers of scripts/bench are told beyond what all rows have in common.

A setting is a group of rows that one start of the servers is good for. Each server fills what it
understands of it into its template.
"""

import collections

# `memory`: MiB of each memory tier; None is what a server has by itself, 0 none at all.
# `log`: the access log goes to a file. `workers`: event loops (None: what a server has by itself).
# `connections`: how many clients at a time.
Setting = collections.namedtuple("Setting", "name memory log workers connections")

USUAL = Setting("usual", memory=512, log=False, workers=None, connections=4096)
# Every request is written down, each server its cheapest way into a file.
LOGGED = USUAL._replace(name="logged", log=True)
# Nothing is kept in memory but by the kernel, whose pages of the files stay warm.
DISK = USUAL._replace(name="disk", memory=0)
# So many loops, on as many cores.
CORE = USUAL._replace(name="core", workers=1)
CORES = USUAL._replace(name="cores", workers=2)
CROWDED = USUAL._replace(name="crowded", connections=12_000)
# Tunnels to the one port that bulk comes from.
TUNNELS = USUAL._replace(name="tunnels")
# As a server comes: what it takes before the first request.
EMPTY = USUAL._replace(name="empty", memory=None)
