/* SPDX-License-Identifier: BSD-3-Clause */
/* incline-dissect: the connections of a capture, packet by packet. */
#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "apps/dissect.h"

static const char usage_text[] =
	"usage: incline-dissect [OPTIONS] FILE\n"
	"Shows what RoCE packets a capture has (pcap, pcapng; - for standard input), connection\n"
	"by connection, with what their PSNs say, whether their ICRC is right, and the messages "
	"of\n"
	"collectives, headers of MRC and segments of SRv6 that they carry.\n"
	"\n"
	"  -j, --json           print it as JSON\n"
	"  -b, --block BLOCK    of micro-segments, the first 32 bits; default fcbb:bb00\n"
	"  -V, --version        print the version\n"
	"  -h, --help           print this\n"
	"\n"
	"Exit status: 0 done, 1 the file cannot be read or is malformed, 2 wrong usage.\n";

struct options {
	bool json;
	uint32_t block;
	const char *file;
};

/* Of "fcbb:bb00": 0, or -EINVAL. */
static int parse_block(const char *text, uint32_t *block)
{
	char whole[WIRE_IP_STRLEN];
	struct wire_ip ip;

	if (snprintf(whole, sizeof(whole), "%s::", text) >= (int)sizeof(whole) ||
		wire_ip_parse(whole, &ip) || ip.b[4] || ip.b[5])
		return -EINVAL;
	*block = (uint32_t)ip.b[0] << 24 | (uint32_t)ip.b[1] << 16 | (uint32_t)ip.b[2] << 8 |
		 ip.b[3];
	return 0;
}

/* -1: go on; else exit with this status. */
static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {{"json", no_argument, NULL, 'j'},
		{"block", required_argument, NULL, 'b'}, {"version", no_argument, NULL, 'V'},
		{"help", no_argument, NULL, 'h'}, {0}};
	int c;

	while ((c = getopt_long(argc, argv, "jb:Vh", longs, NULL)) != -1) {
		switch (c) {
		case 'j':
			o->json = true;
			break;
		case 'b':
			if (!parse_block(optarg, &o->block))
				break;
			fprintf(stderr, "error: --block: %s: must be like fcbb:bb00\n", optarg);
			return 2;
		case 'V':
			printf("incline-dissect %s\n", INCLINE_VERSION);
			return 0;
		case 'h':
			fputs(usage_text, stdout);
			return 0;
		default:
			fputs("error: see incline-dissect --help\n", stderr);
			return 2;
		}
	}
	if (argc - optind != 1) {
		fputs("error: wants one file, see incline-dissect --help\n", stderr);
		return 2;
	}
	o->file = argv[optind];
	return -1;
}

/* The whole file, to be freed; NULL: errno. */
static uint8_t *load(const char *path, size_t *len)
{
	FILE *in = strcmp(path, "-") ? fopen(path, "rbe") : stdin;
	size_t cap = 1 << 20;
	uint8_t *data = in ? malloc(cap) : NULL;

	*len = 0;
	while (data && !feof(in) && !ferror(in)) {
		if (*len == cap) {
			uint8_t *more = realloc(data, cap *= 2);

			if (!more)
				free(data);
			data = more;
		}
		if (data)
			*len += fread(data + *len, 1, cap - *len, in);
	}
	if (data && ferror(in)) {
		free(data);
		data = NULL;
	}
	if (in && in != stdin)
		fclose(in);
	return data;
}

int main(int argc, char **argv)
{
	struct options o = {.block = 0xfcbbbb00};
	char err[DISSECT_ERR];
	json_t *result;
	uint8_t *data;
	size_t len;
	int rc = parse_options(argc, argv, &o);

	if (rc >= 0)
		return rc;
	data = load(o.file, &len);
	if (!data) {
		fprintf(stderr, "error: %s: %s\n", o.file, strerror(errno));
		return 1;
	}
	result = dissect_file(data, len, o.block, err);
	free(data);
	if (!result) {
		fprintf(stderr, "error: %s: %s\n", o.file, err);
		return 1;
	}
	if (o.json) {
		json_dumpf(result, stdout, JSON_INDENT(1));
		fputc('\n', stdout);
	} else {
		dissect_text(stdout, result);
	}
	json_decref(result);
	if (fflush(stdout) || ferror(stdout)) {
		fputs("error: standard output: cannot be written\n", stderr);
		return 1;
	}
	return 0;
}
