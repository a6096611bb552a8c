/* SPDX-License-Identifier: BSD-3-Clause */
/* The memif driver's calls of munmap, one function of one library, lead to ours: its entries in the
 * table of functions that it was linked with are changed. All else in the process keeps its munmap,
 * and it does not matter in which order, and in whose scope, the libraries were loaded. */
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib/port/internal.h"

struct hook {
	const char *library, *symbol;
	void *function;
	unsigned n; /* entries */
	int error;
};

/* What a loaded object says of itself. */
struct tables {
	const ElfW(Sym) * symbols;
	const char *names;
	const ElfW(Rela) * rela[2]; /* of functions, and of addresses taken */
	size_t bytes[2];
	uintptr_t relro, relro_end; /* read-only since the dynamic linker was done with it */
};

static void read_tables(const ElfW(Dyn) * dyn, struct tables *t)
{
	for (; dyn->d_tag != DT_NULL; dyn++) {
		switch (dyn->d_tag) {
		case DT_SYMTAB:
			t->symbols = (const void *)dyn->d_un.d_ptr;
			break;
		case DT_STRTAB:
			t->names = (const void *)dyn->d_un.d_ptr;
			break;
		case DT_JMPREL:
			t->rela[0] = (const void *)dyn->d_un.d_ptr;
			break;
		case DT_PLTRELSZ:
			t->bytes[0] = dyn->d_un.d_val;
			break;
		case DT_RELA:
			t->rela[1] = (const void *)dyn->d_un.d_ptr;
			break;
		case DT_RELASZ:
			t->bytes[1] = dyn->d_un.d_val;
			break;
		}
	}
}

/* Other entries of the page may be in use meanwhile. */
static int store(void **entry, void *function, const struct tables *t)
{
	const bool read_only = (uintptr_t)entry >= t->relro && (uintptr_t)entry < t->relro_end;
	const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE);
	void *page = (void *)((uintptr_t)entry & ~(size - 1));

	if (*entry == function)
		return 0;
	if (read_only && mprotect(page, size, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	__atomic_store_n(entry, function, __ATOMIC_RELEASE);
	return read_only && mprotect(page, size, PROT_READ) < 0 ? -errno : 0;
}

static void hook_all(struct hook *h, uintptr_t base, const struct tables *t)
{
	for (unsigned k = 0; k < 2; k++) {
		for (size_t i = 0; t->rela[k] && i < t->bytes[k] / sizeof(*t->rela[k]); i++) {
			const ElfW(Rela) *r = &t->rela[k][i];
			const ElfW(Sym) *symbol = &t->symbols[ELF64_R_SYM(r->r_info)];

			if (strcmp(t->names + symbol->st_name, h->symbol) != 0)
				continue;
			h->error = store((void **)(base + r->r_offset), h->function, t);
			if (h->error < 0)
				return;
			h->n++;
		}
	}
}

static int look(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct hook *h = arg;
	struct tables t = {0};

	(void)size;
	if (strstr(info->dlpi_name, h->library) == NULL)
		return 0;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_DYNAMIC)
			read_tables((const void *)(info->dlpi_addr + p->p_vaddr), &t);
		if (p->p_type == PT_GNU_RELRO) {
			t.relro = info->dlpi_addr + p->p_vaddr;
			t.relro_end = t.relro + p->p_memsz;
		}
	}
	if (t.symbols != NULL && t.names != NULL)
		hook_all(h, info->dlpi_addr, &t);
	return h->error;
}

int port_hook(const char *library, const char *symbol, void *function)
{
	struct hook h = {.library = library, .symbol = symbol, .function = function};

	dl_iterate_phdr(look, &h);
	if (h.error < 0)
		return h.error;
	return h.n > 0 ? (int)h.n : -ENOENT;
}
