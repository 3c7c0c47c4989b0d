/* SPDX-License-Identifier: MIT */
/*
 * Entry and trap vector. The boot ROM leaves everything but the program counter undefined.
 */
	.section .init, "ax"
	.globl	_start
_start:
	csrw	mie, zero
	csrci	mstatus, 8
	la	t0, trap
	csrw	mtvec, t0
	.option push
	.option norelax
	la	gp, __global_pointer$
	.option pop
	la	sp, fw_stack_top
	la	t0, fw_bss_start
	la	t1, fw_bss_end
1:	bgeu	t0, t1, 2f
	sw	zero, 0(t0)
	addi	t0, t0, 4
	j	1b
2:	/* MEIE and MTIE: what ends WFI. mstatus.MIE stays clear, so no interrupt is taken. */
	li	t0, (1 << 11) | (1 << 7)
	csrw	mie, t0
	call	fw_main
3:	wfi
	j	3b

	/* The stack may be what is broken: the report runs on one of its own. */
	.balign	4
trap:
	csrr	a0, mcause
	csrr	a1, mepc
	csrr	a2, mtval
	mv	a3, ra
	la	sp, fw_trap_stack_top
	call	fw_trap
4:	j	4b

	.bss
	.balign	16
fw_trap_stack:
	.space	1024
fw_trap_stack_top:
