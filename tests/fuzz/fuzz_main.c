/* SPDX-License-Identifier: BSD-3-Clause */
/* Drives a fuzz target without libFuzzer: every input as it is, then a bounded number of mutations
 * of them from a seeded generator, so that a run can be repeated. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/unit/wire/pcap_file.h"

enum { MAX_LEN = 16384, PATH_LEN = 4096 };

struct input {
	uint8_t *data;
	size_t len;
};

static struct input *inputs;
static size_t n_inputs;
static uint64_t random_state;

/* The input being handled, for the file that a crash leaves. */
static const uint8_t *current;
static size_t current_len;
static const char crash_path[] = "fuzz-crash.bin";

static void save_current(void)
{
	int fd = current ? open(crash_path, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;

	if (fd < 0)
		return;
	if (write(fd, current, current_len) == (ssize_t)current_len)
		(void)!write(2, "input saved as fuzz-crash.bin\n", 30);
	close(fd);
	current = NULL;
}

static void on_signal(int number)
{
	save_current();
	signal(number, SIG_DFL);
	raise(number);
}

/* Sanitizers end the program by themselves, without a signal. */
void __sanitizer_set_death_callback(void (*callback)(void)) __attribute__((weak));

static void catch_crashes(void)
{
	static const int numbers[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGTERM};

	if (__sanitizer_set_death_callback)
		__sanitizer_set_death_callback(save_current);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i] != SIGSEGV || !__sanitizer_set_death_callback)
			signal(numbers[i], on_signal);
}

static void add_input(const uint8_t *data, size_t len)
{
	struct input input = {malloc(len ? len : 1), len};

	memcpy(input.data, data, len);
	inputs = realloc(inputs, (n_inputs + 1) * sizeof(*inputs));
	inputs[n_inputs++] = input;
}

static void add_seeds(void)
{
	uint8_t *buf = malloc(MAX_LEN);
	size_t len;

	for (unsigned i = 0; fuzz_seed && (len = fuzz_seed(i, buf, MAX_LEN)) > 0; i++)
		add_input(buf, len);
	free(buf);
}

static int add_file(const char *path)
{
	uint8_t *buf;
	struct pcap_file file;
	size_t len;
	FILE *in;

	if (pcap_file_read(path, &file) == 0) {
		for (size_t i = 0; i < file.n; i++)
			add_input(file.packets[i].data, file.packets[i].len);
		pcap_file_free(&file);
		return 0;
	}
	in = fopen(path, "rb");
	if (!in)
		return -errno;
	buf = malloc(MAX_LEN);
	len = fread(buf, 1, MAX_LEN, in);
	fclose(in);
	add_input(buf, len);
	free(buf);
	return 0;
}

static int add_path(const char *path)
{
	struct dirent **entries;
	struct stat st;
	int n, rc = 0;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return add_file(path);
	n = scandir(path, &entries, NULL, alphasort); /* sorted: the same run everywhere */
	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		char sub[PATH_LEN];

		if (rc == 0 && entries[i]->d_name[0] != '.') {
			snprintf(sub, sizeof(sub), "%s/%s", path, entries[i]->d_name);
			rc = add_path(sub);
		}
		free(entries[i]);
	}
	free(entries);
	return rc;
}

/* A copy of exactly len bytes, so that ASan sees a read past the end. */
static void run_one(const uint8_t *data, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1);

	memcpy(copy, data, len);
	current = copy;
	current_len = len;
	LLVMFuzzerTestOneInput(copy, len);
	current = NULL;
	free(copy);
}

/* 0 .. limit - 1; limit > 0. */
static size_t random_below(size_t limit)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return (size_t)((random_state * UINT64_C(0x2545f4914f6cdd1d)) >> 20) % limit;
}

/* Headers are where the structure is: half of the positions are among the first 128 bytes. */
static size_t random_position(size_t len)
{
	return random_below(random_below(2) && len > 128 ? 128 : len);
}

static void overwrite_number(uint8_t *buf, size_t len)
{
	static const uint64_t numbers[] = {0, 1, 2, 3, 4, 7, 8, 16, 0x7f, 0x80, 0xff, 0x100, 0x7fff,
		0x8000, 0xffff, 0x7fffff, 0x800000, 0xffffff, 0x7fffffff, 0x80000000, 0xffffffff,
		UINT64_MAX};
	uint64_t number = random_below(4) ? numbers[random_below(sizeof(numbers) / 8)] : len;
	size_t width = (size_t)1 << random_below(4), at = random_position(len);
	bool little = random_below(2);

	number += random_below(3) - 1;
	for (size_t i = 0; i < width && at + i < len; i++)
		buf[at + i] = (uint8_t)(number >> 8 * (little ? i : width - 1 - i));
}

static size_t delete_range(uint8_t *buf, size_t len)
{
	size_t at = random_position(len), n = 1 + random_below(len - at);

	if (random_below(2) && n > 8)
		n = 1 + n % 8;
	memmove(buf + at, buf + at + n, len - at - n);
	return len - n;
}

/* Room for n bytes at a random place; what they are does not matter yet. */
static size_t insert_range(uint8_t *buf, size_t len)
{
	size_t at = random_position(len), n = 1 + random_below(random_below(4) ? 8 : 512);

	if (len + n > MAX_LEN)
		return len;
	memmove(buf + at + n, buf + at, len - at);
	for (size_t i = 0; i < n; i++)
		buf[at + i] = (uint8_t)random_below(256);
	return len + n;
}

/* The rest from another input. */
static size_t join_other(uint8_t *buf, size_t len)
{
	const struct input *other = &inputs[random_below(n_inputs)];
	size_t at = random_position(len);
	size_t n = other->len > at ? other->len - at : 0;

	if (n > MAX_LEN - at)
		n = MAX_LEN - at;
	memcpy(buf + at, other->data + (other->len > at ? at : 0), n);
	return at + n;
}

static size_t mutate(uint8_t *buf, size_t len)
{
	if (len == 0) {
		buf[0] = (uint8_t)random_below(256);
		return 1;
	}
	switch (random_below(10)) {
	case 0:
		return random_below(len + 1); /* cut */
	case 1:
		return delete_range(buf, len);
	case 2:
		return insert_range(buf, len);
	case 3:
		return join_other(buf, len);
	case 4:
	case 5:
		overwrite_number(buf, len);
		return len;
	case 6:
		buf[random_position(len)] = (uint8_t)random_below(256);
		return len;
	default:
		buf[random_position(len)] ^= (uint8_t)(1 << random_below(8));
		return len;
	}
}

static void run_mutations(unsigned long runs)
{
	uint8_t *buf = malloc(MAX_LEN);

	while (runs--) {
		const struct input *base = &inputs[random_below(n_inputs)];
		size_t len = base->len < MAX_LEN ? base->len : MAX_LEN;

		memcpy(buf, base->data, len);
		for (size_t n = 1 + random_below(5); n; n--)
			len = mutate(buf, len);
		run_one(buf, len);
	}
	free(buf);
}

/* One file per input, as libFuzzer wants its corpus. */
static int extract(const char *folder)
{
	if (mkdir(folder, 0777) < 0 && errno != EEXIST)
		return -errno;
	for (size_t i = 0; i < n_inputs; i++) {
		char path[PATH_LEN];
		FILE *out;

		snprintf(path, sizeof(path), "%s/%06zu", folder, i);
		out = fopen(path, "wb");
		if (!out)
			return -errno;
		fwrite(inputs[i].data, 1, inputs[i].len, out);
		if (fclose(out) != 0)
			return -errno;
	}
	return 0;
}

static void free_inputs(void)
{
	for (size_t i = 0; i < n_inputs; i++)
		free(inputs[i].data);
	free(inputs);
}

int main(int argc, char **argv)
{
	unsigned long runs = 0, seed = 1;
	const char *folder = NULL;
	int rc = 0;

	add_seeds();
	for (int i = 1; i < argc && rc == 0; i++) {
		if (strncmp(argv[i], "-runs=", 6) == 0)
			runs = strtoul(argv[i] + 6, NULL, 0);
		else if (strncmp(argv[i], "-seed=", 6) == 0)
			seed = strtoul(argv[i] + 6, NULL, 0);
		else if (strncmp(argv[i], "-extract=", 9) == 0)
			folder = argv[i] + 9;
		else if ((rc = add_path(argv[i])) < 0)
			fprintf(stderr, "%s: %s\n", argv[i], strerror(-rc));
	}
	if (rc == 0 && n_inputs == 0) {
		fprintf(stderr,
			"usage: %s [-runs=N] [-seed=N] [-extract=FOLDER] FILE|FOLDER|PCAP...\n",
			argv[0]);
		rc = -EINVAL;
	}
	if (rc == 0 && folder) {
		if ((rc = extract(folder)) < 0)
			fprintf(stderr, "%s: %s\n", folder, strerror(-rc));
	} else if (rc == 0) {
		catch_crashes();
		for (size_t i = 0; i < n_inputs; i++)
			run_one(inputs[i].data, inputs[i].len);
		random_state = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
		run_mutations(runs);
		printf("%zu inputs, %lu mutations, seed %lu: ok\n", n_inputs, runs, seed);
	}
	free_inputs();
	return rc < 0 ? 2 : 0;
}
