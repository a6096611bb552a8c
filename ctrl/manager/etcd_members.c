/* SPDX-License-Identifier: BSD-3-Clause */
#include "ctrl/manager/etcd_members.h"

#include <curl/curl.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl/tls.h"

enum { MAX_ANSWER = 64 << 20 };

int etcd_wrong(struct etcd_members *m, int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(m->why, sizeof(m->why), fmt, ap);
	va_end(ap);
	return rc;
}

/* ---- requests ---- */

struct answer {
	char *text;
	size_t len;
};

static size_t take(char *data, size_t size, size_t n, void *to)
{
	struct answer *a = to;
	const size_t len = size * n;
	char *text = a->len + len < MAX_ANSWER ? realloc(a->text, a->len + len + 1) : NULL;

	if (!text)
		return 0;
	memcpy(text + a->len, data, len);
	a->text = text;
	a->len += len;
	a->text[a->len] = '\0';
	return len;
}

/* Of certificates libcurl says more by the way; of the rest how long it took, and that is never the
 * same twice. */
static const char *reason(const struct etcd_members *m, CURLcode code)
{
	return strstr(m->said, "SSL") ? m->said : curl_easy_strerror(code);
}

/* One member. -EAGAIN: another may answer. */
static int ask_one(struct etcd_members *m, const char *path, const char *body, json_t **out)
{
	char url[ETCD_URL_LEN + 64];
	struct answer a = {0};
	json_error_t e;
	long status = 0;
	CURLcode code;
	int rc = 0;

	snprintf(url, sizeof(url), "%s%s", m->member[m->at], path);
	curl_easy_setopt(m->curl, CURLOPT_URL, url);
	curl_easy_setopt(m->curl, CURLOPT_POSTFIELDS, body);
	curl_easy_setopt(m->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)strlen(body));
	curl_easy_setopt(m->curl, CURLOPT_WRITEDATA, &a);
	m->said[0] = '\0';
	code = curl_easy_perform(m->curl);
	curl_easy_getinfo(m->curl, CURLINFO_RESPONSE_CODE, &status);
	*out = code == CURLE_OK ? json_loadb(a.text ? a.text : "", a.len, 0, &e) : NULL;
	if (code != CURLE_OK)
		rc = etcd_wrong(m, -EAGAIN, "%.100s: %.120s", m->member[m->at], reason(m, code));
	else if (status != 200)
		rc = etcd_wrong(m, status >= 500 ? -EAGAIN : -EIO, "%.100s: %s: HTTP %ld: %.80s",
			m->member[m->at], path, status,
			json_string_value(json_object_get(*out, "error")) ?: "");
	else if (!json_is_object(*out))
		rc = etcd_wrong(m, -EAGAIN, "%.100s: %s: its answer makes no sense",
			m->member[m->at], path);
	free(a.text);
	if (rc) {
		json_decref(*out);
		*out = NULL;
	}
	return rc;
}

int etcd_ask(struct etcd_members *m, const char *path, json_t *body, json_t **out)
{
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	int rc = text ? -EAGAIN : etcd_wrong(m, -ENOMEM, "out of memory");

	*out = NULL;
	for (unsigned i = 0; i <= m->n && rc == -EAGAIN; i++) {
		rc = ask_one(m, path, text, out);
		if (rc == -EAGAIN)
			m->at = (m->at + 1) % m->n;
	}
	free(text);
	json_decref(body);
	return rc == -EAGAIN ? -EIO : rc;
}

/* ---- life ---- */

/* Of the CAs those alone that are in the directory: the machine's do not count. */
static void show_certificates(struct etcd_members *m)
{
	char ca[PATH_MAX], cert[PATH_MAX], key[PATH_MAX], list[PATH_MAX];

	snprintf(list, sizeof(list), "%s/crl.pem", m->certificates);
	if (!access(list, F_OK))
		curl_easy_setopt(m->curl, CURLOPT_CRLFILE, list);
	snprintf(ca, sizeof(ca), "%s/ca.pem", m->certificates);
	snprintf(cert, sizeof(cert), "%s/cert.pem", m->certificates);
	snprintf(key, sizeof(key), "%s/key.pem", m->certificates);
	curl_easy_setopt(m->curl, CURLOPT_CAINFO, ca);
	curl_easy_setopt(m->curl, CURLOPT_CAPATH, NULL);
	curl_easy_setopt(m->curl, CURLOPT_CA_CACHE_TIMEOUT, 0L);
	curl_easy_setopt(m->curl, CURLOPT_SSLCERT, cert);
	curl_easy_setopt(m->curl, CURLOPT_SSLKEY, key);
	curl_easy_setopt(m->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_3);
}

