/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside of libnccl-net-incline.so, which NCCL loads (docs/nccl.md): its collectives in the network
 * by CommLib, and the network that NCCL wants from the same library, by RC queue pairs.
 *
 * Threads: NCCL calls for one connection or communicator from two, one that sets up and registers
 * and one that moves data: each has a lock. The list of devices is made once, and stays. */
#ifndef NCCL_IM_H
#define NCCL_IM_H

#include <incline/ccl.h>
#include <infiniband/verbs.h>
#include <pthread.h>

#include "lib/ccl/subgroup.h"
#include "lib/nccl/abi.h"
#include "lib/wire/ip.h"

/* ---- log.c ---- */

void np_set_log(nccl_logger log);
/* Returns rc, for the caller to do so. */
nccl_rc np_warn(nccl_rc rc, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void np_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- device.c ---- */

enum { NP_MAX_PORTS = 32, NP_MAX_ADDRESSES = 16 };

/* A port with an address by which others reach it: what NCCL calls a device. */
struct np_port {
	char name[64]; /* "incline0", or with its port "mlx5_0:2" */
	char device[64];
	char pci_path[256]; /* "": none */
	uint64_t guid;
	uint8_t port, gid_index; /* of the first address */
	int speed, max_qp;
	unsigned mtu, n_addresses;
	char ip[NP_MAX_ADDRESSES][CCL_IP_LEN];
};
/* How many there are; INCLINE_DEVICE names the only one to be used. */
int np_ports(void);
/* NULL: there is no such number. */
const struct np_port *np_port(int dev);
nccl_rc np_devices(int *n);
nccl_rc np_properties(int dev, struct nccl_properties *properties);
/* The device, which all connections of the port share; NULL: it cannot be opened. */
struct ibv_context *np_open(const struct np_port *port);
void np_let_go(const struct np_port *port);

/* ---- handle.c ---- */

/* What NCCL takes from a listener to its partners, on machines of the same byte order. */
struct np_handle {
	uint32_t magic, kind;
	uint64_t random;
	char host[CCL_IP_LEN]; /* where the listener is reached by TCP */
	uint16_t port;
	struct ccl_part part; /* of a collective network */
	void *partner;        /* who connects keeps its state here */
};
_Static_assert(sizeof(struct np_handle) <= NCCL_HANDLE_LEN, "a handle's room");
enum { NP_NET = 1, NP_COLL = 2 };

/* A bound TCP socket, not listening, at an address by which others reach this process:
 * INCLINE_NCCL_HOST, or the first one of its interfaces. -1: none, and it is logged. */
int np_bind(struct np_handle *handle, uint32_t kind);
/* False if this is none of that kind from a plug-in like this one; it is logged. */
bool np_is_handle(const struct np_handle *handle, uint32_t kind);

/* ---- types.c ---- */

/* -1: we have none. */
int np_dtype(int type);
int np_op(int op);
size_t np_size(int type);
nccl_rc np_supports(int type, int op, int *yes);

/* ---- net_conn.c ---- */

struct np_conn;

nccl_rc np_listen(int dev, void *handle, void **listener);
nccl_rc np_connect(int dev, void *handle, void **conn, void **gpu);
nccl_rc np_accept(void *listener, void **conn, void **gpu);
nccl_rc np_close_listen(void *listener);
nccl_rc np_close(void *conn);

/* ---- the two that NCCL looks for ---- */

extern const struct nccl_net ncclNetPlugin_v8;         /* net.c */
extern const struct nccl_collnet ncclCollNetPlugin_v8; /* coll.c */

#endif
