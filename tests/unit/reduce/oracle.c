/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/reduce/oracle.h"

#include <string.h>

#ifdef __SIZEOF_FLOAT128__
typedef __float128 quad;
#else
typedef long double quad; /* where that has 113 bits */
_Static_assert(sizeof(quad) == 16, "no quadruple precision");
#endif
typedef unsigned __int128 wide;

struct format {
	unsigned bits, mantissa; /* a float's; its exponent has the rest but the sign */
};

static const struct format formats[REDUCE_UINT64 + 1] = {
	/* integers: none */
	[REDUCE_FP32] = {32, 23},
	[REDUCE_FP16] = {16, 10},
	[REDUCE_BF16] = {16, 7},
	[REDUCE_FP64] = {64, 52},
};

enum { QUAD_MANTISSA = 112, QUAD_BIAS = 16383 };

static bool is_float(enum reduce_dtype dtype)
{
	return dtype <= REDUCE_BF16 || dtype == REDUCE_FP64;
}

static bool is_half(enum reduce_dtype dtype)
{
	return dtype == REDUCE_FP16 || dtype == REDUCE_BF16;
}

static bool is_signed(enum reduce_dtype dtype)
{
	return dtype == REDUCE_INT8 || dtype == REDUCE_INT32 || dtype == REDUCE_INT64;
}

static unsigned bits_of(enum reduce_dtype dtype)
{
	static const unsigned bits[] = {32, 16, 16, 32, 64, 64, 8, 8, 32, 64};

	return bits[dtype];
}

static int bias(const struct format *f)
{
	return (1 << (f->bits - f->mantissa - 2)) - 1;
}

/* Exponent of infinities and NaNs. */
static uint64_t top(const struct format *f)
{
	return (1u << (f->bits - f->mantissa - 1)) - 1;
}

static uint64_t canonical_nan(const struct format *f)
{
	return top(f) << f->mantissa | 1ULL << (f->mantissa - 1);
}

static quad quad_of(bool sign, uint64_t exponent, wide mantissa)
{
	wide u = (wide)sign << 127 | (wide)exponent << QUAD_MANTISSA | mantissa;
	quad q;

	memcpy(&q, &u, sizeof(q));
	return q;
}

static quad decode(const struct format *f, uint64_t x)
{
	const bool sign = x >> (f->bits - 1) & 1;
	const uint64_t m = x & ((1ULL << f->mantissa) - 1), e = x >> f->mantissa & top(f);
	unsigned k;

	if (e == top(f))
		return quad_of(sign, 0x7fff, (wide)m << (QUAD_MANTISSA - f->mantissa));
	if (e)
		return quad_of(sign, (uint64_t)(QUAD_BIAS - bias(f)) + e,
			(wide)m << (QUAD_MANTISSA - f->mantissa));
	if (m == 0)
		return quad_of(sign, 0, 0);
	k = 63 - (unsigned)__builtin_clzll(m); /* m = 2^k (1 + ...), in units of the smallest */
	return quad_of(sign, (uint64_t)(QUAD_BIAS + 1 - bias(f) - (int)f->mantissa + (int)k),
		(wide)(m ^ 1ULL << k) << (QUAD_MANTISSA - k));
}

/* Rounds to nearest, ties to even. */
static uint64_t encode(const struct format *f, quad q)
{
	const wide one = 1;
	wide u, keep, rest;
	uint64_t sign;
	int e, unit, shift;

	memcpy(&u, &q, sizeof(u));
	sign = (uint64_t)(u >> 127) << (f->bits - 1);
	e = (int)(u >> QUAD_MANTISSA & 0x7fff);
	u &= (one << QUAD_MANTISSA) - 1;
	if (e == 0x7fff)
		return u ? canonical_nan(f) : sign | top(f) << f->mantissa;
	if (e == 0) /* quad's own subnormals are below everything */
		return sign;
	e -= QUAD_BIAS;
	u |= one << QUAD_MANTISSA;
	unit = (e < 1 - bias(f) ? 1 - bias(f) : e) - (int)f->mantissa;
	shift = QUAD_MANTISSA - e + unit;
	if (shift > QUAD_MANTISSA + 2)
		return sign;
	keep = u >> shift;
	rest = u & ((one << shift) - 1);
	if (rest > one << (shift - 1) || (rest == one << (shift - 1) && (keep & 1)))
		keep++;
	if (keep < one << f->mantissa)
		return sign | (uint64_t)keep;
	if (keep == one << (f->mantissa + 1)) {
		keep >>= 1;
		unit++;
	}
	e = unit + (int)f->mantissa + bias(f);
	if (e >= (int)top(f))
		return sign | top(f) << f->mantissa;
	return sign | (uint64_t)e << f->mantissa | (uint64_t)(keep - (one << f->mantissa));
}

static bool quad_sign(quad q)
{
	wide u;

	memcpy(&u, &q, sizeof(u));
	return u >> 127;
}

static bool quad_less(quad a, quad b)
{
	return a < b || (a == b && quad_sign(a) && !quad_sign(b));
}

