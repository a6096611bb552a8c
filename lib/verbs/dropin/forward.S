/* SPDX-License-Identifier: BSD-3-Clause */
/* One stub for each symbol of the library, under its version. A stub jumps to where its slot points,
 * with all arguments as they are, so it needs no prototype; a slot points to bind until its function
 * is called first, which asks drop_in_bind (dropin.c) where to go, as a linkage table does. */
#include SYMBOLS

	.macro	stub name, at, version
	.p2align 4
	.globl	"\name\().\version"
	.type	"\name\().\version", @function
"\name\().\version":
	.cfi_startproc
	endbr64
	movl	$slot, %r10d
	jmp	*slots + 8 * slot(%rip)
	.cfi_endproc
	.size	"\name\().\version", . - "\name\().\version"
	.symver	"\name\().\version", \name\at\version, remove
	.set	slot, slot + 1
	.endm

	.text
	.set	slot, 0
#define X(name, at, version) stub name, at, version;
DROP_IN_SYMBOLS(X)

/* r10: the slot. Keeps what the call passes: six registers, the number of vector registers in al,
 * and those. */
	.p2align 4
	.type	bind, @function
bind:
	.cfi_startproc
	endbr64
	pushq	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	movq	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	pushq	%rcx
	pushq	%r8
	pushq	%r9
	pushq	%rax
	pushq	%r10
	subq	$128, %rsp
	andq	$-16, %rsp
	movaps	%xmm0, (%rsp)
	movaps	%xmm1, 16(%rsp)
	movaps	%xmm2, 32(%rsp)
	movaps	%xmm3, 48(%rsp)
	movaps	%xmm4, 64(%rsp)
	movaps	%xmm5, 80(%rsp)
	movaps	%xmm6, 96(%rsp)
	movaps	%xmm7, 112(%rsp)
	movl	%r10d, %edi
	call	drop_in_bind
	movq	%rax, %r11
	movaps	(%rsp), %xmm0
	movaps	16(%rsp), %xmm1
	movaps	32(%rsp), %xmm2
	movaps	48(%rsp), %xmm3
	movaps	64(%rsp), %xmm4
	movaps	80(%rsp), %xmm5
	movaps	96(%rsp), %xmm6
	movaps	112(%rsp), %xmm7
	movq	-64(%rbp), %r10
	leaq	slots(%rip), %rax
	movq	%r11, (%rax, %r10, 8)
	leaq	-56(%rbp), %rsp
	popq	%rax
	popq	%r9
	popq	%r8
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	jmp	*%r11
	.cfi_endproc
	.size	bind, . - bind

	.section .data.rel.local, "aw", @progbits
	.p2align 3
slots:
	.rept	slot
	.quad	bind
	.endr

	.section .note.GNU-stack, "", @progbits
