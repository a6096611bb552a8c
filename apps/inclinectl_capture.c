/* SPDX-License-Identifier: BSD-3-Clause */
/* "capture PORT FILE": packets of a port into pcapng files, until so many are there or the command
 * is interrupted. The filter is compiled here, and the files are written here, with the rights of
 * whoever asks. */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdlib.h>
#include <string.h>

#include "apps/inclinectl_cmd.h"
#include "lib/ctl/base64.h"
#include "lib/pcapng/pcapng.h"

enum {
	AT_ONCE = 500,
	PAUSE_MS = 50,
	LAST_READS = 100, /* of what is still there after the end has been asked for */
	MAX_SNAPLEN = 65535,
	MB = 1000000,
};

/* ---- words ---- */

struct wanted {
	const char *port, *file, *dir, *filter; /* NULL: not said */
	json_int_t count, snaplen, mb, files;   /* 0: not said */
};

static int take_number(const char *option, const char *word, json_int_t *n, char *err)
{
	if (cli_int(word, n) || *n < 1)
		return cli_refuse(err, -EINVAL, "%s: %s: must be an integer above 0", option, word);
	return 0;
}

/* An option and its value; -ENOENT: it is none. */
static int take_option(const char *option, const char *word, struct wanted *w, char *err)
{
	static const struct {
		const char *brief, *full;
	} names[] = {{"-c", "--count"}, {"-s", "--snaplen"}, {"-C", "--file-mb"}, {"-W", "--files"},
		{"--dir", "--dir"}, {"--filter", "--filter"}};
	json_int_t *const numbers[] = {&w->count, &w->snaplen, &w->mb, &w->files};
	const char **const texts[] = {&w->dir, &w->filter};
	unsigned i = 0;

	while (i < 6 && strcmp(option, names[i].brief) && strcmp(option, names[i].full))
		i++;
	if (i == 6)
		return cli_refuse(err, -EINVAL, "%s: is not an option", option);
	if (!word)
		return cli_refuse(err, -EINVAL, "%s: wants a value", option);
	if (i < 4)
		return take_number(option, word, numbers[i], err);
	*texts[i - 4] = word;
	return 0;
}

static int take_words(unsigned argc, const char *const *argv, struct wanted *w, char *err)
{
	int rc = 0;

	*w = (struct wanted){0};
	for (unsigned i = 0; i < argc && !rc; i++) {
		if (argv[i][0] == '-' && argv[i][1]) {
			rc = take_option(argv[i], i + 1 < argc ? argv[i + 1] : NULL, w, err);
			i++;
		} else if (!w->port) {
			w->port = argv[i];
		} else if (!w->file) {
			w->file = argv[i];
		} else {
			rc = cli_refuse(err, -EINVAL, "%s: is one word too many", argv[i]);
		}
	}
	if (!rc && !w->file)
		rc = cli_refuse(err, -EINVAL, "wants a port and a file");
	if (!rc && w->files && !w->mb)
		rc = cli_refuse(err, -EINVAL, "-W: wants -C, the size of a file");
	if (!rc && w->mb && !strcmp(w->file, "-"))
		rc = cli_refuse(err, -EINVAL, "-C: standard output is one file");
	return rc;
}

/* As the switch takes it. */
static json_t *compile(const char *expression, char *err)
{
	pcap_t *dead = pcap_open_dead(DLT_EN10MB, MAX_SNAPLEN);
	json_t *out = NULL;
	struct bpf_program p;

	if (!dead || pcap_compile(dead, &p, expression, 1, PCAP_NETMASK_UNKNOWN)) {
		cli_refuse(err, -EINVAL, "--filter: %s", dead ? pcap_geterr(dead) : "no memory");
	} else {
		out = json_array();
		for (u_int i = 0; i < p.bf_len; i++)
			json_array_append_new(out,
				json_pack("{s:i,s:i,s:i,s:I}", "code", (int)p.bf_insns[i].code,
					"jt", (int)p.bf_insns[i].jt, "jf", (int)p.bf_insns[i].jf,
					"k", (json_int_t)p.bf_insns[i].k));
		pcap_freecode(&p);
	}
	if (dead)
		pcap_close(dead);
	return out;
}

int cli_parse_capture(unsigned argc, const char *const *argv, json_t *params, char err[CLI_ERR_LEN])
{
	struct wanted w;
	json_t *filter;
	int rc = take_words(argc, argv, &w, err);

	if (rc)
		return rc;
	json_object_set_new(params, "port", json_string(w.port));
	if (w.dir)
		json_object_set_new(params, "dir", json_string(w.dir));
	if (w.snaplen)
		json_object_set_new(params, "snaplen", json_integer(w.snaplen));
	if (!w.filter)
		return 0;
	filter = compile(w.filter, err);
	if (!filter)
		return -EINVAL;
	json_object_set_new(params, "filter", filter);
	return 0;
}

