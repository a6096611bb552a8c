/* SPDX-License-Identifier: BSD-3-Clause */
/* Knocks at sockets of a switch: knocker memif PATH ID ROUNDS, all kinds of knocks at a memif
 * server whose port ID has a client; or knocker control PATH ROUNDS. Prints how many knocks it
 * made. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/unit/port/knock.h"

static unsigned memif(const char *path, unsigned id, unsigned rounds)
{
	unsigned n = 0;

	for (unsigned round = 0; round < rounds; round++)
		for (int kind = 0; kind < N_KNOCKS; kind++) {
			int rc;

			/* No port is free here: only what never gets so far. */
			if (knock_counted[kind] == NULL || kind == KNOCK_CONNECT_TWICE ||
				(kind > KNOCK_BUSY && kind != KNOCK_INIT_FD))
				continue;
			rc = knock(path, (enum knock)kind, (uint16_t)id, (uint16_t)id);
			if (rc != 0) {
				fprintf(stderr, "%s: %s\n", knock_text[kind], strerror(-rc));
				exit(1);
			}
			n++;
		}
	return n;
}

static unsigned control(const char *path, unsigned rounds)
{
	static const char *const words[] = {"", "{", "\n\n\n", "5\n", "{\"jsonrpc\":\"2.0\"}\n",
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}\n", "\0\0\0\n", "]\n"};
	unsigned n = 0;

	for (unsigned i = 0; i < rounds; i++) {
		struct sockaddr_un at = {.sun_family = AF_UNIX};
		const char *word = words[i % (sizeof(words) / sizeof(words[0]))];
		int s = socket(AF_UNIX, SOCK_STREAM, 0);

		snprintf(at.sun_path, sizeof(at.sun_path), "%s", path);
		if (connect(s, (const struct sockaddr *)&at, sizeof(at)) != 0) {
			perror(path);
			exit(1);
		}
		send(s, word, strlen(word), MSG_NOSIGNAL);
		close(s);
		n++;
	}
	return n;
}

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "memif") == 0)
		printf("%u\n", memif(argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4])));
	else if (argc == 4 && strcmp(argv[1], "control") == 0)
		printf("%u\n", control(argv[2], (unsigned)atoi(argv[3])));
	else
		return 2;
	return 0;
}
