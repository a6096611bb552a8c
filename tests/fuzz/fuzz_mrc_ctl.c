/* SPDX-License-Identifier: BSD-3-Clause */
/* A controller that says anything: calls on profiles of all kinds with attributes from the input,
 * and what must hold after each of them. */
#include <errno.h>
#include <string.h>

#include "lib/libmrc/profile.h"
#include "tests/fuzz/fuzz.h"

enum { ENTRIES = 4, IDS = 3, PORTS = 2 };

struct input {
	const uint8_t *at;
	size_t left;
};

/* The next byte; 0 behind the end. */
static uint8_t byte(struct input *in)
{
	return in->left ? in->left--, *in->at++ : 0;
}

static uint32_t number(struct input *in)
{
	uint32_t v = byte(in);

	if (v < 250)
		return v;
	v = v << 24 | (uint32_t)byte(in) << 8;
	return v | byte(in);
}

/* A mask of the kind's bits; rarely one that nobody knows. */
static int mask(struct input *in, int bits)
{
	int low = byte(in);

	low |= byte(in) << 8;
	return low < 0xff00 ? low & ((1 << bits) - 1) : low;
}

struct how {
	bool query;
	uint64_t id;
	int mask;
};

static struct how start(struct input *in, int bits)
{
	struct how how = {.query = byte(in) & 1};

	how.id = byte(in) % IDS;
	how.mask = mask(in, bits);
	return how;
}

static void read_ev(struct input *in, struct mrc_ctl_ev *ev)
{
	*ev = (struct mrc_ctl_ev){.port = byte(in) & 3};
	ev->val[0] = byte(in);
	ev->val[3] = byte(in);
}

static void fmt_call(struct profiles *b, struct input *in)
{
	struct mrc_ctl_ev_fmt_field fields[PROFILES_FIELDS + 1];
	struct how how;
	struct mrc_ctl_ev_fmt_profile_attr a = {.profile_state = byte(in) & 3,
		.cur_profile_state = byte(in) & 3,
		.ev_fmt_mode = byte(in) & 7,
		.ev_fmt_op = {.op = byte(in) & 1,
			.fmt_fields = fields,
			.fmt_field_count = byte(in) % (PROFILES_FIELDS + 2)}};

	for (int i = 0; i <= PROFILES_FIELDS; i++)
		fields[i].width = i < 3 ? byte(in) : 1;
	how = start(in, 4);
	if (how.query)
		fmt_query(b, how.id, &a, how.mask);
	else
		fmt_modify(b, how.id, &a, how.mask);
}

static void ev_call(struct profiles *b, struct input *in)
{
	struct mrc_ctl_ev_field fields[PROFILES_FIELDS] = {{0}};
	struct how how;
	struct mrc_ctl_ev_op_entry entries[ENTRIES] = {{.flags = 0}};
	struct mrc_ctl_ev_profile_attr a = {.profile_state = byte(in) & 3,
		.cur_profile_state = byte(in) & 3,
		.ev_mode = byte(in) & 7,
		.ev_fmt_profile_id = byte(in) % IDS,
		.ev_count = number(in),
		.ev_min_active = byte(in),
		.ev_event_mask = byte(in) & 7,
		.ev_op = {.op = byte(in) % 5,
			.entries = entries,
			.entry_count = byte(in) % (ENTRIES + 1)},
		.ev_fields_op = {
			.op = byte(in) & 1, .fields = fields, .field_count = byte(in) & 3}};

	for (int i = 0; i < ENTRIES; i++) {
		read_ev(in, &entries[i].ev);
		read_ev(in, &entries[i].ev_new);
		entries[i].state = byte(in) & 7;
		entries[i].flags = byte(in) & 1;
	}
	for (int i = 0; i < 3; i++)
		fields[i] = (struct mrc_ctl_ev_field){
			number(in), number(in), number(in), number(in), number(in)};
	how = start(in, 9);
	if (how.query)
		ev_query(b, how.id, &a, how.mask);
	else
		ev_modify(b, how.id, &a, how.mask);
}

static void cc_call(struct profiles *b, struct input *in)
{
	struct mrc_ctl_cc_nscc_cfg config;
	struct how how;
	struct mrc_ctl_cc_profile_attr a = {.profile_state = byte(in) & 3,
		.cur_profile_state = byte(in) & 3,
		.algorithm = byte(in) & 1 ? NSCC_NAME : NULL,
		.cc_config = &config};

	for (size_t i = 0; i < sizeof(config); i++)
		((uint8_t *)&config)[i] = byte(in);
	config.disable_qa &= 1;
	how = start(in, 4);
	if (how.query)
		cc_query(b, how.id, &a, how.mask);
	else
		cc_modify(b, how.id, &a, how.mask);
}

