/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiles of a device (mrc_ctl.h): formats of EVs, sets of EVs, parameters of congestion
 * control, and their life. What the API leaves open is in docs/libmrc.md.
 *
 * No I/O and no clock; memory comes from the heap, since only controllers call. One caller at a
 * time. Functions return 0 or a negative errno: those of mrc_ctl.h, and -EIO without memory. */
#ifndef LIBMRC_PROFILE_H
#define LIBMRC_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/libmrc/mrc_ctl.h"
#include "lib/mrc/evset.h"
#include "lib/mrc/nscc.h"
#include "lib/srv6/expand.h"

enum {
	PROFILES_FMT = 64,
	PROFILES_EV = 256,
	PROFILES_CC = 64,
	PROFILES_EVS = 65536,          /* of all profiles */
	PROFILES_EVS_PROFILE = 4096,   /* of one */
	PROFILES_EVS_AUTO = 256,       /* of a profile whose controller gives no number */
	PROFILES_EVS_QP = MRC_MAX_EVS, /* that a connection takes of one */
	PROFILES_FIELDS = SRV6_EV_FIELDS,
	PROFILES_PORTS = MRC_MAX_PORTS,
};

/* What the three kinds have in common (life.c). */
struct profile {
	uint64_t id;
	enum mrc_ctl_profile_state state; /* never INIT: those do not exist */
	int have;       /* attributes that have been set, the bits of the kind's mask */
	unsigned users; /* EV, CC: queue pairs; format: EV profiles that are ONLINE */
	uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

struct fmt_profile {
	struct profile p;
	enum mrc_ctl_ev_fmt_mode mode;
	unsigned n_fields;
	uint8_t width[PROFILES_FIELDS];
};

/* An EV of a profile. How it is doing is known to the queue pairs; they count here. */
struct ev_entry {
	struct mrc_ctl_ev ev;
	bool set, denied;
	uint16_t used, bad;  /* queue pairs that have it, and those that assume it to be bad */
	uint32_t generation; /* another EV, another number */
};

struct ev_profile {
	struct profile p;
	enum mrc_ctl_ev_mode mode;
	uint64_t fmt_id;
	uint32_t count, min_active;
	int event_mask;
	unsigned n_fields;
	struct mrc_ctl_ev_field field[PROFILES_FIELDS];
	struct fmt_profile fmt; /* as it is while ONLINE; mode 0: none, AUTO */
	struct ev_entry *entry; /* count of them once drawn */
	bool drawn;             /* AUTO, GEN */
};

struct cc_profile {
	struct profile p;
	bool none; /* no congestion control */
	struct mrc_ctl_cc_nscc_cfg config;
};

struct profiles {
	unsigned n_ports; /* 1 to PROFILES_PORTS */
	uint64_t random;
	uint32_t generation;
	uint32_t n_evs; /* of all EV profiles */
	/* Of struct fmt_profile, ev_profile, cc_profile; NULL: room for one. */
	struct profile *fmt[PROFILES_FMT], *ev[PROFILES_EV], *cc[PROFILES_CC];
};

void profiles_init(struct profiles *b, unsigned n_ports, uint64_t seed);
void profiles_fini(struct profiles *b);

/* mask: of the kind. Modify of id 0 of EVs and congestion control, which stand for the built-in
 * ones, is -EINVAL. Where mrc_ctl.h takes a query inside a modify it writes to *attr. */
int fmt_modify(struct profiles *b, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask);
int fmt_query(struct profiles *b, uint64_t id, struct mrc_ctl_ev_fmt_profile_attr *attr, int mask);
int ev_modify(struct profiles *b, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask);
int ev_query(struct profiles *b, uint64_t id, struct mrc_ctl_ev_profile_attr *attr, int mask);
int cc_modify(struct profiles *b, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask);
int cc_query(struct profiles *b, uint64_t id, struct mrc_ctl_cc_profile_attr *attr, int mask);

/* A queue pair begins to use a profile that is ONLINE, and ends. -EINVAL: it is not. *out is NULL
 * then and for id 0. put takes NULL. */
int ev_get(struct profiles *b, uint64_t id, struct ev_profile **out);
void ev_put(struct ev_profile *p);
int cc_get(struct profiles *b, uint64_t id, struct cc_profile **out);
void cc_put(struct cc_profile *p);

/* ---- from profiles to packets ---- */

/* As struct nscc_config has it. */
struct nscc_config cc_nscc(const struct mrc_ctl_cc_nscc_cfg *c);

/* What packets carry for an EV. */
struct ev_path {
	uint32_t ev;  /* on the wire */
	uint8_t port; /* from 0 on */
	bool denied;
	uint8_t n_segments; /* of SRv6, else 0 */
	uint8_t segment[2][16];
	uint16_t entry; /* of the profile, and its generation */
	uint32_t generation;
};

/* The EV's bytes behind the fields of format and profile; mode as of the format, which may be 0 in
 * AUTO. index is the handle of an SRv6 EV that is too long to be one. -EINVAL. */
int ev_to_path(const struct ev_profile *p, const struct mrc_ctl_ev *ev, uint16_t index,
	struct ev_path *path);
/* Paths of a new connection: all EVs, or as many as it may have, drawn with the same number of
 * each port; EVs that would be the same on the wire once. ip4: its addresses are IPv4's. Returns
 * their number, at least 1; -EINVAL: a mode that its addresses cannot carry. */
int ev_paths(struct profiles *b, const struct ev_profile *p, bool ip4,
	struct ev_path path[PROFILES_EVS_QP]);

/* The connection's word on one of its paths: it uses it, assumes it to be bad, or no longer. If the
 * entry is another EV by now nothing happens. */
void ev_note(struct ev_profile *p, const struct ev_path *path, int used, int bad);

/* ---- inside ---- */

/* One kind of profiles (fmt.c, ev.c, cc.c). All begin with struct profile. */
struct life_kind {
	int known;           /* bits of the mask */
	int offline, online; /* what may change in a state; needed attributes `change` checks */
	int full;            /* negative errno: as many as there may be */
	size_t size;         /* of one */
	size_t list;         /* of struct profiles: where they are */
	unsigned n;          /* how many there may be */
	/* The attributes of a call into the draft, and whether all makes sense together.
	 * draft->state is the state to come, old what the draft is a copy of, NULL for a new one.
	 * If it fails, memory of the draft that is not old's is let go of. */
	int (*change)(struct profiles *b, struct profile *draft, const struct profile *old,
		void *attr, int mask);
	/* Whatever else has to know, NULL if nothing: the draft is to take old's place; p goes. */
	void (*replace)(struct profiles *b, const struct profile *draft, const struct profile *old);
	void (*forget)(struct profiles *b, struct profile *p);
};

enum { LIFE_STATE = 1 << 0, LIFE_CUR_STATE = 1 << 1, LIFE_VENDOR = INT32_MIN };

/* A call that modifies. All or nothing. -EINVAL: unknown bits, another current state than said, a
 * transition outside the chain, an attribute that may not be set; -EBUSY; -EIO; kind->full; the
 * kind's own. The state that a profile has is no transition and always allowed. */
int life_modify(const struct life_kind *kind, struct profiles *b, uint64_t id, void *attr, int mask,
	enum mrc_ctl_profile_state want, enum mrc_ctl_profile_state cur);
/* A call that queries: *state; p is NULL in INIT, when nothing but the state can be asked for. */
int life_query(const struct life_kind *kind, const struct profile *p, int mask,
	enum mrc_ctl_profile_state *state);
/* NULL: in INIT. */
struct profile *life_find(const struct life_kind *kind, struct profiles *b, uint64_t id);
/* As ev_get; life_put takes NULL. */
int life_get(const struct life_kind *kind, struct profiles *b, uint64_t id, struct profile **out);
void life_put(struct profile *p);

struct fmt_profile *fmt_find(struct profiles *b, uint64_t id);
unsigned fmt_width(enum mrc_ctl_ev_fmt_mode mode);

/* Fields of p in the format f, as srv6 has them; without fields the format's own, whole. */
int ev_format(const struct ev_profile *p, const struct fmt_profile *f, struct srv6_ev_format *out);
/* Draws count EVs of GEN or AUTO. -E2BIG: the fields do not have so many. */
int ev_draw(struct profiles *b, const struct ev_profile *p, struct ev_entry *entry, uint32_t count);
/* One operation on the entries of p. */
int ev_op(struct profiles *b, struct ev_profile *p, enum mrc_ctl_ev_op op,
	struct mrc_ctl_ev_op_entry *entries, int *count);
uint64_t profiles_random(struct profiles *b);

#endif
