/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/ctl/tls_helper.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "lib/ctl/client.h"
#include "lib/ctl/tls.h"

char dir[64];
char tcp_name[96];
static atomic_bool tcp_ready;

void shell(const char *fmt, const char *more)
{
	char text[512];

	snprintf(text, sizeof(text), fmt, dir, dir, more);
	if (system(text))
		fail_msg("%s", text);
}

int make_certificates(void **state)
{
	static const char *const made[] = {
		"", "agent leaf", "operator boss", "tenant alice", "tenant bob", "tenant old 0"};

	(void)state;
	snprintf(dir, sizeof(dir), "%s/incline-tls-XXXXXX", getenv("TMPDIR") ?: "/tmp");
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
		shell(CERTS " %s%.0s %s", made[i]);
	shell(CERTS " %s/other && " CERTS " %s/other operator eve%s", "");
	shell(CERTS " %s/other%.0s agent leaf%s", "");
	shell(CERTS " %s/other tenant mallory && " CERTS " %s/other revoke mallory%s", "");
	shell(CERTS " %s/late && " CERTS " %s/late agent leaf%s", "");
	shell(CERTS " %s/late tenant bob && " CERTS " %s/late revoke bob 0%s", "");
	/* A request of Bob's with another subject, signed anew. */
	shell("cp -r %s/bob %s/guest && cd %s/guest && "
	      "openssl req -new -key key.pem -subj /O=guest/CN=guest -out csr.pem && "
	      "openssl x509 -req -in csr.pem -CA ../ca/cert.pem -CAkey ../ca/key.pem -out cert.pem "
	      "2>/dev/null",
		dir);
	return 0;
}

int remove_certificates(void **state)
{
	(void)state;
	shell("rm -r %s%.0s%s", "");
	return 0;
}

/* ---- the server ---- */

static void note_ready(struct sw *sw, const char *socket_path, const char *tcp)
{
	(void)sw, (void)socket_path;
	snprintf(tcp_name, sizeof(tcp_name), "%s", tcp ? tcp : "none");
	tcp_ready = true;
}

void start_as(struct fixture *f, const char *who)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, who);
	f->config = json_pack("{s:s,s:s}", "control_tcp", "127.0.0.1:0", "control_tls", path);
	f->limits.ready = note_ready;
	tcp_ready = false;
	start(f);
	for (unsigned tries = 0; tries < LONG_MS / 10 && !tcp_ready; tries++)
		usleep(10000);
	assert_true(tcp_ready);
}

/* ---- our client ---- */

void be(const char *who)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, who);
	setenv(CTL_TLS_ENV, path, 1);
}

int call_as(const char *who, const char *method)
{
	struct ctl_client *c;
	struct ctl_error e;
	int rc;

	be(who);
	rc = ctl_connect(tcp_name, LONG_MS, &c, &e);
	if (rc)
		return rc;
	rc = ctl_call(c, method, NULL, LONG_MS, NULL, &e);
	ctl_close(c);
	return rc && e.code ? e.code : rc;
}
