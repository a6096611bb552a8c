/* SPDX-License-Identifier: BSD-3-Clause */
#include "dataplane/mcast/membership.h"

#include <errno.h>

static struct membership_entry *find(
	struct membership *m, uint16_t port, const struct wire_ip *group)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->entry[i].port == port && wire_ip_eq(&m->entry[i].group, group))
			return &m->entry[i];
	return NULL;
}

int membership_join(struct membership *m, uint16_t port, uint16_t vlan, const struct wire_ip *group,
	uint64_t now)
{
	struct membership_entry *e = find(m, port, group);
	const bool is_new = e == NULL || e->vlan != vlan;

	if (e == NULL) {
		if (m->n == MEMBERSHIP_MAX || m->n_of[port] >= m->max_per_port) {
			m->refused++;
			return -ENOSPC;
		}
		e = &m->entry[m->n++];
		m->n_of[port]++;
		m->joined++;
	}
	*e = (struct membership_entry){*group, port, vlan, false, now + MEMBERSHIP_HOLD};
	return is_new;
}

bool membership_leave(
	struct membership *m, uint16_t port, const struct wire_ip *group, uint64_t now)
{
	struct membership_entry *e = find(m, port, group);

	if (e == NULL || e->leaving)
		return false;
	e->leaving = true;
	e->until = now + MEMBERSHIP_LAST;
	return true;
}

unsigned membership_expire(struct membership *m, uint64_t now)
{
	unsigned n = 0;

	for (unsigned i = m->n; i-- > 0;) {
		struct membership_entry *e = &m->entry[i];

		if (now < e->until)
			continue;
		if (e->leaving)
			m->left++;
		else
			m->expired++;
		m->n_of[e->port]--;
		*e = m->entry[--m->n];
		n++;
	}
	return n;
}
