/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes as JSON: strings in base64 (RFC 4648, section 4). Any thread. */
#ifndef CTL_BASE64_H
#define CTL_BASE64_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/* A new reference; NULL: out of memory. */
json_t *ctl_bytes(const uint8_t *data, size_t len);

/* The bytes of a string, to be freed (never NULL on success), and how many. -EINVAL: it is no
 * string, or not base64 with its padding; -ENOMEM. */
int ctl_get_bytes(const json_t *json, uint8_t **data, size_t *len);

#endif
