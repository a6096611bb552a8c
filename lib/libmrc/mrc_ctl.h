/* SPDX-License-Identifier: BSD-3-Clause */
/* The MRC API of the OCP, version 1.0.1, for controllers: what an entropy value (EV) looks like
 * (format profiles), which ones connections use (EV profiles), how they react to congestion (CC
 * profiles), ports, events of EVs and operations of endpoints. Rules: docs/libmrc.md.
 *
 * Profiles have numbers of the controller's choice; each number is in INIT until it is configured,
 * and forgotten when it returns there:
 *
 *	INIT -> OFFLINE (changeable) -> ONLINE (usable) -> OFFLINE -> INIT
 *
 * All but the queries of device and version need CAP_NET_ADMIN (EPERM). Returns are 0, or -1 with
 * errno set, unless said otherwise. */
#ifndef _MRC_CTL_API_H_
#define _MRC_CTL_API_H_

#include <infiniband/verbs.h>
#include <stdint.h>

#include "mrc.h"
#include "mrc_ctl_api_ver.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MRC_CTL_MAX_VENDOR_CFG_SIZE 128

/* ---- device and ports ---- */

enum mrc_ctl_protocol_version {
	MRC_CTL_PROTOCOL_VERSION_0 = 0,
	MRC_CTL_PROTOCOL_VERSION_1 = 1 << 0
};

enum mrc_ctl_profile_state {
	MRC_CTL_PROFILE_INIT = 0,
	MRC_CTL_PROFILE_OFFLINE = 1,
	MRC_CTL_PROFILE_ONLINE = 2
};

enum mrc_ctl_attr_opt {
	MRC_CTL_OPT_CAP_EV_PROFILE_MODIFY_ONLINE = 1 << 0,
	MRC_CTL_OPT_CAP_CC_PROFILE_MODIFY_ONLINE = 1 << 1,
	MRC_CTL_OPT_CAP_EV_EVENT = 1 << 2,
	MRC_CTL_OPT_CAP_EV_EXPLICIT_RANGE = 1 << 3,
	MRC_CTL_OPT_CAP_EV_EVENT_PRECISE_DROP_CNT = 1 << 4,
	MRC_CTL_OPT_CAP_EP_OP_EV_PROBE = 1 << 5
};

struct mrc_ctl_device_attr {
	uint32_t mrc_ctl_protocol_version; /* a bit for each that is offered */
	struct {
		uint32_t ev_max_fmt_profiles;
		uint32_t ev_max_profiles;
		uint32_t ev_max_count; /* of all profiles */
		uint32_t ev_free_count;
		uint32_t ev_max_count_profile;
		uint32_t ev_count_align;
		uint32_t ev_max_width;      /* bits of the longest EV */
		uint32_t ev_fmt_mode_mask;  /* enum mrc_ctl_ev_fmt_mode */
		uint32_t ev_mode_mask;      /* enum mrc_ctl_ev_mode */
		uint32_t ev_op_max_entries; /* of one call, 0: no limit */
	} ev;
	struct {
		uint32_t cc_max_profiles;
		const char **algorithms; /* ends with NULL; the library's */
	} cc;
	uint32_t phy_port_mask; /* bit N: port N; they count from 1 */
	uint32_t opt_attr;      /* enum mrc_ctl_attr_opt */
};

enum mrc_ctl_port_admin_state { MRC_CTL_PORT_ADMIN_DISABLED = 0, MRC_CTL_PORT_ADMIN_ENABLED = 1 };

enum mrc_ctl_port_attr_mask { MRC_CTL_PORT_ADMIN_STATE = 1 << 0 };

struct mrc_ctl_port_attr {
	enum mrc_ctl_port_admin_state port_admin_state;
};

/* ---- format of EVs ---- */

/* Where a packet carries its EV. */
enum mrc_ctl_ev_fmt_mode {
	MRC_CTL_EV_FMT_MODE_STEV = 1 << 0, /* IPv6 flow label and UDP source port */
	MRC_CTL_EV_FMT_MODE_SRV6 = 1 << 1, /* as STEV, and an outer address that is the path */
	MRC_CTL_EV_FMT_MODE_UDP = 1 << 2   /* UDP source port */
};

