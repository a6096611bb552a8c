/* SPDX-License-Identifier: BSD-3-Clause */
/* Certificates that are taken back while they are used. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "lib/ctl/client.h"
#include "tests/unit/ctl/tls_helper.h"

/* What a server says to a connection that it ends without being asked. */
static void expect_turned_out(struct ctl_client *c, const char *why)
{
	struct ctl_error e;

	assert_int_not_equal(ctl_call(c, "ping", NULL, LONG_MS, NULL, &e), 0);
	if (!strstr(e.msg, why))
		fail_msg("\"%s\" lacks \"%s\"", e.msg, why);
	ctl_close(c);
}

static volatile sig_atomic_t load;

static void load_anew(void)
{
	load = 1;
	for (unsigned tries = 0; tries < LONG_MS / 10 && load; tries++)
		usleep(10000);
	assert_false(load);
}

static void expect_refused(const char *who, const char *why)
{
	struct ctl_client *c;
	struct ctl_error e;

	be(who);
	assert_int_equal(ctl_connect(tcp_name, LONG_MS, &c, &e), 0);
	expect_turned_out(c, why);
}

/* A list of revoked certificates that comes while the server runs: who is there by one of them is
 * told, and goes; so does who comes by one. Others stay. */
void test_revoked(void **state)
{
	struct fixture *f = *state;
	struct ctl_client *c[3];
	struct ctl_error e;

	shell(CERTS " %s%.0s tenant carol%s", "");
	shell(CERTS " %s%.0s tenant dave%s", "");
	f->limits.load = &load;
	start_as(f, "leaf");
	for (unsigned i = 0; i < 3; i++) {
		static const char *const who[] = {"carol", "dave", "boss"};

		be(who[i]);
		assert_int_equal(ctl_connect(tcp_name, LONG_MS, &c[i], &e), 0);
		assert_int_equal(ctl_call(c[i], "ping", NULL, LONG_MS, NULL, &e), 0);
	}
	shell(CERTS " %s%.0s revoke carol%s", "");
	shell("rm %s/carol%.0s/crl.pem%s", ""); /* or she would not even try */
	load_anew();
	be("carol");
	expect_turned_out(c[0], "the certificate of this connection is revoked");
	expect_refused("carol", "the certificate of tenant \"carol\" is revoked");
	/* A list that is lost takes nothing back. */
	shell("mv %s/leaf/crl.pem %s/kept.pem%s", "");
	load_anew();
	expect_refused("carol", "the certificate of tenant \"carol\" is revoked");
	shell("mv %s/kept.pem %s/leaf/crl.pem%s", "");
	/* Nor does the list of one CA lock out those of another, which has none. */
	shell("cp -r %s/other/eve %s/guest_eve%s", "");
	shell("cat %s/ca/cert.pem >> %s/guest_eve/ca.pem%s", "");
	shell("cat %s/other/ca/cert.pem >> %s/leaf/ca.pem%s", "");
	load_anew();
	assert_int_equal(call_as("guest_eve", "ping"), 0);
	expect_refused("carol", "the certificate of tenant \"carol\" is revoked");
	assert_int_equal(ctl_call(c[1], "ping", NULL, LONG_MS, NULL, &e), 0);
	assert_int_equal(ctl_call(c[2], "ping", NULL, LONG_MS, NULL, &e), 0);
	assert_int_equal(call_as("dave", "ping"), 0);
	assert_int_equal(call_as("old", "ping"), -EACCES); /* expired, as ever */
	/* The server's own: who has the list does not trust it. */
	shell(CERTS " %s%.0s revoke leaf%s", "");
	assert_int_equal(call_as("dave", "ping"), -EACCES);
	assert_int_equal(ctl_call(c[1], "ping", NULL, LONG_MS, NULL, &e), 0);
	ctl_close(c[1]);
	ctl_close(c[2]);
	shell("rm -f %s/*/crl.pem && " CERTS " %s agent leaf%s", "");
}
