/* SPDX-License-Identifier: BSD-3-Clause */
/* What NCCL and a plug-in of its network say to each other, version 8 of that interface (NCCL 2.20;
 * later ones take it as well). Names are ours; layouts, numbers and the meaning of each call are
 * facts of NCCL's public sources: github.com/NVIDIA/nccl, ext-net/README.md,
 * src/include/plugin/net/net_v8.h, nccl_net.h, nccl_common.h and src/nccl.h.in; who calls what, and
 * when, src/plugin/net.cc and src/transport/coll_net.cc. */
#ifndef NCCL_ABI_H
#define NCCL_ABI_H

#include <stddef.h>
#include <stdint.h>

enum nccl_result {
	NCCL_OK = 0,
	NCCL_SYSTEM_ERROR = 2,   /* of the machine, or the network */
	NCCL_INTERNAL_ERROR = 3, /* NCCL has called as it must not */
	NCCL_INVALID_USAGE = 5,  /* the user's, of the configuration */
	NCCL_REMOTE_ERROR = 6,   /* another process has ended, or said so */
};

enum nccl_level { NCCL_LEVEL_WARN = 2, NCCL_LEVEL_INFO = 3 };
enum nccl_subsystem { NCCL_OF_INIT = 1, NCCL_OF_NET = 16 };
typedef void (*nccl_logger)(enum nccl_level level, unsigned long subsystems, const char *where,
	int line, const char *fmt, ...);

enum nccl_type {
	NCCL_INT8,
	NCCL_UINT8,
	NCCL_INT32,
	NCCL_UINT32,
	NCCL_INT64,
	NCCL_UINT64,
	NCCL_FLOAT16,
	NCCL_FLOAT32,
	NCCL_FLOAT64,
	NCCL_BFLOAT16,
};
enum nccl_op { NCCL_SUM, NCCL_PROD, NCCL_MAX, NCCL_MIN };

enum { NCCL_MEMORY_HOST = 1, NCCL_MEMORY_CUDA = 2 };
enum { NCCL_HANDLE_LEN = 128, NCCL_MAX_REQUESTS = 32 /* of a connection, at a time */ };

struct nccl_properties {
	char *name;
	char *pci_path; /* NULL: of no PCI device */
	uint64_t guid;
	int memory;        /* NCCL_MEMORY_... */
	int global_memory; /* a registration is good for all connections */
	int speed;         /* Mb/s */
	int port;
	float latency; /* us; 0: not known */
	int max_comms;
	int max_receives; /* that one call may ask for */
	int device_type;  /* 0: a GPU has no part in it */
	int device_version;
};

typedef enum nccl_result nccl_rc;

struct nccl_net {
	const char *name;
	nccl_rc (*init)(nccl_logger log);
	nccl_rc (*devices)(int *n);
	nccl_rc (*properties)(int dev, struct nccl_properties *properties);
	nccl_rc (*listen)(int dev, void *handle, void **listener);
	/* These two do not wait: *conn stays NULL, and they are called again. */
	nccl_rc (*connect)(int dev, void *handle, void **conn, void **gpu);
	nccl_rc (*accept)(void *listener, void **conn, void **gpu);
	nccl_rc (*reg)(void *conn, void *data, size_t len, int memory, void **mem);
	nccl_rc (*reg_dmabuf)(void *conn, void *data, size_t len, int memory, uint64_t offset,
		int fd, void **mem);
	nccl_rc (*dereg)(void *conn, void *mem);
	/* *request NULL: not now, they are called again. */
	nccl_rc (*send)(void *conn, void *data, int len, int tag, void *mem, void **request);
	nccl_rc (*receive)(
		void *conn, int n, void **data, int *len, int *tag, void **mem, void **request);
	/* What has been received is seen by a GPU; *request NULL: it is already. */
	nccl_rc (*flush)(void *conn, int n, void **data, int *len, void **mem, void **request);
	/* len may be NULL, else has what was sent or received when *done. The request is over then.
	 */
	nccl_rc (*test)(void *request, int *done, int *len);
	nccl_rc (*close_send)(void *conn);
	nccl_rc (*close_receive)(void *conn);
	nccl_rc (*close_listen)(void *listener);
	nccl_rc (*gpu_memory)(void *conn, void *mem, void **gpu_mem);
	nccl_rc (*gpu_consumed)(void *conn, int n, void *request);
};

struct nccl_piece {
	void *mem, *address;
	uint32_t len;
};

struct nccl_collnet {
	const char *name;
	nccl_rc (*init)(nccl_logger log);
	nccl_rc (*devices)(int *n);
	nccl_rc (*properties)(int dev, struct nccl_properties *properties);
	nccl_rc (*listen)(int dev, void *handle, void **listener);
	/* Collective over the ranks whose handles these are; may wait. That it fails is no error of
	 * the job's, which then goes without. */
	nccl_rc (*connect)(void *handles[], int n_ranks, int rank, void *listener, void **coll);
	nccl_rc (*supports)(int type, int op, int *yes);
	nccl_rc (*reg)(void *coll, void *data, size_t len, int memory, void **mem);
	nccl_rc (*reg_dmabuf)(void *coll, void *data, size_t len, int memory, uint64_t offset,
		int fd, void **mem);
	nccl_rc (*dereg)(void *coll, void *mem);
	nccl_rc (*allreduce)(void *coll, void *send, void *recv, int count, int type, int op,
		void *send_mem, void *recv_mem, void **request);
	/* Of a vector with `block` bytes of each rank the bytes from `from` on, `len` of them,
	 * which lie in the pieces (one). send: those of them that are this rank's. */
	nccl_rc (*allgather)(void *coll, void *send, int n_pieces, struct nccl_piece *recv,
		size_t block, size_t from, size_t len, void *send_mem, void **request);
	/* Likewise: recv gets the sums of those bytes that are this rank's. */
	nccl_rc (*reduce_scatter)(void *coll, int n_pieces, struct nccl_piece *send, void *recv,
		size_t block, size_t from, size_t len, int type, int op, void *recv_mem,
		void **request);
	nccl_rc (*flush)(void *coll, void *data, int len, void *mem, void **request);
	nccl_rc (*test)(void *request, int *done, int *len);
	nccl_rc (*close)(void *coll);
	nccl_rc (*close_listen)(void *listener);
};

_Static_assert(sizeof(struct nccl_properties) == 64, "NCCL's properties");
_Static_assert(sizeof(struct nccl_net) == 19 * sizeof(void *), "NCCL's network");
_Static_assert(sizeof(struct nccl_collnet) == 17 * sizeof(void *), "NCCL's collective network");

#endif
