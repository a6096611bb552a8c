/* SPDX-License-Identifier: BSD-3-Clause */
/* The running configuration, and the start-up file that it can be saved to. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ctrl/agent/table_json.h"
#include "ctrl/config/switch_config.h"

/* ---- running configuration ---- */

bool table_row_is_own(const json_t *config, const struct table_rows *rows, uint32_t i)
{
	struct wire_ip ip;
	json_t *text;
	size_t k;

	if (strcmp(rows->desc->name, "local_addr") != 0)
		return false;
	json_array_foreach(json_object_get(config, "addresses"), k,
		text) if (json_is_string(text) && !wire_ip_parse(json_string_value(text), &ip) &&
			  wire_ip_eq(&ip, &rows->entry[i].key[0].ip)) return true;
	return false;
}

/* Entries of all tables that have some, as in the configuration file. */
static json_t *tables_json(struct sw *sw, const json_t *config, json_int_t *entries)
{
	const struct table_registry *reg = sw_tables(sw);
	json_t *out = json_object();
	struct port_names ports;

	port_names_read(sw, &ports);
	*entries = 0;
	for (unsigned i = 0; i < table_count(reg); i++) {
		struct table_rows rows;

		table_rows(reg, i, &rows);
		json_t *list = json_array();
		for (uint32_t k = 0; k < rows.n; k++)
			if (!table_row_is_own(config, &rows, k))
				json_array_append_new(list,
					table_entry_to_json(rows.desc, &rows.entry[k], &ports));
		*entries += (json_int_t)json_array_size(list);
		if (json_array_size(list))
			json_object_set(out, rows.desc->name, list);
		json_decref(list);
	}
	return out;
}

static json_t *running_config(struct sw *sw, json_int_t *entries)
{
	json_t *given = sw_config_json(sw), *config = json_copy(given);

	json_decref(given);
	json_object_del(config, "startup_file");
	json_object_set_new(config, "tables", tables_json(sw, config, entries));
	return config;
}

int rpc_config_get(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_int_t entries;
	json_t *config = running_config(a->sw, &entries);

	(void)e;
	if (!rpc_bool(params, "tables", true))
		json_object_del(config, "tables");
	*result = json_pack("{s:o}", "config", config);
	return 0;
}

/* ---- saving ---- */

static int write_all(int fd, const char *buf, size_t len)
{
	while (len) {
		ssize_t n = write(fd, buf, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		buf += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The file keeps its mode; a new one gets 0644. */
static mode_t mode_for(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0644 : st.st_mode & 07777;
}

static int sync_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	int rc = fsync(fd) ? -errno : 0;
	close(fd);
	return rc;
}

/* Writes beside the file, then renames: whoever reads it, or restarts after a crash, finds the old
 * content or the new one. */
static int replace_file(const char *path, const char *text, size_t len)
{
	char dir_buf[PATH_MAX], tmp[PATH_MAX];

	snprintf(dir_buf, sizeof(dir_buf), "%s", path);
	const char *dir = dirname(dir_buf);
	if (snprintf(tmp, sizeof(tmp), "%s/.incline-XXXXXX", dir) >= (int)sizeof(tmp))
		return -ENAMETOOLONG;
	int fd = mkostemp(tmp, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = write_all(fd, text, len);
	if (!rc && (fchmod(fd, mode_for(path)) || fsync(fd)))
		rc = -errno;
	if (close(fd) && !rc)
		rc = -errno;
	if (!rc && rename(tmp, path))
		rc = -errno;
	if (rc)
		unlink(tmp);
	else
		rc = sync_dir(dir);
	return rc;
}

int rpc_config_save(struct agent *a, const json_t *params, json_t **result, struct rpc_error *e)
{
	json_int_t entries;

	(void)params;
	if (!a->startup_file[0])
		return rpc_fail(e, -ENOENT, "",
			"the switch was started without a configuration file to save to");
	json_t *config = running_config(a->sw, &entries);
	char *text = json_dumps(config, JSON_INDENT(2));
	json_decref(config);
	if (!text)
		return rpc_fail(e, -ENOMEM, "", "out of memory");
	size_t len = strlen(text);
	text[len++] = '\n'; /* in place of the terminator */
	int rc = replace_file(a->startup_file, text, len);
	free(text);
	if (rc)
		return rpc_fail(e, rc, "", "cannot write %s: %s", a->startup_file, strerror(-rc));
	*result = json_pack("{s:o,s:o,s:I}", "file", rpc_text(a->startup_file), "bytes",
		ctl_u64(len), "entries", entries);
	return 0;
}
