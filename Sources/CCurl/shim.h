// libcurl's options are set through variadic functions, which Swift cannot call: one wrapper here
// for each type of argument, so that the compiler checks what C would not.
//
// epoll, eventfd and the name of a thread are here because the Glibc module does not export them,
// and the loop that drives a multi handle is their only user.
#ifndef LARDER_CCURL_SHIM_H
#define LARDER_CCURL_SHIM_H

// The type-checking macros of curl.h want options that are compile-time constants.
#define CURL_DISABLE_TYPECHECK 1
#include <curl/curl.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

typedef size_t (*ccurl_transfer_callback)(char *, size_t, size_t, void *);
typedef int (*ccurl_prereq_callback)(void *, char *, char *, int, int);
typedef int (*ccurl_resolver_start_callback)(void *, void *, void *);
typedef int (*ccurl_trailer_callback)(struct curl_slist **, void *);
typedef curl_socket_t (*ccurl_opensocket_callback)(
    void *, curlsocktype, struct curl_sockaddr *);
typedef int (*ccurl_closesocket_callback)(void *, curl_socket_t);
typedef int (*ccurl_seek_callback)(void *, curl_off_t, int);
typedef int (*ccurl_debug_callback)(CURL *, curl_infotype, char *, size_t, void *);
typedef CURLcode (*ccurl_ssl_ctx_callback)(CURL *, void *, void *);
typedef int (*ccurl_socket_callback)(CURL *, curl_socket_t, int, void *, void *);
typedef int (*ccurl_timer_callback)(CURLM *, long, void *);

#define CCURL_SETOPT(name, type)                                                        \
    static inline CURLcode ccurl_set_##name(CURL *easy, CURLoption option, type value) { \
        return curl_easy_setopt(easy, option, value);                                   \
    }
CCURL_SETOPT(long, long)
CCURL_SETOPT(offset, curl_off_t)
CCURL_SETOPT(string, const char *)
CCURL_SETOPT(pointer, void *)
CCURL_SETOPT(list, struct curl_slist *)
CCURL_SETOPT(transfer_callback, ccurl_transfer_callback)
CCURL_SETOPT(prereq_callback, ccurl_prereq_callback)
CCURL_SETOPT(resolver_start_callback, ccurl_resolver_start_callback)
CCURL_SETOPT(trailer_callback, ccurl_trailer_callback)
CCURL_SETOPT(opensocket_callback, ccurl_opensocket_callback)
CCURL_SETOPT(closesocket_callback, ccurl_closesocket_callback)
CCURL_SETOPT(debug_callback, ccurl_debug_callback)
CCURL_SETOPT(seek_callback, ccurl_seek_callback)
CCURL_SETOPT(ssl_ctx_callback, ccurl_ssl_ctx_callback)
CCURL_SETOPT(blob, struct curl_blob *)
#undef CCURL_SETOPT

#define CCURL_MULTI_SETOPT(name, type)                                                \
    static inline CURLMcode ccurl_multi_set_##name(                                   \
        CURLM *multi, CURLMoption option, type value) {                               \
        return curl_multi_setopt(multi, option, value);                               \
    }
CCURL_MULTI_SETOPT(long, long)
CCURL_MULTI_SETOPT(pointer, void *)
CCURL_MULTI_SETOPT(socket_callback, ccurl_socket_callback)
CCURL_MULTI_SETOPT(timer_callback, ccurl_timer_callback)
#undef CCURL_MULTI_SETOPT

#define CCURL_GETINFO(name, type)                                                     \
    static inline CURLcode ccurl_get_##name(CURL *easy, CURLINFO info, type *value) {  \
        return curl_easy_getinfo(easy, info, value);                                  \
    }
CCURL_GETINFO(long, long)
CCURL_GETINFO(offset, curl_off_t)
CCURL_GETINFO(pointer, void *)
CCURL_GETINFO(socket, curl_socket_t)
CCURL_GETINFO(string, const char *)
CCURL_GETINFO(session, struct curl_tlssessioninfo *)
#undef CCURL_GETINFO

static inline CURLSHcode ccurl_share_enable(CURLSH *share, curl_lock_data what) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, what);
}

// Function-like or cast macros, which Swift does not import.
static const long ccurl_auth_none = CURLAUTH_NONE;
static const long ccurl_auth_basic = CURLAUTH_BASIC;
static const long ccurl_auth_digest = CURLAUTH_DIGEST;
static const long ccurl_auth_ntlm = CURLAUTH_NTLM;
static const long ccurl_auth_negotiate = CURLAUTH_NEGOTIATE;
static const CURLversion ccurl_version_now = CURLVERSION_NOW;
static const long ccurl_version_libz = CURL_VERSION_LIBZ;
static const long ccurl_version_brotli = CURL_VERSION_BROTLI;
static const long ccurl_version_zstd = CURL_VERSION_ZSTD;
static const unsigned int ccurl_blob_copy = CURL_BLOB_COPY;
static const long ccurl_global_all = CURL_GLOBAL_ALL;
static const unsigned int ccurl_writefunc_pause = CURL_WRITEFUNC_PAUSE;
static const unsigned int ccurl_readfunc_abort = CURL_READFUNC_ABORT;
static const unsigned int ccurl_readfunc_pause = CURL_READFUNC_PAUSE;
static const curl_socket_t ccurl_socket_timeout = CURL_SOCKET_TIMEOUT;
static const curl_socket_t ccurl_socket_bad = CURL_SOCKET_BAD;
static const size_t ccurl_error_size = CURL_ERROR_SIZE;

#endif
