/*
 * The floor of tunnels: one epoll loop that reads a CONNECT to a port of 127.0.0.1 and then moves
 * bytes both ways by splice(2), through a pipe each, without their ever coming into this process.
 * It checks no rule, keeps no log and no time.
 *
 *     relay PORT
 */
#define _GNU_SOURCE
#include "loopback.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>

enum { MAX_EVENTS = 64, MAX_DESCRIPTORS = 4096, PIPE_BYTES = 1 << 20 };

struct side {
    int peer;       /* where its bytes go; -1: its head has not come yet */
    int pipe[2];    /* what was read of it and is not written yet */
    size_t waiting; /* bytes in there */
};

static struct side sides[MAX_DESCRIPTORS];

static int add(int poller, int fd)
{
    if (fd < 0 || fd >= MAX_DESCRIPTORS) return -1;
    struct side *s = &sides[fd];
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.fd = fd};
    s->peer = -1;
    s->waiting = 0;
    if (pipe2(s->pipe, O_NONBLOCK | O_CLOEXEC) != 0) die("pipe2");
    /* Who is not root may get smaller ones. */
    if (fcntl(s->pipe[0], F_SETPIPE_SZ, PIPE_BYTES) < 0 && errno != EPERM) die("F_SETPIPE_SZ");
    return epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

static void end(int fd)
{
    struct side *s = &sides[fd];
    int peer = s->peer;
    close(s->pipe[0]);
    close(s->pipe[1]);
    close(fd);
    if (peer < 0) return;
    close(sides[peer].pipe[0]);
    close(sides[peer].pipe[1]);
    close(peer);
}

/* Moves what came from `fd` until there is no more or no more room; 0: it has ended. */
static int move(int fd)
{
    struct side *s = &sides[fd];
    for (;;) {
        ssize_t in = splice(fd, NULL, s->pipe[1], NULL, PIPE_BYTES, SPLICE_F_NONBLOCK);
        if (in > 0) s->waiting += (size_t)in;
        if (in == 0 && s->waiting == 0) return 0;
        if (in < 0 && errno != EAGAIN && errno != EINTR) return 0;
        if (s->waiting == 0) return 1;
        ssize_t out = splice(s->pipe[0], NULL, s->peer, NULL, s->waiting, SPLICE_F_NONBLOCK);
        if (out < 0) return errno == EAGAIN || errno == EINTR;
        s->waiting -= (size_t)out;
    }
}

/* Reads a head that comes in one piece, as the load sends it, and connects. */
static int begin(int poller, int client)
{
    static const char answer[] = "HTTP/1.1 200 OK\r\n\r\n";
    char head[2048];
    int port = 0;
    ssize_t n = recv(client, head, sizeof head - 1, 0);
    if (n < 0 && errno == EAGAIN) return 1;
    if (n <= 0) return 0;
    head[n] = 0;
    if (sscanf(head, "CONNECT 127.0.0.1:%d ", &port) != 1 || strstr(head, "\r\n\r\n") == NULL)
        return 0;
    struct sockaddr_in address = loopback(port);
    int origin = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (origin < 0 || connect(origin, (struct sockaddr *)&address, sizeof address) != 0) return 0;
    if (fcntl(origin, F_SETFL, O_NONBLOCK) != 0 || add(poller, origin) != 0) return 0;
    sides[client].peer = origin;
    sides[origin].peer = client;
    return send(client, answer, sizeof answer - 1, MSG_NOSIGNAL) == sizeof answer - 1;
}

static void serve(int poller, int fd)
{
    if (sides[fd].peer < 0) {
        if (!begin(poller, fd)) end(fd);
        return;
    }
    /* Either there is more to read or more room, which is room for what its peer sends. */
    if (!move(fd) || !move(sides[fd].peer)) end(fd);
}

int main(int count, char **arguments)
{
    if (count != 2) {
        fprintf(stderr, "usage: relay PORT\n");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* splice(2) has no flag that keeps it away. */
    int poller = new_poller(), listener = listen_on(atoi(arguments[1]), poller);
    for (;;) {
        struct epoll_event events[MAX_EVENTS];
        int n = await(poller, events, MAX_EVENTS, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd != listener) {
                if (fcntl(fd, F_GETFD) >= 0) serve(poller, fd); /* Not ended in this turn. */
                continue;
            }
            int client = accepted(listener);
            if (client >= 0 && add(poller, client) != 0) close(client);
        }
    }
}
