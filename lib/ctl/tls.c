/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *ctl_role_name(enum ctl_role role)
{
	static const char *const names[CTL_ROLES] = {
		"local", "stranger", "operator", "agent", "tenant"};

	return names[role];
}

static int fail(char *err, int rc, const char *file, const char *what)
{
	const unsigned long e = ERR_peek_last_error();
	const char *reason = e ? ERR_reason_error_string(e) : NULL;

	snprintf(err, CTL_TLS_ERR_LEN, "%.150s: %s%s%.60s", file, what, reason ? ": " : "",
		reason ? reason : "");
	ERR_clear_error();
	return rc;
}

/* ---- certificates that were taken back ---- */

/* Errors that only lists of them bring about: the first of a chain, in place of a word on it. */
static int note_lists(int ok, X509_STORE_CTX *c)
{
	int *found = X509_STORE_CTX_get_ex_data(c, 0);
	const int why = X509_STORE_CTX_get_error(c);

	if (!ok && found && (!*found || why == X509_V_ERR_CERT_REVOKED) &&
		(why == X509_V_ERR_CERT_REVOKED || why == X509_V_ERR_UNABLE_TO_GET_CRL ||
			why == X509_V_ERR_CRL_SIGNATURE_FAILURE ||
			why == X509_V_ERR_CRL_NOT_YET_VALID || why == X509_V_ERR_CRL_HAS_EXPIRED))
		*found = why;
	return 1;
}

/* Of a certificate by what a context has read: X509_V_ERR_CERT_REVOKED if it was taken back, else
 * what is wrong with the list; X509_V_OK. */
static int by_lists(SSL_CTX *ctx, X509 *cert, STACK_OF(X509) * chain)
{
	X509_STORE_CTX *c = X509_STORE_CTX_new();
	int found = X509_V_OK;

	if (!c || X509_STORE_CTX_init(c, SSL_CTX_get_cert_store(ctx), cert, chain) != 1 ||
		X509_STORE_CTX_set_ex_data(c, 0, &found) != 1) {
		X509_STORE_CTX_free(c);
		return X509_V_ERR_OUT_OF_MEM;
	}
	X509_STORE_CTX_set_verify_cb(c, note_lists);
	(void)X509_verify_cert(c);
	X509_STORE_CTX_free(c);
	ERR_clear_error();
	return found;
}

/* Whose certificate was taken back gets through the handshake, to be told so by ctl_tls_who. Of a
 * CA that has no list none was. */
static int let_in_to_be_told(int ok, X509_STORE_CTX *c)
{
	const int why = X509_STORE_CTX_get_error(c);

	if (!ok && why == X509_V_ERR_UNABLE_TO_GET_CRL)
		X509_STORE_CTX_set_error(c, X509_V_OK);
	return ok || why == X509_V_ERR_UNABLE_TO_GET_CRL || why == X509_V_ERR_CERT_REVOKED;
}

/* The list, if there is one. It is to be the CA's, and good today: else it would refuse everybody.
 */
static int load_list(SSL_CTX *ctx, const char *list, const char *cert, char err[CTL_TLS_ERR_LEN])
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);
	X509_LOOKUP *files;
	int found;

	if (access(list, F_OK) && errno == ENOENT)
		return 0;
	files = X509_STORE_add_lookup(store, X509_LOOKUP_file());
	if (!files || X509_load_crl_file(files, list, X509_FILETYPE_PEM) < 1)
		return fail(err, -EINVAL, list, "no list of revoked certificates there");
	ERR_clear_error(); /* the end of the file was one */
	X509_STORE_set_flags(store, X509_V_FLAG_CRL_CHECK);
	found = by_lists(ctx, SSL_CTX_get0_certificate(ctx), NULL);
	if (found == X509_V_ERR_CERT_REVOKED)
		return fail(err, -EINVAL, cert, "is revoked");
	if (found == X509_V_ERR_UNABLE_TO_GET_CRL || found == X509_V_ERR_CRL_SIGNATURE_FAILURE)
		return fail(err, -EINVAL, list, "is not of the CA that has signed cert.pem");
	return found ? fail(err, -EINVAL, list, X509_verify_cert_error_string(found)) : 0;
}

bool ctl_tls_is_revoked(SSL *ssl, SSL_CTX *now)
{
	X509 *cert;
	int found;

	if (SSL_get_SSL_CTX(ssl) == now)
		return false; /* it was looked at with these */
	cert = SSL_get_peer_certificate(ssl);
	found = cert ? by_lists(now, cert, SSL_get_peer_cert_chain(ssl)) : X509_V_OK;
	X509_free(cert);
	return found == X509_V_ERR_CERT_REVOKED || found == X509_V_ERR_OUT_OF_MEM;
}

/* ---- a directory ---- */

