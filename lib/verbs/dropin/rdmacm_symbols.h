/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of librdmacm.so.1 of rdma-core 44 and their versions; "@@" is the one that programs
 * are linked with today. X(name, at, version), a line each, for C and the assembler (forward.S).
 * tests/unit/verbs/dropin_symbols.py compares them with the installed library. */
#ifndef VERBS_DROPIN_RDMACM_SYMBOLS_H
#define VERBS_DROPIN_RDMACM_SYMBOLS_H

/* clang-format off */
#define DROP_IN_SYMBOLS(X) \
	X(raccept, @@, RDMACM_1.0) \
	X(rbind, @@, RDMACM_1.0) \
	X(rclose, @@, RDMACM_1.0) \
	X(rconnect, @@, RDMACM_1.0) \
	X(rdma_accept, @@, RDMACM_1.0) \
	X(rdma_ack_cm_event, @@, RDMACM_1.0) \
	X(rdma_bind_addr, @@, RDMACM_1.0) \
	X(rdma_connect, @@, RDMACM_1.0) \
	X(rdma_create_ep, @@, RDMACM_1.0) \
	X(rdma_create_event_channel, @@, RDMACM_1.0) \
	X(rdma_create_id, @@, RDMACM_1.0) \
	X(rdma_create_qp, @@, RDMACM_1.0) \
	X(rdma_create_qp_ex, @@, RDMACM_1.0) \
	X(rdma_create_srq, @@, RDMACM_1.0) \
	X(rdma_create_srq_ex, @@, RDMACM_1.0) \
	X(rdma_destroy_ep, @@, RDMACM_1.0) \
	X(rdma_destroy_event_channel, @@, RDMACM_1.0) \
	X(rdma_destroy_id, @@, RDMACM_1.0) \
	X(rdma_destroy_qp, @@, RDMACM_1.0) \
	X(rdma_destroy_srq, @@, RDMACM_1.0) \
	X(rdma_disconnect, @@, RDMACM_1.0) \
	X(rdma_event_str, @@, RDMACM_1.0) \
	X(rdma_free_devices, @@, RDMACM_1.0) \
	X(rdma_freeaddrinfo, @@, RDMACM_1.0) \
	X(rdma_get_cm_event, @@, RDMACM_1.0) \
	X(rdma_get_devices, @@, RDMACM_1.0) \
	X(rdma_get_dst_port, @@, RDMACM_1.0) \
	X(rdma_get_request, @@, RDMACM_1.0) \
	X(rdma_get_src_port, @@, RDMACM_1.0) \
	X(rdma_getaddrinfo, @@, RDMACM_1.0) \
	X(rdma_join_multicast, @@, RDMACM_1.0) \
	X(rdma_leave_multicast, @@, RDMACM_1.0) \
	X(rdma_listen, @@, RDMACM_1.0) \
	X(rdma_migrate_id, @@, RDMACM_1.0) \
	X(rdma_notify, @@, RDMACM_1.0) \
	X(rdma_reject, @@, RDMACM_1.0) \
	X(rdma_resolve_addr, @@, RDMACM_1.0) \
	X(rdma_resolve_route, @@, RDMACM_1.0) \
	X(rdma_set_option, @@, RDMACM_1.0) \
	X(rfcntl, @@, RDMACM_1.0) \
	X(rgetpeername, @@, RDMACM_1.0) \
	X(rgetsockname, @@, RDMACM_1.0) \
	X(rgetsockopt, @@, RDMACM_1.0) \
	X(riomap, @@, RDMACM_1.0) \
	X(riounmap, @@, RDMACM_1.0) \
	X(riowrite, @@, RDMACM_1.0) \
	X(rlisten, @@, RDMACM_1.0) \
	X(rpoll, @@, RDMACM_1.0) \
	X(rread, @@, RDMACM_1.0) \
	X(rreadv, @@, RDMACM_1.0) \
	X(rrecv, @@, RDMACM_1.0) \
	X(rrecvfrom, @@, RDMACM_1.0) \
	X(rrecvmsg, @@, RDMACM_1.0) \
	X(rselect, @@, RDMACM_1.0) \
	X(rsend, @@, RDMACM_1.0) \
	X(rsendmsg, @@, RDMACM_1.0) \
	X(rsendto, @@, RDMACM_1.0) \
	X(rsetsockopt, @@, RDMACM_1.0) \
	X(rshutdown, @@, RDMACM_1.0) \
	X(rsocket, @@, RDMACM_1.0) \
	X(rwrite, @@, RDMACM_1.0) \
	X(rwritev, @@, RDMACM_1.0) \
	X(rdma_join_multicast_ex, @@, RDMACM_1.1) \
	X(rdma_establish, @@, RDMACM_1.2) \
	X(rdma_init_qp_attr, @@, RDMACM_1.2) \
	X(rdma_get_remote_ece, @@, RDMACM_1.3) \
	X(rdma_reject_ece, @@, RDMACM_1.3) \
	X(rdma_set_local_ece, @@, RDMACM_1.3)
/* clang-format on */

#endif
