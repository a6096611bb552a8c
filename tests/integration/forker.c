/* SPDX-License-Identifier: BSD-3-Clause */
/* A program with two devices that writes from one to the other, on and on, while it forks. Without
 * an argument: children that change the registered memory and exit, that run a program, that try to
 * use a device; "ok" if every byte was right throughout.
 *
 * With "stay": a child that lives on, and one that has become sleep(1); prints "ready PID PID" and
 * writes until it is killed. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "pair.h"

enum { WRITES = 50, CHILDREN = 5 };

/* What a child writes to registered memory stays its own. */
static void in_child(const struct end *a, const struct end *b, struct ibv_device *device, int kind)
{
	struct ibv_context *context;

	memset(a->buf, 0xee, SIZE);
	memset(b->buf, 0xee, SIZE);
	switch (kind % 4) {
	case 0:
		exit(0); /* with its exit handlers: the port is the parent's to close */
	case 1:
		_exit(0);
	case 2:
		execlp("true", "true", (char *)NULL);
		_exit(1);
	default:
		errno = 0;
		context = ibv_open_device(device);
		_exit(!context && errno == ENODEV ? 0 : 1);
	}
}

static void fork_and_write(struct end *a, struct end *b, struct ibv_device *device)
{
	for (int i = 0; i < 4 * CHILDREN; i++) {
		const pid_t child = fork();
		int status;

		assert(child >= 0);
		if (child == 0)
			in_child(a, b, device, i);
		for (int k = 0; k < WRITES; k++)
			write_once(i & 1 ? a : b, i & 1 ? b : a, (uint8_t)(k + 1));
		assert(waitpid(child, &status, 0) == child);
		assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
	assert(system("true") == 0);
	write_once(a, b, 1);
	printf("ok\n");
}

static void stay(struct end *a, struct end *b)
{
	pid_t child[2];

	for (int i = 0; i < 2; i++) {
		child[i] = fork();
		assert(child[i] >= 0);
		if (child[i] > 0)
			continue;
		fclose(stdout);
		fclose(stderr);
		if (i == 1)
			execlp("sleep", "sleep", "600", (char *)NULL);
		sleep(600);
		_exit(0);
	}
	write_once(a, b, 1);
	printf("ready %d %d\n", (int)child[0], (int)child[1]);
	fflush(stdout);
	for (;;)
		write_once(a, b, 2);
}

int main(int argc, char **argv)
{
	struct ibv_device **list;
	struct end end[2];
	int n;

	assert(ibv_fork_init() == 0);
	list = ibv_get_device_list(&n);
	assert(list && n == 2);
	open_pair(end, list);
	if (argc > 1 && strcmp(argv[1], "stay") == 0)
		stay(&end[0], &end[1]);
	else
		fork_and_write(&end[0], &end[1], list[0]);
	for (int i = 0; i < 2; i++)
		ibv_close_device(end[i].context);
	ibv_free_device_list(list);
	return 0;
}
