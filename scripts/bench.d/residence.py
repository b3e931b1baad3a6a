"""What servers keep in memory: when nobody has come yet, and for connections that are idle.

What the kernel holds for a socket is no server's doing and is not counted.
"""

import resource
import socket
import time

import measure


def empty(server, row, origin, options, prefix):
    """The server as it has started."""
    del row, origin, options, prefix
    settled(server)
    return {"resident": measure.resident_mebibytes(server, "Rss"),
            "own": measure.resident_mebibytes(server)}


def idle(server, row, origin, options, prefix):
    """What each of many connections costs that had a request answered, and is kept open."""
    del options, prefix
    count = min(row.count, most_clients())
    host = f"127.0.0.1:{origin.port}"
    request = f"GET http://{host}{row.path}0 HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    clients = []
    try:
        for _ in range(10):  # Whatever is made for the first few is not theirs.
            clients.append(answered_client(server.port, request, row.size))
        settled(server)
        before = measure.resident_mebibytes(server)
        for _ in range(count):
            clients.append(answered_client(server.port, request, row.size))
        settled(server)
        after = measure.resident_mebibytes(server)
        if any(is_closed(client) for client in clients):
            raise measure.Failed("the server closed idle connections")
    finally:
        for client in clients:
            client.close()
    return {"each": (after - before) * 1024 / count, "count": count, "resident": after}


def most_clients():
    """How many there may be: a proxy can keep a descriptor ready for the origin of each."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return max(1, most // 2 - 300) if most != resource.RLIM_INFINITY else 1 << 20


def answered_client(port, request, size):
    client = socket.create_connection(("127.0.0.1", port), 10)
    client.sendall(request)
    had = b""
    while b"\r\n\r\n" not in had or len(had) < had.index(b"\r\n\r\n") + 4 + size:
        piece = client.recv(65536)
        if not piece:
            raise measure.Failed("a connection ended before its answer")
        had += piece
    return client


def is_closed(client):
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False


def settled(server):
    """Waits, for a few seconds at most, until the server takes no time any more."""
    for _ in range(10):
        before = measure.cpu_seconds(server)
        time.sleep(0.4)
        if measure.cpu_seconds(server) - before < 0.02:
            return
