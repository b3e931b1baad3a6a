// What of OpenSSL is needed to read certificates and keys.
//
// Each of these is a macro, or an inline function over casts, which Swift does not import.
#ifndef LARDER_COPENSSL_CERTIFICATES_H
#define LARDER_COPENSSL_CERTIFICATES_H

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

static inline int copenssl_x509_count(const STACK_OF(X509) *stack) {
    return stack == NULL ? 0 : sk_X509_num(stack);
}

static inline X509 *copenssl_x509_at(const STACK_OF(X509) *stack, int index) {
    return sk_X509_value(stack, index);
}

static inline void copenssl_x509_stack_free(STACK_OF(X509) *stack) {
    sk_X509_pop_free(stack, X509_free);
}

// Without those that only say what was revoked.
static inline int copenssl_certificate_count(X509_STORE *store) {
    STACK_OF(X509_OBJECT) *objects = X509_STORE_get0_objects(store);
    int count = 0;
    for (int index = 0; index < sk_X509_OBJECT_num(objects); index++)
        count += X509_OBJECT_get_type(sk_X509_OBJECT_value(objects, index)) == X509_LU_X509;
    return count;
}

// The octets that a memory BIO holds; borrowed.
static inline long copenssl_bio_octets(BIO *bio, char **octets) {
    return BIO_get_mem_data(bio, octets);
}

static inline void copenssl_free(void *memory) { OPENSSL_free(memory); }

// ASN1_STRFLGS_ESC_MSB would turn letters beyond ASCII into digits.
static inline unsigned long copenssl_name_flags(void) {
    return XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB;
}

static inline int copenssl_is_mac_failure(unsigned long error) {
    return ERR_GET_LIB(error) == ERR_LIB_PKCS12
           && ERR_GET_REASON(error) == PKCS12_R_MAC_VERIFY_FAILURE;
}

static inline int copenssl_is_unsupported(unsigned long error) {
    return ERR_GET_REASON(error) == ERR_R_UNSUPPORTED;
}

#endif