int etcd_members_open(struct etcd_members *m, unsigned timeout_ms)
{
	m->curl = curl_easy_init();
	m->headers = curl_slist_append(NULL, "Content-Type: application/json");
	if (!m->curl || !m->headers)
		return etcd_wrong(m, -ENOMEM, "out of memory");
	curl_easy_setopt(m->curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(m->curl, CURLOPT_PROXY, "");
	curl_easy_setopt(m->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(m->curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
	curl_easy_setopt(m->curl, CURLOPT_HTTPHEADER, m->headers);
	curl_easy_setopt(m->curl, CURLOPT_WRITEFUNCTION, take);
	_Static_assert(sizeof(m->said) >= CURL_ERROR_SIZE, "libcurl writes so much");
	curl_easy_setopt(m->curl, CURLOPT_ERRORBUFFER, m->said);
	if (m->certificates)
		show_certificates(m);
	return 0;
}

void etcd_members_close(struct etcd_members *m)
{
	curl_slist_free_all(m->headers);
	if (m->curl)
		curl_easy_cleanup(m->curl);
	m->headers = NULL;
	m->curl = NULL;
}

int etcd_members_parse(struct etcd_members *m, const char *text)
{
	snprintf(m->fabric, sizeof(m->fabric), "incline");
	while (*text) {
		const size_t len = strcspn(text, ",");
		const char *host = strstr(text, "://"), *slash;
		size_t end = len;

		if ((strncmp(text, "http://", 7) && strncmp(text, "https://", 8)) || !host[3] ||
			strchr(",/?#", host[3]) || m->n == ETCD_MAX_MEMBERS || len >= ETCD_URL_LEN)
			return etcd_wrong(m, -EINVAL,
				"must be etcd:http://HOST:PORT, up to %d of them with commas, and "
				"/NAME of the fabric",
				ETCD_MAX_MEMBERS);
		if (memchr(text, '@', len)) /* it would be in the log */
			return etcd_wrong(
				m, -EINVAL, "names no user and no password: there are none");
		slash = memchr(host + 3, '/', len - (size_t)(host + 3 - text));
		if (slash) {
			end = (size_t)(slash - text);
			snprintf(m->fabric, sizeof(m->fabric), "%.*s", (int)(len - end - 1),
				slash + 1);
		}
		if (slash && (text[len] || !m->fabric[0] || len - end - 1 >= sizeof(m->fabric) ||
				     strpbrk(m->fabric, "/?#")))
			return etcd_wrong(m, -EINVAL, "the fabric's name stands at the end, once");
		snprintf(m->member[m->n++], ETCD_URL_LEN, "%.*s", (int)end, text);
		text += len + (text[len] == ',');
	}
	return m->n ? 0 : etcd_wrong(m, -EINVAL, "no member of etcd is named");
}

int etcd_members_certify(struct etcd_members *m, const char *certificates)
{
	char why[CTL_TLS_ERR_LEN];
	SSL_CTX *ctx;
	int rc;

	if (!certificates)
		return 0;
	for (unsigned i = 0; i < (m->n ?: 1); i++)
		if (strncmp(m->member[i], "https://", 8))
			return etcd_wrong(
				m, -EINVAL, "is for an etcd whose members are all at https://");
	rc = ctl_tls_open(certificates, CTL_TLS_ASKS, &ctx, why);
	if (rc)
		return etcd_wrong(m, rc, "%.240s", why);
	SSL_CTX_free(ctx);
	m->certificates = certificates;
	return 0;
}
