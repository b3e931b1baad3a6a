/*
 * The floor of a small miss: a plain loop on one core that speaks to origins through libcurl, and
 * of a stored one: the same loop, that puts what came into LMDB.
 *
 * One epoll loop for clients and for one multi handle. It looks for the target of a request and for
 * the empty line that ends its head, has libcurl fetch the target with an easy handle that each
 * client keeps, and writes what came in one piece. There is no parser, no cache, no check of what
 * it is asked for, no time limit and no streaming, all of which costs more. What is stored is the
 * answer as it came by a number made of the target, many to a commit; nothing is ever looked up,
 * found to be too old or too much, or made safe against a damaged page.
 *
 *     pass PORT [DIRECTORY]
 */
#define _GNU_SOURCE
#include "loopback.h"

#include <curl/curl.h>
#include <lmdb.h>
#include <netinet/tcp.h>
#include <string.h>
#include <time.h>

enum { MAX_EVENTS = 256, MAX_DESCRIPTORS = 8192, MOST_BYTES = 32768 };
/* A commit: whichever comes first. */
enum { COMMIT_BYTES = 4 << 20, COMMIT_MILLISECONDS = 100 };

struct client {
    CURL *easy;                  /* made for the first request */
    struct curl_slist *fields;   /* those that are sent with the request under way */
    size_t read, answered, sent; /* bytes of the request, of the answer, and those written of it */
    int fd, fetches;
    char request[MOST_BYTES], answer[MOST_BYTES];
};

static struct client *clients[MAX_DESCRIPTORS];
static CURLM *multi;
static int poller;
static long long due = -1; /* when libcurl wants to be called, in milliseconds; -1: not at all */
static MDB_env *environment; /* NULL: nothing is stored */
static MDB_dbi responses;
static MDB_txn *batch;
static size_t batched;       /* bytes put since the last commit */
static long long begun;      /* when the first of them was */

static void must(int succeeded, const char *what)
{
    if (succeeded) return;
    fprintf(stderr, "pass: %s failed\n", what);
    exit(1);
}

static long long now(void)
{
    struct timespec time;
    must(clock_gettime(CLOCK_MONOTONIC, &time) == 0, "clock_gettime");
    return time.tv_sec * 1000LL + time.tv_nsec / 1000000;
}

static size_t append(char *bytes, size_t size, size_t count, void *context)
{
    struct client *c = context;
    if (size * count > sizeof c->answer - c->answered) return 0;
    memcpy(c->answer + c->answered, bytes, size * count);
    c->answered += size * count;
    return size * count;
}

static int follow_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *known)
{
    struct epoll_event event = {.data.fd = fd};
    (void)easy;
    (void)context;
    if (what == CURL_POLL_REMOVE) {
        (void)epoll_ctl(poller, EPOLL_CTL_DEL, fd, NULL); /* It may be closed by now. */
        return 0;
    }
    if (what & CURL_POLL_IN) event.events |= EPOLLIN;
    if (what & CURL_POLL_OUT) event.events |= EPOLLOUT;
    if (epoll_ctl(poller, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) != 0) die("epoll_ctl");
    if (known == NULL)
        must(curl_multi_assign(multi, fd, &clients) == CURLM_OK, "curl_multi_assign");
    return 0;
}

static int follow_timer(CURLM *handle, long milliseconds, void *context)
{
    (void)handle;
    (void)context;
    due = milliseconds < 0 ? -1 : now() + milliseconds;
    return 0;
}

static void open_store(const char *directory)
{
    MDB_txn *txn;
    must(mdb_env_create(&environment) == 0, "mdb_env_create");
    must(mdb_env_set_mapsize(environment, (size_t)16 << 30) == 0, "mdb_env_set_mapsize");
    must(mdb_env_open(environment, directory, MDB_NOTLS, 0600) == 0, "mdb_env_open");
    must(mdb_txn_begin(environment, NULL, 0, &txn) == 0, "mdb_txn_begin");
    must(mdb_dbi_open(txn, NULL, 0, &responses) == 0, "mdb_dbi_open");
    must(mdb_txn_commit(txn) == 0, "mdb_txn_commit");
}

/* Two hashes of a text by FNV-1a: keys in no order, like those of caches. */
static void number(const char *text, unsigned long long hash[2])
{
    hash[0] = 0xcbf29ce484222325;
    hash[1] = 0x84222325cbf29ce4;
    for (; *text != '\0'; text++)
        for (int i = 0; i < 2; i++) hash[i] = (hash[i] ^ (unsigned char)*text) * 0x100000001b3;
}

static void store(const struct client *c)
{
    unsigned long long hash[2];
    number(c->request + 4, hash);
    MDB_val key = {sizeof hash, hash}, value = {c->answered, (void *)c->answer};
    if (batch == NULL) {
        must(mdb_txn_begin(environment, NULL, 0, &batch) == 0, "mdb_txn_begin");
        begun = now();
    }
    must(mdb_put(batch, responses, &key, &value, 0) == 0, "mdb_put");
    batched += c->answered;
}

static void commit_what_is_due(void)
{
    if (batch == NULL) return;
    if (batched < COMMIT_BYTES && now() - begun < COMMIT_MILLISECONDS) return;
    must(mdb_txn_commit(batch) == 0, "mdb_txn_commit");
    batch = NULL;
    batched = 0;
}

