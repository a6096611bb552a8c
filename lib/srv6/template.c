/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/srv6/template.h"

#include <errno.h>
#include <stdio.h>

enum { EV_BITS = 32 };

static uint32_t low_bits(unsigned width)
{
	return width >= EV_BITS ? UINT32_MAX : (1u << width) - 1;
}

static uint16_t target(const struct srv6_copy *c)
{
	return (uint16_t)(low_bits(c->width) << c->shift);
}

static uint32_t get(const struct srv6_copy *c, uint32_t number)
{
	return number >> c->from & low_bits(c->width);
}

static void put(const struct srv6_copy *c, uint32_t number, struct wire_ip *ip)
{
	uint16_t bits = (uint16_t)(get(c, number) << c->shift);

	srv6_usid_put(ip, c->usid, (uint16_t)(srv6_usid(ip, c->usid) | bits));
}

static int check_copy(const struct srv6_template *t, const struct srv6_copy *c, const char *name,
	uint16_t taken[SRV6_USIDS], char err[SRV6_ERR_LEN])
{
	const char *wrong = NULL;

	if (c->from + c->width > EV_BITS)
		wrong = "bits beyond the 32 of its source";
	else if (c->shift + c->width > SRV6_USID_BITS)
		wrong = "bits beyond the 16 of a uSID";
	else if (c->usid >= t->n_hops)
		wrong = "a uSID behind the last hop";
	else if (taken[c->usid] & target(c))
		wrong = "bits that another copy has";
	else if (srv6_usid(&t->address, c->usid) & target(c))
		wrong = "bits that are not 0 in the address";
	if (wrong) {
		snprintf(err, SRV6_ERR_LEN, "%s: from %u, width %u, usid %u, shift %u: %s", name,
			c->from, c->width, c->usid, c->shift, wrong);
		return -EINVAL;
	}
	taken[c->usid] |= target(c);
	return 0;
}

static int check_hops(
	const struct srv6_template *t, const uint16_t taken[SRV6_USIDS], char err[SRV6_ERR_LEN])
{
	for (unsigned i = 0; i < SRV6_USIDS; i++) {
		uint16_t usid = srv6_usid(&t->address, i);

		if (i >= t->n_hops ? usid != 0 : (usid | taken[i]) == 0) {
			snprintf(err, SRV6_ERR_LEN, "address: uSID %u is %s, the path has %u hops",
				i, usid ? "not 0" : "0", t->n_hops);
			return -EINVAL;
		}
	}
	return 0;
}

int srv6_template_check(const struct srv6_template *t, char err[SRV6_ERR_LEN])
{
	uint16_t taken[SRV6_USIDS] = {0};
	char name[16];
	int rc;

	if (t->n_hops == 0 || t->n_hops > SRV6_USIDS || t->n_copies > SRV6_MAX_COPIES) {
		snprintf(err, SRV6_ERR_LEN, "hops: %u of 1..%u, copies: %u of 0..%u", t->n_hops,
			SRV6_USIDS, t->n_copies, SRV6_MAX_COPIES);
		return -EINVAL;
	}
	for (unsigned i = 0; i < t->n_copies; i++) {
		snprintf(name, sizeof(name), "copies[%u]", i);
		if (t->copy[i].width == 0) {
			snprintf(err, SRV6_ERR_LEN, "%s: width is 0", name);
			return -EINVAL;
		}
		rc = check_copy(t, &t->copy[i], name, taken, err);
		if (rc < 0)
			return rc;
	}
	rc = t->downlink.width ? check_copy(t, &t->downlink, "downlink", taken, err) : 0;
	return rc < 0 ? rc : check_hops(t, taken, err);
}

uint32_t srv6_template_ev_mask(const struct srv6_template *t)
{
	uint32_t mask = 0;

	for (unsigned i = 0; i < t->n_copies; i++)
		mask |= low_bits(t->copy[i].width) << t->copy[i].from;
	return mask;
}

int srv6_template_specialise(
	const struct srv6_template *t, uint32_t downlink, struct srv6_template *out)
{
	if (downlink & ~(low_bits(t->downlink.width) << t->downlink.from))
		return -ERANGE;
	*out = *t;
	if (t->downlink.width)
		put(&t->downlink, downlink, &out->address);
	out->downlink = (struct srv6_copy){0};
	return 0;
}

int srv6_template_expand(const struct srv6_template *t, uint32_t ev, struct wire_ip *ip)
{
	struct wire_ip made = t->address;

	if (ev & ~srv6_template_ev_mask(t))
		return -ERANGE;
	for (unsigned i = 0; i < t->n_copies; i++)
		put(&t->copy[i], ev, &made);
	for (unsigned i = 0; i < t->n_hops; i++) {
		if (srv6_usid(&made, i) == 0)
			return -EINVAL;
	}
	*ip = made;
	return 0;
}

int srv6_template_ev(const struct srv6_template *t, const struct wire_ip *ip, uint32_t *ev)
{
	uint32_t found = 0;
	struct wire_ip again;

	for (unsigned i = 0; i < t->n_copies; i++) {
		const struct srv6_copy *c = &t->copy[i];

		found |= (srv6_usid(ip, c->usid) >> c->shift & low_bits(c->width)) << c->from;
	}
	/* Whatever differs elsewhere, or between copies of one bit, does not come back. */
	if (srv6_template_expand(t, found, &again) < 0 || !wire_ip_eq(&again, ip))
		return -ENOENT;
	*ev = found;
	return 0;
}