enum mrc_ctl_ev_fmt_op { MRC_CTL_EV_FMT_OP_MODIFY_FIELDS = 0, MRC_CTL_EV_FMT_OP_QUERY_FIELDS = 1 };

enum mrc_ctl_ev_fmt_profile_attr_mask {
	MRC_CTL_EV_FMT_PROFILE_STATE = 1 << 0,
	MRC_CTL_EV_FMT_PROFILE_CUR_STATE = 1 << 1,
	MRC_CTL_EV_FMT_PROFILE_MODE = 1 << 2,
	MRC_CTL_EV_FMT_PROFILE_OP = 1 << 3,
	MRC_CTL_EV_FMT_VENDOR_CFG = INT32_MIN /* bit 31 */
};

struct mrc_ctl_ev_fmt_field {
	uint8_t width;
};

struct mrc_ctl_ev_fmt_profile_attr {
	enum mrc_ctl_profile_state profile_state;
	enum mrc_ctl_profile_state cur_profile_state;
	enum mrc_ctl_ev_fmt_mode ev_fmt_mode;
	struct {
		enum mrc_ctl_ev_fmt_op op;
		struct mrc_ctl_ev_fmt_field *fmt_fields;
		int fmt_field_count; /* query: room in, number out */
	} ev_fmt_op;
	uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

/* ---- EVs ---- */

#define MRC_CTL_EV_MAX_BYTES 32
/* A string of bits, the most significant of byte 0 first. */
typedef uint8_t mrc_ctl_ev_t[MRC_CTL_EV_MAX_BYTES];

struct mrc_ctl_ev {
	mrc_ctl_ev_t val;
	uint8_t port; /* from 1 on */
};

/* An entry of an explicit profile that has not been set. */
#define MRC_CTL_EV_UNPOPULATED ((struct mrc_ctl_ev){{0}, 0})

enum mrc_ctl_ev_state {
	MRC_CTL_EV_GOOD = 1 << 0,
	MRC_CTL_EV_ASSUMED_BAD = 1 << 1,
	MRC_CTL_EV_DENIED = 1 << 2,
	MRC_CTL_EV_UNKNOWN = INT32_MIN /* bit 31 */
};

/* Who makes the EVs of a profile: the library, the controller one by one, or the library from the
 * controller's fields. */
enum mrc_ctl_ev_mode {
	MRC_CTL_EV_MODE_AUTO = 1 << 0,
	MRC_CTL_EV_MODE_EXP = 1 << 1,
	MRC_CTL_EV_MODE_GEN = 1 << 2
};

enum mrc_ctl_ev_op {
	MRC_CTL_EV_OP_REPLACE_EV = 0,
	MRC_CTL_EV_OP_MODIFY_EV_STATE = 1,
	MRC_CTL_EV_OP_QUERY_EV_STATE = 2,
	MRC_CTL_EV_OP_QUERY_EV_ARRAY = 3
};

enum mrc_ctl_ev_fields_op {
	MRC_CTL_EV_FIELDS_OP_MODIFY_FIELDS = 0,
	MRC_CTL_EV_FIELDS_OP_QUERY_FIELDS = 1
};

enum mrc_ctl_ev_profile_attr_mask {
	MRC_CTL_EV_PROFILE_STATE = 1 << 0,
	MRC_CTL_EV_PROFILE_CUR_STATE = 1 << 1,
	MRC_CTL_EV_PROFILE_MODE = 1 << 2,
	MRC_CTL_EV_PROFILE_FMT_ID = 1 << 3,
	MRC_CTL_EV_PROFILE_COUNT = 1 << 4,
	MRC_CTL_EV_PROFILE_MIN_ACTIVE = 1 << 5,
	MRC_CTL_EV_PROFILE_EVENT_MASK = 1 << 6,
	MRC_CTL_EV_PROFILE_EV_OP = 1 << 7,
	MRC_CTL_EV_PROFILE_EV_FIELDS_OP = 1 << 8,
	MRC_CTL_EV_PROFILE_VENDOR_CFG = INT32_MIN /* bit 31 */
};

enum mrc_ctl_ev_op_flags { MRC_CTL_EV_OP_F_ALL_COPIES = 1 << 0 };

struct mrc_ctl_ev_field {
	uint32_t width; /* bits, at most 32 */
	uint32_t init_val;
	uint32_t min_val; /* of the bits that the mask lets in */
	uint32_t max_val;
	uint32_t mask; /* bits of the field that come from the EV */
};

struct mrc_ctl_ev_op_entry {
	struct mrc_ctl_ev ev;
	struct mrc_ctl_ev ev_new;
	enum mrc_ctl_ev_state state;
	uint32_t flags; /* enum mrc_ctl_ev_op_flags */
};

struct mrc_ctl_ev_profile_attr {
	enum mrc_ctl_profile_state profile_state;
	enum mrc_ctl_profile_state cur_profile_state;
	enum mrc_ctl_ev_mode ev_mode;
	uint64_t ev_fmt_profile_id;
	uint32_t ev_count;
	uint32_t ev_min_active; /* that stay in use however bad they are */
	int ev_event_mask;      /* MRC_CTL_EV_GOOD, MRC_CTL_EV_ASSUMED_BAD */
	struct {
		enum mrc_ctl_ev_op op;
		struct mrc_ctl_ev_op_entry *entries;
		int entry_count; /* query of the array: room in, number out */
	} ev_op;
	struct {
		enum mrc_ctl_ev_fields_op op;
		struct mrc_ctl_ev_field *fields;
		int field_count; /* query: room in, number out */
	} ev_fields_op;
	uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

/* The state is there from version 1.0.1 on: mrc_incline.h has a call that is right for either. */
struct mrc_ctl_ev_event {
	uint64_t profile_id;
	struct mrc_ctl_ev ev;
	uint32_t drop_count; /* lost between the one before and this */
#if MRC_CTL_API_VER_USED >= MRC_CTL_API_VER(1, 0, 1)
	enum mrc_ctl_ev_state state;
#endif
};

/* ---- congestion control ---- */

enum mrc_ctl_cc_profile_attr_mask {
	MRC_CTL_CC_PROFILE_STATE = 1 << 0,
	MRC_CTL_CC_PROFILE_CUR_STATE = 1 << 1,
	MRC_CTL_CC_PROFILE_ALGORITHM = 1 << 2,
	MRC_CTL_CC_PROFILE_CONFIG = 1 << 3,
	MRC_CTL_CC_PROFILE_VENDOR_CFG = INT32_MIN /* bit 31 */
};

struct mrc_ctl_cc_profile_attr {
	enum mrc_ctl_profile_state profile_state;
	enum mrc_ctl_profile_state cur_profile_state;
	const char *algorithm;
	const void *cc_config; /* "uet-1.0-nscc": struct mrc_ctl_cc_nscc_cfg */
	uint8_t vendor_cfg[MRC_CTL_MAX_VENDOR_CFG_SIZE];
};

/* Times in nanoseconds, sizes in bytes. */
struct mrc_ctl_cc_nscc_cfg {
	uint8_t disable_qa;
	uint32_t adjust_bytes_threshold;
	uint32_t adjust_period_threshold;
	uint32_t base_rtt;
	float eta;
	float fi;
	float fi_scale;
	float gamma;
	float max_md_jump;
	uint32_t max_cwnd;
	uint8_t qa_gate;
	uint32_t qa_threshold;
	uint32_t target_delay;
};

/* ---- endpoint operations ---- */

/* Not the codes of the wire. */
enum mrc_ctl_ep_op_type { MRC_CTL_EP_OP_EV_PROBE = 0, MRC_CTL_EP_OP_PORT_STATUS_UPDATE = 1 };

struct mrc_ctl_ep_req {
	uint16_t req_id; /* of which no other outstanding one has the same */
	union ibv_gid sgid;
	union ibv_gid dgid;
	enum mrc_ctl_ev_fmt_mode ev_fmt_mode;
	struct mrc_ctl_ev req_ev;
	union {
		struct {
			uint32_t port_status; /* bit N: port N is up */
		} port_status_update;
	} op;
};

struct mrc_ctl_ep_rsp {
	uint16_t req_id;
	uint8_t port;         /* at which it came */
	unsigned int rtt;     /* ns */
	uint8_t adj_svc_time; /* not 0: without the time that the peer took */
};

/* ---- functions ---- */

#if MRC_CTL_API_VER_USED >= MRC_CTL_API_VER(1, 0, 1)
int mrc_ctl_query_device_ex(struct ibv_context *context, struct mrc_context *mcontext,
	struct mrc_ctl_device_attr *ctl_attr, int *supported);
#endif
int mrc_ctl_query_device(struct ibv_context *context, struct mrc_ctl_device_attr *ctl_attr);
void mrc_ctl_query_version(uint32_t *current_version, uint32_t *last_supported_version,
	uint32_t *vendor_version, uint32_t *last_supported_vendor_version);

/* EINVAL. A port that is disabled is IBV_PORT_DOWN. */
int mrc_ctl_query_port(struct mrc_context *context, uint8_t port_num,
	struct mrc_ctl_port_attr *attr, int attr_mask);
int mrc_ctl_modify_port(struct mrc_context *context, uint8_t port_num,
	struct mrc_ctl_port_attr *attr, int attr_mask);

/* Modify. EINVAL: a value, or a transition that is not in the chain; EBUSY: leaves ONLINE while it
 * is used; E2BIG: too many fields or EVs; ENOENT: no such EV. All of a call takes effect or
 * nothing, except for entries of an EV operation before the first that fails.
 * Query. E2BIG: the array is too small, the count says what is needed; EINVAL; ENOENT. */
int mrc_ctl_modify_ev_fmt_profile(struct mrc_context *mrc_ctx, uint64_t ev_fmt_profile_id,
	struct mrc_ctl_ev_fmt_profile_attr *attr, int attr_mask);
int mrc_ctl_query_ev_fmt_profile(struct mrc_context *mrc_ctx, uint64_t ev_fmt_profile_id,
	struct mrc_ctl_ev_fmt_profile_attr *attr, int attr_mask);
int mrc_ctl_modify_ev_profile(struct mrc_context *mrc_ctx, uint64_t ev_profile_id,
	struct mrc_ctl_ev_profile_attr *attr, int attr_mask);
int mrc_ctl_query_ev_profile(struct mrc_context *mrc_ctx, uint64_t ev_profile_id,
	struct mrc_ctl_ev_profile_attr *attr, int attr_mask);
int mrc_ctl_modify_cc_profile(struct mrc_context *mrc_ctx, uint64_t cc_profile_id,
	struct mrc_ctl_cc_profile_attr *attr, int attr_mask);
int mrc_ctl_query_cc_profile(struct mrc_context *mrc_ctx, uint64_t cc_profile_id,
	struct mrc_ctl_cc_profile_attr *attr, int attr_mask);

/* Changes of EVs that profiles' event masks name. poll: how many, or a negative errno. The elements
 * of the array are as long as the version that mrc_create_context was told makes them. */
struct mrc_cq *mrc_ctl_create_ev_event_cq(struct mrc_context *mrc_ctx, int cqe, void *cq_context,
	struct mrc_comp_channel *channel, int comp_vector);
int mrc_ctl_poll_ev_event(struct mrc_cq *ev_cq, int num_entries, struct mrc_ctl_ev_event *ev_event);

/* Sends num_req requests with the DSCP req_tc and waits until all are answered, or for rsp_timeout
 * ns: ETIMEDOUT, and *num_rsp answers have come in time. */
int mrc_ctl_ep_batch_send_wait(struct mrc_context *mrc_ctx, uint8_t req_tc,
	enum mrc_ctl_ep_op_type op_type, struct mrc_ctl_ep_req *req, int num_req,
	uint32_t rsp_timeout, struct mrc_ctl_ep_rsp *rsp, int *num_rsp);

#ifdef __cplusplus
}
#endif

#endif
