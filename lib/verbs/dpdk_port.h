/* SPDX-License-Identifier: BSD-3-Clause */
/* verbs_port_ops over one DPDK port. */
#ifndef VERBS_DPDK_PORT_H
#define VERBS_DPDK_PORT_H

#include "lib/verbs/config.h"

struct iv_dpdk;
extern const struct verbs_port_ops iv_dpdk_ops;

/* Starts the EAL at the first call in the process. -errno with the reason. The port stays up until
 * iv_dpdk_close at exit: the EAL can be started only once, and memif peers come back faster.
 * index: of the port among the configuration's. n_devices: how many such devices the process is
 * going to have at a time. One at a time opens or closes. */
int iv_dpdk_open(const struct iv_config *config, unsigned index, unsigned n_devices,
	struct iv_dpdk **port, char err[PORT_ERR_LEN]);

/* A frame written in place, instead of ops.tx, after ops.tx_room: where, and how long it has
 * become; 0: none after all. */
uint8_t *iv_dpdk_tx_begin(struct iv_dpdk *port, size_t *cap);
void iv_dpdk_tx_end(struct iv_dpdk *port, int len);

/* Waits until the peer has had time to take the last frames from a shared-memory ring, then closes:
 * what is in the ring then is lost, and with it the last acknowledgements. last: the process ends,
 * and leaves its packet memory to the kernel. */
void iv_dpdk_close(struct iv_dpdk *port, bool last);

/* In a child that goes on without a program of its own: lets go of the connection to the peer,
 * which would take the child for the parent when that is gone. */
void iv_dpdk_forked(const struct iv_dpdk *port);

/* At exit, after the port was closed or failed to open. */
void iv_dpdk_exit(void);

#endif
