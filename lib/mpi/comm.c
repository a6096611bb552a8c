/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators: what is known of them, from MPI_Init to MPI_Finalize. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/mpi/im.h"

static const uint64_t MEETS_NS = 1000000; /* between two looks whether a meeting is over */

struct im im = {.lock = PTHREAD_MUTEX_INITIALIZER, .keyval = MPI_KEYVAL_INVALID, .show = 1};

struct im_comm *im_comm(MPI_Comm comm)
{
	struct im_comm *c = NULL, **at = &im.comms;
	int found = 0, inter = 0;

	if (comm == MPI_COMM_NULL || PMPI_Comm_get_attr(comm, im.keyval, &c, &found))
		return NULL;
	if (found)
		return c;
	if (PMPI_Comm_test_inter(comm, &inter) || inter)
		return NULL;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->comm = comm;
	c->end = &c->first;
	PMPI_Comm_rank(comm, &c->rank);
	PMPI_Comm_size(comm, &c->size);
	if (PMPI_Comm_set_attr(comm, im.keyval, c)) {
		free(c);
		return NULL;
	}
	pthread_mutex_lock(&im.lock);
	while (*at)
		at = &(*at)->next;
	*at = c;
	pthread_mutex_unlock(&im.lock);
	return c;
}

void im_leave(struct im_comm *c)
{
	struct ccl_comm *ccl;

	if (c->where == IM_IN) {
		im_settle(c);
		PMPI_Barrier(c->comm);
	}
	im_show_counts(c);
	pthread_mutex_lock(&im.lock);
	while (im_meets(c, MEETS_NS)) /* another rank has called since */
		;
	ccl = c->ccl;
	c->ccl = NULL;
	c->where = IM_OUT;
	memset(c->region, 0, sizeof(c->region));
	pthread_mutex_unlock(&im.lock);
	ccl_comm_destroy(ccl);
	ccl_group_free(c->group);
	c->group = NULL;
	snprintf(c->why, sizeof(c->why), "it is over");
}

void im_forget(struct im_comm *c)
{
	struct im_comm **at = &im.comms;

	pthread_mutex_lock(&im.lock);
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	im_add_counts(c);
	pthread_mutex_unlock(&im.lock);
	free(c);
}

/* CommLib's sentence under an error code of MPI's. */
static int code_for(const char *what)
{
	static int class;
	char text[MPI_MAX_ERROR_STRING];
	int code;

	if (!class && PMPI_Add_error_class(&class))
		return MPI_ERR_OTHER;
	if (PMPI_Add_error_code(class, &code))
		return MPI_ERR_OTHER;
	snprintf(text, sizeof(text), "%.*s", (int)sizeof(text) - 1, what);
	PMPI_Add_error_string(code, text);
	return code;
}

int im_error(struct im_comm *c, int rc)
{
	char what[CCL_ERR_LEN + 64], why[CCL_ERR_LEN] = "";

	if (!c->code) {
		pthread_mutex_lock(&im.lock);
		if (!c->meeting)
			snprintf(why, sizeof(why), "%s", ccl_error(c->ccl));
		pthread_mutex_unlock(&im.lock);
		snprintf(what, sizeof(what), "Incline: %s", why[0] ? why : strerror(-rc));
		im_say("rank %d: %s", im.world_rank, what + sizeof("Incline: ") - 1);
		c->code = code_for(what);
	}
	PMPI_Comm_call_errhandler(c->comm, c->code);
	return c->code;
}

/* ---- begin and end ---- */

static int started(void)
{
	const char *show = getenv("INCLINE_MPI_SHOW");
	struct im_comm *world;

	im.show = show ? atoi(show) + 1 : 1;
	PMPI_Comm_rank(MPI_COMM_WORLD, &im.world_rank);
	PMPI_Comm_size(MPI_COMM_WORLD, &im.world_size);
	if (PMPI_Comm_dup(MPI_COMM_SELF, &im.self) ||
		PMPI_Comm_create_keyval(
			MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &im.keyval, NULL))
		return MPI_SUCCESS;
	im.on = true;
	world = im_comm(MPI_COMM_WORLD);
	if (world)
		im_join(world);
	return MPI_SUCCESS;
}

int MPI_Init(int *argc, char ***argv)
{
	const int rc = PMPI_Init(argc, argv);

	return rc ? rc : started();
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
	const int rc = PMPI_Init_thread(argc, argv, required, provided);

	return rc ? rc : started();
}

/* Of those in the network the first by its group's name, which is the same at all its ranks. */
static struct im_comm *first_in(void)
{
	struct im_comm *first = NULL;

	for (struct im_comm *c = im.comms; c; c = c->next)
		if (c->where == IM_IN && (!first || strcmp(c->name, first->name) < 0))
			first = c;
	return first;
}

/* Any two ranks leave those that they share in the same order: they wait for each other in each. */
static void leave_all(void)
{
	struct im_comm *c;

	PMPI_Barrier(MPI_COMM_WORLD);
	for (c = im.comms; c; c = c->next)
		if (c->where != IM_IN)
			im_leave(c);
	while ((c = first_in()))
		im_leave(c);
	while ((c = im.comms)) {
		PMPI_Comm_delete_attr(c->comm, im.keyval);
		im_forget(c);
	}
}

int MPI_Finalize(void)
{
	if (im.on) {
		leave_all();
		im_stop_thread();
		im.on = false;
		im_summary();
		PMPI_Comm_free_keyval(&im.keyval);
		PMPI_Comm_free(&im.self);
	}
	return PMPI_Finalize();
}

static struct im_comm *known(MPI_Comm comm)
{
	struct im_comm *c = NULL;
	int found = 0;

	if (!im.on || comm == MPI_COMM_NULL || PMPI_Comm_get_attr(comm, im.keyval, &c, &found) ||
		!found)
		return NULL;
	return c;
}

int MPI_Comm_free(MPI_Comm *comm)
{
	struct im_comm *c = comm ? known(*comm) : NULL;
	int rc;

	if (c)
		im_leave(c);
	rc = PMPI_Comm_free(comm);
	if (c)
		im_forget(c);
	return rc;
}

int MPI_Comm_disconnect(MPI_Comm *comm)
{
	struct im_comm *c = comm ? known(*comm) : NULL;
	int rc;

	if (c)
		im_leave(c);
	rc = PMPI_Comm_disconnect(comm);
	if (c)
		im_forget(c);
	return rc;
}