/* ---- files ---- */

struct capture {
	struct cli *cli;
	struct wanted want;
	json_int_t id;
	uint64_t epoch_ns, last_ns;
	FILE *out;
	bool broken;     /* it cannot be written, which has been said */
	char name[4096]; /* of the file that is open */
	uint64_t files, packets, bytes, file_bytes;
	uint64_t captured, dropped, filtered;
	uint64_t told_captured, told_dropped; /* by the files before */
};

/* "h0.pcapng" becomes "h0-3.pcapng". */
static int name_file(struct capture *c)
{
	const char *file = c->want.file, *slash = strrchr(file, '/');
	const char *dot = strrchr(slash ? slash : file, '.');
	const uint64_t n = c->want.files ? c->files % (uint64_t)c->want.files : c->files;
	int len;

	if (!dot)
		dot = file + strlen(file);
	if (c->want.mb)
		len = snprintf(c->name, sizeof(c->name), "%.*s-%llu%s", (int)(dot - file), file,
			(unsigned long long)n, dot);
	else
		len = snprintf(c->name, sizeof(c->name), "%s", file);
	return len < (int)sizeof(c->name) ? 0 : -ENAMETOOLONG;
}

static int failed(struct capture *c, int rc)
{
	if (!c->broken)
		fprintf(c->cli->err, "error: %scapture: %s: %s\n", c->cli->where, c->name,
			strerror(-rc));
	c->broken = true;
	return rc;
}

/* What has been put into it is in it: a disk that is full shows here. */
static int flush_file(struct capture *c)
{
	errno = 0;
	if (!fflush(c->out) && !ferror(c->out))
		return 0;
	return errno ? -errno : -EIO;
}

static int open_file(struct capture *c)
{
	int rc = name_file(c);

	if (rc)
		return failed(c, rc);
	c->out = strcmp(c->name, "-") ? fopen(c->name, "wbe") : c->cli->out;
	if (!c->out)
		return failed(c, -errno);
	c->files++;
	c->file_bytes = pcapng_section(c->out, "inclinectl " INCLINE_VERSION);
	c->file_bytes +=
		pcapng_interface(c->out, c->want.port, (uint32_t)c->want.snaplen, c->want.filter);
	return 0;
}

/* With what was counted since the file before. */
static int close_file(struct capture *c)
{
	const uint64_t dropped = c->dropped - c->told_dropped;
	const uint64_t all = c->captured - c->told_captured + dropped;
	int rc;

	if (!c->out)
		return 0;
	c->file_bytes += pcapng_statistics(c->out, 0, c->last_ns, all, dropped);
	c->told_captured = c->captured;
	c->told_dropped = c->dropped;
	c->bytes += c->file_bytes;
	rc = flush_file(c);
	if (c->out != c->cli->out && fclose(c->out) && !rc)
		rc = -errno;
	c->out = NULL;
	return rc ? failed(c, rc) : 0;
}

static int put_packet(struct capture *c, const json_t *json)
{
	const char *drop = json_string_value(json_object_get(json, "drop"));
	const char *outcome = json_string_value(json_object_get(json, "outcome"));
	const char *dir = json_string_value(json_object_get(json, "dir"));
	struct pcapng_packet p = {.len = (uint32_t)json_integer_value(json_object_get(json, "len")),
		.direction = dir && !strcmp(dir, "out") ? PCAPNG_OUT : PCAPNG_IN};
	char comment[128];
	uint8_t *data;
	size_t cap;
	int rc;

	if (ctl_get_u64(json_object_get(json, "ns"), &p.ns) ||
		ctl_get_bytes(json_object_get(json, "data"), &data, &cap))
		return failed(c, -EPROTO);
	p.ns += c->epoch_ns;
	p.cap = (uint32_t)cap;
	p.data = data;
	if (drop || outcome) {
		snprintf(comment, sizeof(comment), "%s %s", drop ? "drop" : "outcome",
			drop ? drop : outcome);
		p.comment = comment;
	}
	rc = c->want.mb && c->file_bytes >= (uint64_t)c->want.mb * MB ? close_file(c) : 0;
	if (!rc && !c->out)
		rc = open_file(c);
	if (!rc) {
		c->file_bytes += pcapng_packet(c->out, &p);
		c->packets++;
		c->last_ns = p.ns;
	}
	free(data);
	return rc;
}

/* ---- the capture ---- */

static int call(struct capture *c, const char *method, const json_t *params, json_t **result)
{
	struct ctl_error e;
	int rc = c->cli->call(c->cli->arg, method, params, result, &e);

	if (rc)
		fprintf(c->cli->err, "error: %scapture: %s%s%s\n", c->cli->where, e.path,
			e.path[0] ? ": " : "", e.msg);
	return rc;
}