static int load(SSL_CTX *ctx, const char *dir, char err[CTL_TLS_ERR_LEN])
{
	char ca[PATH_MAX], cert[PATH_MAX], key[PATH_MAX], list[PATH_MAX];

	if (strlen(dir) > PATH_MAX - 16)
		return fail(err, -EINVAL, "directory of certificates", "its path is too long");
	snprintf(ca, sizeof(ca), "%s/ca.pem", dir);
	snprintf(cert, sizeof(cert), "%s/cert.pem", dir);
	snprintf(key, sizeof(key), "%s/key.pem", dir);
	snprintf(list, sizeof(list), "%s/crl.pem", dir);
	ERR_clear_error();
	if (SSL_CTX_load_verify_locations(ctx, ca, NULL) != 1)
		return fail(err, -EINVAL, ca, "no CA's certificate there");
	if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
		return fail(err, -EINVAL, cert, "no certificate there");
	if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
		return fail(err, -EINVAL, key, "no key there, or not the certificate's");
	return load_list(ctx, list, cert, err);
}

int ctl_tls_open(const char *dir, enum ctl_tls_side side, SSL_CTX **out, char err[CTL_TLS_ERR_LEN])
{
	SSL_CTX *ctx =
		SSL_CTX_new(side == CTL_TLS_SERVES ? TLS_server_method() : TLS_client_method());
	int rc;

	if (!ctx)
		return fail(err, -ENOMEM, dir, "out of memory");
	SSL_CTX_set_verify(
		ctx, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, let_in_to_be_told);
	SSL_CTX_set_verify_depth(ctx, 2);
	/* A session that is resumed would show no certificate. */
	SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
	/* An end that goes without a word may cut a line short, and then there is none. */
	SSL_CTX_set_options(ctx, SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
				      SSL_MODE_RELEASE_BUFFERS);
	rc = SSL_CTX_set_min_proto_version(ctx, TLS1_3_VERSION) == 1 &&
			     SSL_CTX_set_num_tickets(ctx, 0) == 1
		     ? load(ctx, dir, err)
		     : fail(err, -EINVAL, dir, "TLS 1.3 is not to be had");
	if (rc) {
		SSL_CTX_free(ctx);
		return rc;
	}
	*out = ctx;
	return 0;
}

static bool has_list(SSL_CTX *ctx)
{
	X509_STORE *store = SSL_CTX_get_cert_store(ctx);

	return X509_VERIFY_PARAM_get_flags(X509_STORE_get0_param(store)) & X509_V_FLAG_CRL_CHECK;
}

int ctl_tls_renew(const char *dir, enum ctl_tls_side side, SSL_CTX **ctx, char err[CTL_TLS_ERR_LEN])
{
	SSL_CTX *fresh;
	int rc = ctl_tls_open(dir, side, &fresh, err);

	if (!rc && has_list(*ctx) && !has_list(fresh)) {
		SSL_CTX_free(fresh);
		rc = fail(err, -EINVAL, dir,
			"crl.pem was there and is not any more, and all are let in without it: "
			"put it back, or start anew");
	}
	if (rc)
		return rc;
	SSL_CTX_free(*ctx); /* connections hold it as well, so no other has its address meanwhile */
	*ctx = fresh;
	return 0;
}

/* The only one of its kind, printable: else the certificate is nobody's. */
static bool field(const X509_NAME *subject, int nid, char *out, size_t cap)
{
	static const char ok[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789._-";
	const int at = X509_NAME_get_index_by_NID((X509_NAME *)subject, nid, -1);
	const int n = X509_NAME_get_text_by_NID((X509_NAME *)subject, nid, NULL, 0);

	if (at < 0 || X509_NAME_get_index_by_NID((X509_NAME *)subject, nid, at) >= 0 || n < 1 ||
		(size_t)n >= cap)
		return false;
	X509_NAME_get_text_by_NID((X509_NAME *)subject, nid, out, (int)cap);
	return strspn(out, ok) == (size_t)n;
}

int ctl_tls_who(SSL *ssl, struct ctl_who *who, char err[CTL_TLS_ERR_LEN])
{
	X509 *cert = SSL_get_peer_certificate(ssl);
	const X509_NAME *subject = cert ? X509_get_subject_name(cert) : NULL;
	const long verified = SSL_get_verify_result(ssl);
	const bool revoked = verified == X509_V_ERR_CERT_REVOKED;
	char role[CTL_WHO_LEN] = "";
	int rc = -EACCES;

	*who = (struct ctl_who){.role = CTL_STRANGER};
	if (!subject || (verified != X509_V_OK && !revoked))
		snprintf(err, CTL_TLS_ERR_LEN, "no certificate of this CA");
	else if (!field(subject, NID_commonName, who->name, sizeof(who->name)) ||
		 !field(subject, NID_organizationName, role, sizeof(role)))
		snprintf(err, CTL_TLS_ERR_LEN,
			"its subject needs one O and one CN of 1 to %d of "
			"letters, digits, \".\", \"_\", \"-\"",
			CTL_WHO_LEN - 1);
	else if (revoked)
		snprintf(err, CTL_TLS_ERR_LEN, "the certificate of %s \"%s\" is revoked", role,
			who->name);
	else
		snprintf(err, CTL_TLS_ERR_LEN, "O is \"%s\", not operator, agent or tenant", role);
	for (enum ctl_role r = CTL_OPERATOR; role[0] && !revoked && r < CTL_ROLES; r++)
		if (!strcmp(role, ctl_role_name(r))) {
			who->role = r;
			rc = 0;
		}
	X509_free(cert);
	return rc;
}

bool ctl_tls_may_serve(const struct ctl_who *who)
{
	return who->role == CTL_OPERATOR || who->role == CTL_AGENT;
}
