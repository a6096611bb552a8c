/* SPDX-License-Identifier: BSD-3-Clause */
/* TLS 1.3 (RFC 8446) of control connections: both ends show certificates of one CA. A certificate's
 * subject says who it is for: organisation (O) "operator", "agent" or "tenant", common name (CN)
 * the name, 1 to 31 letters, digits, ".", "_" or "-". A directory has what one end needs: ca.pem,
 * cert.pem, key.pem; and crl.pem, a list (RFC 5280) of the CA's certificates that are revoked, if
 * there is one (tools/certs makes such directories). */
#ifndef CTL_TLS_H
#define CTL_TLS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/ctl/who.h"

#define CTL_TLS_ENV                                                                   \
	"INCLINE_TLS" /* the directory of clients: their TCP connections are TLS then \
		       */

enum ctl_tls_side { CTL_TLS_SERVES, CTL_TLS_ASKS };

enum { CTL_TLS_ERR_LEN = 256 };

/* Reads a directory: *out is freed with SSL_CTX_free. -EINVAL, -ENOMEM with a reason in err that
 * names the file. */
int ctl_tls_open(const char *dir, enum ctl_tls_side side, SSL_CTX **out, char err[CTL_TLS_ERR_LEN]);

/* The same anew into *ctx, for connections that are still to come; those that are there go on as
 * they are, unless ctl_tls_is_revoked. What cannot be read changes nothing. */
int ctl_tls_renew(
	const char *dir, enum ctl_tls_side side, SSL_CTX **ctx, char err[CTL_TLS_ERR_LEN]);

/* Whose certificate the peer of a finished handshake has shown. -EACCES: it is revoked, or has a
 * subject that says nothing to us, with a reason in err. Who is refused has got no further than the
 * handshake: to be asked of every connection. */
int ctl_tls_who(SSL *ssl, struct ctl_who *who, char err[CTL_TLS_ERR_LEN]);

/* The certificate that the peer has shown when it came is revoked by what was read since. */
bool ctl_tls_is_revoked(SSL *ssl, SSL_CTX *now);

/* May this be at the other end of a connection that we have opened? */
bool ctl_tls_may_serve(const struct ctl_who *who);

/* ---- for clients, which know connections by descriptors; any thread ---- */

/* TLS over a connected, non-blocking descriptor, with the directory of CTL_TLS_ENV, by a deadline:
 * wait(fd, events, deadline) as poll. 0; -EACCES: one end does not trust the other; -EPROTO: no TLS
 * 1.3 there; -ECONNRESET: it has hung up; or wait's. Once more goes on with a handshake that has
 * not come to its end. Without CTL_TLS_ENV: 0, and the descriptor stays as it is. */
int ctl_tls_begin(int fd, int (*wait)(int fd, short events, int64_t deadline), int64_t deadline);
/* Of a descriptor, NULL: it has none. Ended with the second, before it is closed, whatever came of
 * the handshake. */
SSL *ctl_tls_of(int fd);
void ctl_tls_end(int fd);

#endif