static void prepare(struct client *c)
{
    c->easy = curl_easy_init();
    must(c->easy != NULL, "curl_easy_init");
    must(curl_easy_setopt(c->easy, CURLOPT_WRITEFUNCTION, append) == CURLE_OK &&
             curl_easy_setopt(c->easy, CURLOPT_WRITEDATA, c) == CURLE_OK &&
             curl_easy_setopt(c->easy, CURLOPT_HEADER, 1L) == CURLE_OK &&
             curl_easy_setopt(c->easy, CURLOPT_PRIVATE, c) == CURLE_OK &&
             curl_easy_setopt(c->easy, CURLOPT_PROXY, "") == CURLE_OK &&
             curl_easy_setopt(c->easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK,
         "curl_easy_setopt");
    c->fields = curl_slist_append(NULL, "Accept:");
    must(c->fields != NULL, "curl_slist_append");
    must(curl_easy_setopt(c->easy, CURLOPT_HTTPHEADER, c->fields) == CURLE_OK, "curl_easy_setopt");
}

/* Begins to fetch what a whole head asks for; what is not a GET ends the connection. */
static int begin(struct client *c)
{
    char *target = c->request + 4, *end = memchr(c->request, '\r', c->read);
    if (strncmp(c->request, "GET ", 4) != 0) return 0;
    char *space = memchr(target, ' ', (size_t)(end - target));
    if (space == NULL) return 0;
    *space = '\0';
    if (c->easy == NULL) prepare(c);
    c->answered = c->sent = 0;
    must(curl_easy_setopt(c->easy, CURLOPT_URL, target) == CURLE_OK, "curl_easy_setopt");
    must(curl_multi_add_handle(multi, c->easy) == CURLM_OK, "curl_multi_add_handle");
    c->fetches = 1;
    return 1;
}

/* Writes what is there of an answer. 0: the connection is finished with. */
static int write_answer(struct client *c)
{
    while (c->sent < c->answered) {
        ssize_t n = send(c->fd, c->answer + c->sent, c->answered - c->sent, MSG_NOSIGNAL);
        if (n < 0) return errno == EAGAIN;
        c->sent += (size_t)n;
    }
    return 1;
}

static void end(struct client *c)
{
    if (c->easy != NULL) {
        if (c->fetches) must(curl_multi_remove_handle(multi, c->easy) == CURLM_OK, "remove");
        curl_easy_cleanup(c->easy);
        curl_slist_free_all(c->fields);
    }
    clients[c->fd] = NULL;
    close(c->fd);
    free(c);
}

static int serve(struct client *c, unsigned events)
{
    if (events & (EPOLLERR | EPOLLHUP)) return 0;
    if (events & EPOLLIN) {
        /* Who does not wait for a whole answer is not served. */
        if (c->fetches || c->sent < c->answered || c->read == sizeof c->request) return 0;
        ssize_t n = read(c->fd, c->request + c->read, sizeof c->request - c->read);
        if (n == 0) return 0;
        if (n < 0) return errno == EAGAIN;
        c->read += (size_t)n;
        if (c->read >= 4 && memcmp(c->request + c->read - 4, "\r\n\r\n", 4) == 0) return begin(c);
    }
    return c->fetches || write_answer(c);
}

static void accept_all(int listener)
{
    int one = 1, fd;
    while ((fd = accepted(listener)) >= 0) {
        struct client *c = fd < MAX_DESCRIPTORS ? calloc(1, sizeof *c) : NULL;
        if (c == NULL) {
            close(fd);
            continue;
        }
        c->fd = fd;
        clients[fd] = c;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        /* Edge-triggered output costs nothing until the socket was full. */
        watch(poller, fd, EPOLLIN | EPOLLOUT | EPOLLET);
    }
}

static void collect(void)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(multi, &left)) != NULL) {
        char *private = NULL;
        CURLcode result = message->data.result;
        CURL *easy = message->easy_handle;
        must(curl_easy_getinfo(easy, CURLINFO_PRIVATE, &private) == CURLE_OK, "getinfo");
        must(curl_multi_remove_handle(multi, easy) == CURLM_OK, "curl_multi_remove_handle");
        struct client *c = (struct client *)private;
        c->fetches = 0;
        c->read = 0;
        if (environment != NULL && result == CURLE_OK) store(c);
        if (result != CURLE_OK || !write_answer(c)) end(c);
    }
}

int main(int count, char **arguments)
{
    if (count != 2 && count != 3) {
        fprintf(stderr, "usage: pass PORT [DIRECTORY]\n");
        return 2;
    }
    if (count == 3) open_store(arguments[2]);
    must(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK, "curl_global_init");
    multi = curl_multi_init();
    must(multi != NULL, "curl_multi_init");
    must(curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, follow_socket) == CURLM_OK &&
             curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, follow_timer) == CURLM_OK &&
             /* Else it closes connections that the next requests would have used. */
             curl_multi_setopt(multi, CURLMOPT_MAXCONNECTS, (long)MAX_DESCRIPTORS) == CURLM_OK,
         "curl_multi_setopt");
    poller = new_poller();
    int listener = listen_on(atoi(arguments[1]), poller);
    for (;;) {
        struct epoll_event events[MAX_EVENTS];
        int running;
        long long wait = due < 0 ? -1 : due - now();
        int n = await(poller, events, MAX_EVENTS, due < 0 ? -1 : wait < 0 ? 0 : (int)wait);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                accept_all(listener);
            } else if (fd < MAX_DESCRIPTORS && clients[fd] != NULL) {
                if (!serve(clients[fd], events[i].events)) end(clients[fd]);
            } else {
                int ready = (events[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) |
                            (events[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                            (events[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
                must(curl_multi_socket_action(multi, fd, ready, &running) == CURLM_OK, "action");
            }
        }
        if (due >= 0 && due <= now()) {
            due = -1;
            must(curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &running) == CURLM_OK,
                 "action");
        }
        collect();
        commit_what_is_due();
    }
}
