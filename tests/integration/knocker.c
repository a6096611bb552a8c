/* SPDX-License-Identifier: BSD-3-Clause */
/* Knocks at sockets of a switch. Prints how many knocks it made.
 * knocker busy PATH ROUNDS: all kinds at a memif server whose port has a client;
 * knocker free PATH ROUNDS: whose port has none;
 * knocker vhost PATH ROUNDS: all kinds at a vhost port;
 * knocker stream PATH|IPV4:PORT ROUNDS: all kinds of words at what speaks JSON or HTTP. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/port/knock.h"
#include "tests/unit/port/vhost_knock.h"

/* A port that is free may be taken, and is let go again. */
static bool suits(int kind, bool is_free)
{
	if (is_free)
		return kind != KNOCK_BUSY;
	return knock_counted[kind] != NULL && kind != KNOCK_CONNECT_TWICE &&
	       (kind <= KNOCK_BUSY || kind == KNOCK_INIT_FD);
}

static unsigned memif(const char *path, bool is_free, unsigned rounds)
{
	unsigned n = 0;

	for (unsigned round = 0; round < rounds; round++)
		for (int kind = 0; kind < N_KNOCKS; kind++) {
			int rc;

			if (!suits(kind, is_free))
				continue;
			rc = knock(path, (enum knock)kind, 0, 0);
			if (rc != 0) {
				fprintf(stderr, "%s: %s\n", knock_text[kind], strerror(-rc));
				exit(1);
			}
			n++;
		}
	return n;
}

static unsigned vhost(const char *path, unsigned rounds)
{
	for (unsigned round = 0; round < rounds; round++)
		for (int kind = 0; kind < N_VHOST_KNOCKS; kind++) {
			const int s = vhost_come(path);
			const int rc = s < 0 ? s : vhost_knock(s, (enum vhost_knock)kind);

			if (rc < 0) {
				fprintf(stderr, "%s: %s\n", vhost_knock_text[kind], strerror(-rc));
				exit(1);
			}
			close(s);
		}
	return rounds * N_VHOST_KNOCKS;
}

static int come(const char *where)
{
	const char *colon = strrchr(where, ':');
	struct sockaddr_un path = {.sun_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET};
	char host[64];
	int s, rc;

	if (where[0] == '/') {
		snprintf(path.sun_path, sizeof(path.sun_path), "%s", where);
		s = socket(AF_UNIX, SOCK_STREAM, 0);
		rc = connect(s, (const struct sockaddr *)&path, sizeof(path));
	} else {
		snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - where) : 0, where);
		inet_pton(AF_INET, host, &in.sin_addr);
		in.sin_port = htons(colon ? (uint16_t)atoi(colon + 1) : 0);
		s = socket(AF_INET, SOCK_STREAM, 0);
		rc = connect(s, (const struct sockaddr *)&in, sizeof(in));
	}
	if (rc != 0) {
		perror(where);
		exit(1);
	}
	return s;
}

/* Three ways to go: at once, without a word that all has been said, or as if never there. */
static void leave(int s, unsigned how)
{
	const struct linger reset = {.l_onoff = 1};

	if (how % 3 == 1)
		shutdown(s, SHUT_WR);
	if (how % 3 == 2)
		setsockopt(s, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	close(s);
}

static unsigned stream(const char *where, unsigned rounds)
{
#define WORD(text)                     \
	{                              \
		text, sizeof(text) - 1 \
	}
	static const struct {
		const char *text;
		size_t len;
	} words[] = {WORD(""), WORD("{"), WORD("\n\n\n"), WORD("5\n"), WORD("]\n"),
		WORD("{\"jsonrpc\":\"2.0\"}\n"), WORD("\0\0\0\n"), WORD("\xff\xfe\n\r\0"),
		WORD("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n"),
		WORD("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"group.fail\","
		     "\"params\":{\"group\":-1}}\n"),
		WORD("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), WORD("GET /"),
		WORD("POST / HTTP/9.9\r\nContent-Length: 99999999999999999999\r\n\r\n"),
		WORD("\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03")};
#undef WORD
	const unsigned n_words = sizeof(words) / sizeof(words[0]);

	for (unsigned i = 0; i < rounds; i++) {
		int s = come(where);

		send(s, words[i % n_words].text, words[i % n_words].len, MSG_NOSIGNAL);
		leave(s, i / n_words);
	}
	return rounds;
}

int main(int argc, char **argv)
{
	const unsigned rounds = argc == 4 ? (unsigned)atoi(argv[3]) : 0;

	if (argc == 4 && strcmp(argv[1], "stream") == 0)
		printf("%u\n", stream(argv[2], rounds));
	else if (argc == 4 && strcmp(argv[1], "vhost") == 0)
		printf("%u\n", vhost(argv[2], rounds));
	else if (argc == 4 && (strcmp(argv[1], "free") == 0 || strcmp(argv[1], "busy") == 0))
		printf("%u\n", memif(argv[2], argv[1][0] == 'f', rounds));
	else
		return 2;
	return 0;
}
