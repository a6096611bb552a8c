/* SPDX-License-Identifier: BSD-3-Clause */
/* Sets of paths. */
#include <errno.h>
#include <string.h>

#include "lib/mrc/transport_priv.h"
#include "lib/srv6/template.h"
#include "lib/wire/random.h"

enum { SPORT_HIGH = 0x8000 }; /* drawn ports stay out of the well-known ones */

static uint64_t draw(uint64_t *random)
{
	return wire_random(random);
}

static bool has(const struct rnic_mrc_paths *paths, uint32_t ev)
{
	for (unsigned i = 0; i < paths->n; i++) {
		if (paths->path[i].ev == ev)
			return true;
	}
	return false;
}

int rnic_mrc_paths_auto(struct rnic_mrc_paths *paths, enum rnic_mrc_format format, unsigned n_ports,
	unsigned n, uint64_t seed)
{
	const uint32_t mask = format == RNIC_MRC_UDP ? UINT16_MAX : UINT32_MAX;

	if (n_ports < 1 || n_ports > MRC_MAX_PORTS || n < 1 || n > MRC_MAX_EVS || n % n_ports ||
		(format != RNIC_MRC_UDP && format != RNIC_MRC_STEV))
		return -EINVAL;
	memset(paths, 0, sizeof(*paths));
	paths->format = format;
	while (paths->n < n) {
		/* Whichever half becomes the source port. */
		const uint32_t ev =
			((uint32_t)draw(&seed) | SPORT_HIGH | (uint32_t)SPORT_HIGH << 16) & mask;

		if (has(paths, ev))
			continue;
		paths->path[paths->n].ev = ev;
		paths->path[paths->n].port = (uint8_t)(paths->n % n_ports);
		paths->n++;
	}
	return 0;
}

int rnic_mrc_paths_srv6(struct rnic_mrc_paths *paths, const struct srv6_template *t,
	const uint32_t *ev, const uint8_t *ports, unsigned n)
{
	if (n < 1 || n > MRC_MAX_EVS)
		return -EINVAL;
	memset(paths, 0, sizeof(*paths));
	paths->format = RNIC_MRC_SRV6;
	for (unsigned i = 0; i < n; i++) {
		struct rnic_mrc_path *path = &paths->path[i];
		int err = srv6_template_expand(t, ev[i], &path->segment[0]);

		if (err < 0)
			return err;
		path->ev = ev[i];
		path->port = ports[i];
		path->n_segments = 1;
		paths->n++;
	}
	return 0;
}

static bool path_ok(const struct rnic_mrc_path *path, enum rnic_mrc_format format, unsigned n_ports)
{
	if (path->port >= n_ports || (format == RNIC_MRC_UDP && path->ev > UINT16_MAX))
		return false;
	if (format != RNIC_MRC_SRV6)
		return path->n_segments == 0;
	if (path->n_segments < 1 || path->n_segments > 2)
		return false;
	for (unsigned i = 0; i < path->n_segments; i++) {
		const struct wire_ip *ip = &path->segment[i];

		if (wire_ip_is_zero(ip) || wire_ip_is4(ip) || ip->b[0] == 0xff)
			return false;
	}
	return true;
}

int mrc_paths_check(const struct rnic_mrc_paths *paths, unsigned n_ports, bool v4)
{
	if (paths->n < 1 || paths->n > MRC_MAX_EVS || paths->min_active > paths->n ||
		paths->max_active > MRC_MAX_EVS || (v4 && paths->format != RNIC_MRC_UDP) ||
		(unsigned)paths->format > RNIC_MRC_SRV6)
		return -EINVAL;
	for (unsigned i = 0; i < paths->n; i++) {
		if (!path_ok(&paths->path[i], paths->format, n_ports))
			return -EINVAL;
	}
	return 0;
}