/* A connection takes what is ONLINE: its paths differ, and are of ports that there are. */
static void check_paths(struct profiles *b, struct ev_profile *p)
{
	static struct ev_path path[PROFILES_EVS_QP];
	int n = ev_paths(b, p, false, path);

	fuzz_check(n >= 1 && n <= PROFILES_EVS_QP, "a profile that is ONLINE has paths");
	for (int i = 0; i < n; i++) {
		fuzz_check(path[i].port < PORTS, "a port that there is");
		fuzz_check(
			p->fmt.mode != MRC_CTL_EV_FMT_MODE_UDP || path[i].ev < 0x10000, "16 bits");
		fuzz_check((path[i].n_segments > 0) == (p->fmt.mode == MRC_CTL_EV_FMT_MODE_SRV6),
			"segments in SRv6 alone");
		for (int j = 0; j < i; j++)
			fuzz_check(path[i].ev != path[j].ev, "each EV once");
	}
}

static void check(struct profiles *b)
{
	uint32_t evs = 0;
	unsigned users = 0, online = 0;
	struct ev_profile *p;

	for (unsigned i = 0; i < PROFILES_EV; i++)
		evs += b->ev[i] ? ((const struct ev_profile *)b->ev[i])->count : 0;
	fuzz_check(evs == b->n_evs && evs <= PROFILES_EVS, "EVs are counted");
	for (unsigned i = 0; i < PROFILES_FMT; i++)
		users += b->fmt[i] ? b->fmt[i]->users : 0;
	for (uint64_t id = 1; id < IDS; id++) {
		if (ev_get(b, id, &p))
			continue;
		fuzz_check(p->min_active <= p->count, "min_active");
		online += (p->p.have & MRC_CTL_EV_PROFILE_FMT_ID) != 0;
		check_paths(b, p);
		ev_put(p);
	}
	fuzz_check(users == online, "formats know who uses them");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct profiles b;

	profiles_init(&b, PORTS, 1);
	while (in.left) {
		switch (byte(&in) % 3) {
		case 0:
			fmt_call(&b, &in);
			break;
		case 1:
			ev_call(&b, &in);
			break;
		default:
			cc_call(&b, &in);
		}
		check(&b);
	}
	profiles_fini(&b);
	return 0;
}

/* The shortest ways to profiles that are ONLINE: a format, then EVs from two fields or one by one.
 */
size_t fuzz_seed(unsigned i, uint8_t *out, size_t cap)
{
	enum { FIRST = 1 << 0 | 1 << 2 | 1 << 3 };
	static const uint8_t fmt[][12] = {
		{0, 1, 0, 1, 0, 2, 16, 16, 1, 0, 1, FIRST}, {0, 2, 0, 1, 0, 2, 16, 16, 1, 0, 1, 1}};
	/* The state and all that is needed; then the state. */
	static const uint8_t head[] = {1, 1, 0, 0, 1, 2, 1, 1, 0, 2, 0, 2};
	uint8_t *at = out;

	if (i > 2 || cap < 400)
		return 0;
	for (unsigned k = 0; k < 2; k++) {
		memcpy(at, fmt[k], sizeof(fmt[k]));
		at += sizeof(fmt[k]);
		*at++ = 0;
	}
	for (uint8_t state = 1; state <= 2; state++) {
		memcpy(at, head, sizeof(head));
		at[1] = state;
		at[3] = (uint8_t)(1u << i);
		at += sizeof(head);
		for (uint8_t e = 0; e < ENTRIES; e++) {
			const uint8_t entry[] = {0, 0, 0, 1, e, e, 1, 0};

			memcpy(at, entry, sizeof(entry));
			at += sizeof(entry);
		}
		for (unsigned f = 0; f < 3; f++) {
			const uint8_t field[] = {16, 7, 0, 15, 15};

			memcpy(at, field, sizeof(field));
			at += sizeof(field);
		}
		*at++ = 0;
		*at++ = 1;
		/* With fields in GEN, with entries in EXP, for which the second call is one more.
		 */
		*at++ = state == 2 ? 1 : i == 2 ? 0x7d : i == 1 ? 0xfd : 0x65;
		*at++ = state == 2 ? 0 : i == 2 ? 1 : 0;
	}
	return (size_t)(at - out);
}
