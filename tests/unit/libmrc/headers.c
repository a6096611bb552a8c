/* SPDX-License-Identifier: BSD-3-Clause */
/* Compiled in C and C++, at each version: the headers say what facts.h says. USED is the version
 * that the program asks for, GOT the one that it gets. */
#define MRC_API_VER_USED USED
#define MRC_CTL_API_VER_USED USED
#include "lib/libmrc/mrc_ctl.h"

#include "tests/unit/libmrc/facts.h"

#include <stddef.h>

#ifdef __cplusplus
#include <type_traits>
#define SAME(a, b) std::is_same<a, b>::value
#define CHECK static_assert
#else
#define SAME(a, b) __builtin_types_compatible_p(a, b)
#define CHECK _Static_assert
#endif

#define ENUM_IS(e) CHECK(sizeof(enum e) == 4, #e);
ENUMS(ENUM_IS)

#define VALUE_IS(name, value) CHECK((name) == (value), #name);
VALUES(VALUE_IS)

#define VERSION_IS(name, value) CHECK((uint32_t)(name) == (value), #name);
VERSIONS(VERSION_IS)
#if MRC_API_CURRENT_VERSION != 0x01000001 || MRC_CTL_API_CURRENT_VERSION != 0x01000001 || \
	MRC_API_VER_LATEST != 0xffffffff || MRC_CTL_API_VER_LATEST != 0xffffffff
#error "the preprocessor sees other numbers than the compiler"
#endif
CHECK(MRC_API_VER_USED == GOT, "version of the API that is used");
CHECK(MRC_CTL_API_VER_USED == GOT, "version of the controller's API that is used");

#define SIZE_IS(s, size, align) \
	CHECK(sizeof(struct s) == (size) && __alignof__(struct s) == (align), #s);
SIZES(SIZE_IS)

#define MEMBER_IS(s, m, type, off)                                     \
	CHECK(offsetof(struct s, m) == (off), "offset of " #s "." #m); \
	CHECK(SAME(__typeof__(((struct s *)0)->m), type), "type of " #s "." #m);
MEMBERS(MEMBER_IS)

#define FUNCTION_IS(ret, name, par) CHECK(SAME(__typeof__(name), ret par), #name);
FUNCTIONS(FUNCTION_IS)

#if GOT >= 0x01000001
FUNCTIONS_101(FUNCTION_IS)
CHECK(sizeof(struct mrc_ctl_ev_event) == 56, "an event has a state");
CHECK(offsetof(struct mrc_ctl_ev_event, state) == 48, "state of an event");
#else
/* Not declared, so that a program may use the names. */
#define FREE_NAME(ret, name, par) enum { name };
FUNCTIONS_101(FREE_NAME)
CHECK(sizeof(struct mrc_ctl_ev_event) == 48, "an event has no state");
#endif

/* A program's use of the compound literal; GNU C++ takes it, too. */
int headers_unpopulated(void);
int headers_unpopulated(void)
{
	struct mrc_ctl_ev ev = MRC_CTL_EV_UNPOPULATED;

	return ev.port;
}
