/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference in docs/manager.md is what the schema says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "lib/ctl/manager_schema.h"

static void test_page(void **state)
{
	static char page[1 << 20];
	char *text = NULL;
	size_t len = 0;
	FILE *f = fopen(MANAGER_PAGE, "re"), *out = open_memstream(&text, &len);

	(void)state;
	assert_non_null(f);
	page[fread(page, 1, sizeof(page) - 1, f)] = '\0';
	fclose(f);
	ctl_manager_markdown(out);
	fclose(out);
	if (!strstr(page, text))
		fail_msg("docs/manager.md is not what the schema says: tools/docs");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_page)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
