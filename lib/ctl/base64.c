/* SPDX-License-Identifier: BSD-3-Clause */
#include "lib/ctl/base64.h"

#include <errno.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

json_t *ctl_bytes(const uint8_t *data, size_t len)
{
	unsigned char *text = len < INT_MAX / 2 ? malloc((len + 2) / 3 * 4 + 1) : NULL;
	json_t *out = NULL;

	if (text) {
		const int n = EVP_EncodeBlock(text, data, (int)len);

		out = json_stringn_nocheck((const char *)text, (size_t)n);
	}
	free(text);
	return out;
}

/* OpenSSL passes over blanks. */
static int is_plain(const char *text, size_t len)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const size_t n = strspn(text, letters);

	return len % 4 == 0 && n <= len && len - n <= 2 && n + strspn(text + n, "=") == len;
}

int ctl_get_bytes(const json_t *json, uint8_t **data, size_t *len)
{
	const char *text = json_string_value(json);
	const size_t n = json_string_length(json);
	uint8_t *out;

	if (!text || n > INT_MAX || !is_plain(text, n))
		return -EINVAL;
	out = malloc(n / 4 * 3 + 1);
	if (!out)
		return -ENOMEM;
	if (EVP_DecodeBlock(out, (const unsigned char *)text, (int)n) < 0) {
		free(out);
		return -EINVAL;
	}
	*data = out;
	*len = n / 4 * 3 - (n && text[n - 1] == '=') - (n && text[n - 2] == '=');
	return 0;
}
