// What of OpenSSL is needed to look into a handshake of libcurl's (libssl-dev).
//
// Stacks and some names are macros or inline functions over casts, which Swift does not import: they
// are wrapped here, with the types that they have in truth.
#ifndef LARDER_COPENSSL_SHIM_H
#define LARDER_COPENSSL_SHIM_H

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <openssl/x509_vfy.h>
#include <stdbool.h>

typedef void (*copenssl_ex_free)(void *, void *, CRYPTO_EX_DATA *, int, long, void *);

// -1 where there is no memory.
static inline int copenssl_ctx_ex_index(copenssl_ex_free release) {
    return SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, (CRYPTO_EX_free *)release);
}

// -1 where there is no memory.
static inline int copenssl_ssl_ex_index(copenssl_ex_free release) {
    return SSL_get_ex_new_index(0, NULL, NULL, NULL, (CRYPTO_EX_free *)release);
}

// What an information callback is told where the peer's close_notify was read.
static inline bool copenssl_is_closure(int place, int value) {
    return (place & SSL_CB_READ_ALERT) == SSL_CB_READ_ALERT
           && (value & 0xff) == SSL_AD_CLOSE_NOTIFY;
}

// The certificates that the peer sent, its own first; borrowed.
static inline int copenssl_chain_count(X509_STORE_CTX *ctx) {
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(ctx);
    return chain == NULL ? 0 : sk_X509_num(chain);
}

static inline X509 *copenssl_chain_certificate(X509_STORE_CTX *ctx, int index) {
    STACK_OF(X509) *chain = X509_STORE_CTX_get0_untrusted(ctx);
    return chain == NULL ? NULL : sk_X509_value(chain, index);
}

// The names of the issuers that the server accepts; borrowed.
static inline int copenssl_issuer_count(const SSL *ssl) {
    const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(ssl);
    return names == NULL ? 0 : sk_X509_NAME_num(names);
}

static inline const X509_NAME *copenssl_issuer(const SSL *ssl, int index) {
    const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(ssl);
    return names == NULL ? NULL : sk_X509_NAME_value(names, index);
}

// What a client of its own says and asks: macros over SSL_ctrl and SSL_CTX_ctrl.
static inline long copenssl_set_versions(SSL_CTX *ctx, int minimum, int maximum) {
    return SSL_CTX_set_min_proto_version(ctx, minimum)
           && SSL_CTX_set_max_proto_version(ctx, maximum);
}

static inline long copenssl_set_host_name(SSL *ssl, const char *name) {
    return SSL_set_tlsext_host_name(ssl, name);
}

static inline long copenssl_suspend_verification(SSL *ssl) { return SSL_set_retry_verify(ssl); }

static inline SSL *copenssl_ssl_of(X509_STORE_CTX *ctx) {
    return X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
}

static inline long copenssl_add_chain_certificate(SSL *ssl, X509 *certificate) {
    return SSL_add1_chain_cert(ssl, certificate);
}

#endif