static quad quad_op(enum reduce_op op, quad a, quad b)
{
	if (op == REDUCE_SUM)
		return a + b;
	if (op == REDUCE_PROD)
		return a * b;
	if (a != a || b != b)
		return quad_of(0, 0x7fff, 1);
	return quad_less(a, b) == (op == REDUCE_MIN) ? a : b;
}

static __int128 integer(enum reduce_dtype dtype, uint64_t x)
{
	const unsigned n = bits_of(dtype);

	if (is_signed(dtype) && x >> (n - 1) & 1)
		return (__int128)x - ((__int128)1 << n);
	return x;
}

static uint64_t integer_op(enum reduce_op op, enum reduce_dtype dtype, uint64_t a, uint64_t b)
{
	const __int128 x = integer(dtype, a), y = integer(dtype, b);
	__int128 r;

	if (op == REDUCE_SUM)
		r = x + y;
	else if (op == REDUCE_PROD)
		r = (__int128)((wide)x * (wide)y);
	else if (op == REDUCE_MIN)
		r = x < y ? x : y;
	else
		r = x > y ? x : y;
	return (uint64_t)((wide)r & (((wide)1 << bits_of(dtype)) - 1));
}

uint64_t oracle_widen(enum reduce_dtype dtype, uint64_t a)
{
	return is_half(dtype) ? encode(&formats[REDUCE_FP32], decode(&formats[dtype], a)) : a;
}

uint64_t oracle_narrow(enum reduce_dtype dtype, uint64_t acc)
{
	return is_half(dtype) ? encode(&formats[dtype], decode(&formats[REDUCE_FP32], acc)) : acc;
}

uint64_t oracle_accumulate(enum reduce_op op, enum reduce_dtype dtype, uint64_t acc, uint64_t b)
{
	const struct format *f = &formats[is_half(dtype) ? REDUCE_FP32 : dtype];

	if (!is_float(dtype))
		return integer_op(op, dtype, acc, b);
	return encode(f, quad_op(op, decode(f, acc), decode(&formats[dtype], b)));
}

/* fp16, bf16: rounded to the type at once, although the kernels go through fp32. */
uint64_t oracle(enum reduce_op op, enum reduce_dtype dtype, uint64_t a, uint64_t b)
{
	const struct format *f = &formats[dtype];

	if (!is_float(dtype))
		return integer_op(op, dtype, a, b);
	return encode(f, quad_op(op, decode(f, a), decode(f, b)));
}

bool oracle_supports(enum reduce_op op, enum reduce_dtype dtype)
{
	if ((unsigned)dtype > REDUCE_UINT64)
		return false;
	if (op == REDUCE_PROD)
		return dtype != REDUCE_INT8 && dtype != REDUCE_UINT8;
	return op == REDUCE_SUM || op == REDUCE_MIN || op == REDUCE_MAX;
}

bool oracle_is_nan(enum reduce_dtype dtype, uint64_t a)
{
	const struct format *f = &formats[dtype];

	return is_float(dtype) && (a >> f->mantissa & top(f)) == top(f) &&
	       (a & ((1ULL << f->mantissa) - 1)) != 0;
}

size_t oracle_specials(enum reduce_dtype dtype, uint64_t *to)
{
	const unsigned n = bits_of(dtype);
	const uint64_t sign = 1ULL << (n - 1), all = sign | (sign - 1);
	size_t k = 0;

	if (is_float(dtype)) {
		const struct format *f = &formats[dtype];
		const unsigned m = f->mantissa;
		const uint64_t one = (uint64_t)bias(f) << m, inf = top(f) << m,
			       quiet = 1ULL << (m - 1);
		const uint64_t positive[] = {0, 1, 2, 3, quiet,
			(1ULL << m) - 1,                              /* zero, subnormals */
			1ULL << m, (1ULL << m) + 1,                   /* smallest normals */
			one, one + 1, one + 2, one + quiet, one - 1,  /* about 1; 1.5 */
			one - ((uint64_t)m << m),                     /* 1's last place */
			one - ((uint64_t)(m + 1) << m),               /* half of it */
			one - ((uint64_t)(m + 1) << m) + 1,           /* and a little more */
			one + ((uint64_t)(m + 1) << m),               /* integers end here */
			inf / 2, inf - 1, inf - 2, inf - (1ULL << m), /* largest */
			inf, inf | quiet, inf | quiet | 1,
			inf | 1, /* infinity, NaNs of both kinds */
			inf | (quiet - 1), inf | ((quiet << 1) - 1)};

		for (size_t i = 0;
			i < sizeof(positive) / sizeof(*positive) && k < ORACLE_SPECIALS - 1; i++) {
			to[k++] = positive[i];
			if (i < 12 || i > 17)
				to[k++] = positive[i] | sign;
		}
	} else {
		const uint64_t some[] = {0, 1, 2, 3, all, all - 1, sign, sign + 1, sign - 1,
			sign - 2, sign >> 1, all / 3, all / 3 * 2, all >> n / 2, (all >> n / 2) + 1,
			sign >> n / 2};

		for (size_t i = 0; i < sizeof(some) / sizeof(*some); i++)
			to[k++] = some[i] & all;
	}
	return k;
}
