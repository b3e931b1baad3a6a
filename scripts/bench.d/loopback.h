/*
 * What the programs of this folder share: sockets on 127.0.0.1, one epoll loop, and an end with a
 * word of why. They are measuring tools: what fails ends them.
 *
 * A program that includes this has defined _GNU_SOURCE before.
 */
#ifndef LARDER_BENCH_LOOPBACK_H
#define LARDER_BENCH_LOOPBACK_H

#include <errno.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

_Noreturn static inline void die(const char *what)
{
    perror(what);
    exit(1);
}

static inline struct sockaddr_in loopback(int port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((unsigned short)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    return address;
}

/* A connection that waits where it has to. */
static inline int connected_to(int port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) die("socket");
    if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0) die("connect");
    return fd;
}

static inline int new_poller(void)
{
    int poller = epoll_create1(EPOLL_CLOEXEC);
    if (poller < 0) die("epoll_create1");
    return poller;
}

static inline void watch(int poller, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
}

/* Listens on a port and has the poller tell of those who come. */
static inline int listen_on(int port, int poller)
{
    int one = 1;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = loopback(port);
    if (listener < 0) die("socket");
    if (setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) != 0) die("setsockopt");
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0) die("bind");
    if (listen(listener, 1024) != 0) die("listen");
    watch(poller, listener, EPOLLIN);
    return listener;
}

/* One that has come, or -1; it never waits. */
static inline int accepted(int listener)
{
    return accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

/* Waits for events, for ever where `milliseconds` is -1; a signal counts as none. */
static inline int await(int poller, struct epoll_event *events, int most, int milliseconds)
{
    int n = epoll_wait(poller, events, most, milliseconds);
    if (n < 0 && errno != EINTR) die("epoll_wait");
    return n;
}

#endif