static void take_counts(struct capture *c, const json_t *result)
{
	ctl_get_u64(json_object_get(result, "captured"), &c->captured);
	ctl_get_u64(json_object_get(result, "dropped"), &c->dropped);
	ctl_get_u64(json_object_get(result, "filtered"), &c->filtered);
}

static bool is_enough(const struct capture *c)
{
	return c->want.count && c->packets >= (uint64_t)c->want.count;
}

/* What is there; *more: that was not all. */
static int read_some(struct capture *c, bool *more)
{
	json_t *params = json_pack("{s:I,s:i}", "capture", c->id, "limit", AT_ONCE);
	json_t *result = NULL, *packet;
	size_t i;
	int rc = call(c, "capture.read", params, &result);

	json_decref(params);
	if (rc)
		return rc;
	take_counts(c, result);
	*more = json_array_size(json_object_get(result, "packets")) > 0;
	json_array_foreach(json_object_get(result, "packets"), i, packet)
	{
		if (is_enough(c))
			break;
		rc = put_packet(c, packet);
		if (rc)
			break;
	}
	json_decref(result);
	if (!rc && c->out && (rc = flush_file(c)) != 0)
		failed(c, rc);
	return rc;
}

static int read_all(struct capture *c)
{
	bool more = false;
	int rc;

	do
		rc = read_some(c, &more);
	while (!rc && !is_enough(c) && !c->cli->pause(c->cli->arg, more ? 0 : PAUSE_MS));
	for (unsigned i = 0; !rc && !is_enough(c) && (!i || more) && i < LAST_READS; i++)
		rc = read_some(c, &more);
	return rc;
}

static int start(struct capture *c, const json_t *params)
{
	json_t *result = NULL;
	int rc = call(c, "capture.start", params, &result);

	c->id = json_integer_value(json_object_get(result, "capture"));
	ctl_get_u64(json_object_get(result, "epoch_ns"), &c->epoch_ns);
	json_decref(result);
	return rc;
}

static int stop(struct capture *c)
{
	json_t *params = json_pack("{s:I}", "capture", c->id), *result = NULL;
	int rc = call(c, "capture.stop", params, &result);

	take_counts(c, result);
	json_decref(params);
	json_decref(result);
	return rc;
}

static const struct ctl_field summary_fields[] = {
	{"file", CTL_STRING, .required = true, .help = "that was written last"},
	{"files", CTL_U64, .required = true, .help = "that were written"},
	{"packets", CTL_U64, .required = true, .help = "that were written"},
	{"bytes", CTL_U64, .required = true, .help = "of files"},
	{"captured", CTL_U64, .required = true, .help = "packets that the switch has copied"},
	{"dropped", CTL_U64, .required = true, .help = "packets that are missing"},
	{"filtered", CTL_U64, .required = true, .help = "packets that the filter left out"}, {0}};

static void summary(const struct capture *c)
{
	struct cli *cli = c->cli;
	FILE *out = strcmp(c->want.file, "-") ? cli->out : cli->err;
	json_t *s = json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "file", c->name, "files",
		ctl_u64(c->files), "packets", ctl_u64(c->packets), "bytes", ctl_u64(c->bytes),
		"captured", ctl_u64(c->captured), "dropped", ctl_u64(c->dropped), "filtered",
		ctl_u64(c->filtered));

	if (cli->json) {
		json_dumpf(s, out, JSON_INDENT(2));
		fputc('\n', out);
	} else {
		cli_text(out, summary_fields, s);
	}
	fflush(out);
	json_decref(s);
}

int cli_capture(struct cli *cli, unsigned argc, const char *const *argv)
{
	const struct cli_command *command;
	struct capture c = {.cli = cli};
	json_t *params = NULL;
	char err[CLI_ERR_LEN];
	int rc = cli_parse(argc, argv, &command, &params, err), closed, stopped;

	if (rc) {
		fprintf(cli->err, "error: %s%s\n", cli->where, err);
		return CLI_USAGE;
	}
	take_words(argc - 1, argv + 1, &c.want, err);
	cli->pause(cli->arg, 0);
	rc = start(&c, params);
	json_decref(params);
	if (rc)
		return CLI_FAILED;
	rc = open_file(&c);
	if (!rc)
		rc = read_all(&c);
	/* Whatever it was: the connection, and so the capture, may outlive this command. */
	stopped = stop(&c);
	closed = close_file(&c);
	if (c.files && !c.broken)
		summary(&c);
	return rc || stopped || closed ? CLI_FAILED : CLI_OK;
}
