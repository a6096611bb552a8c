/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MODEL_SEEDED_H
#define MODEL_SEEDED_H

/* Makes the engine behave as with one of the bugs of dataplane/inc/seeded_bugs.h, "none" as it is.
 * 0, or -EINVAL if there is none of this name, or none at all in this program. */
int mc_seed(const char *name);
/* The one that is in force, or NULL. */
const char *mc_seeded(void);

#endif
