/* SPDX-License-Identifier: MIT */
/*
 * The guest is its own BIOS: from the reset vector to C in 32-bit mode, and the interrupt stubs.
 */
	.section .text.start, "ax"
	.code32
	.globl start32
start32:
	movl	$0x10, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	%eax, %ss
	movl	$stack_end, %esp
	cld
	call	guest_main
1:	hlt
	jmp	1b

/* Stubs of the message vectors, 16 bytes apart: their numbers count from VECTOR_BASE of guest.c. */
	.balign	16
	.globl irq_stubs
irq_stubs:
	.set	n, 0
	.rept	16
	.balign	16
	pushl	$n
	jmp	irq_common
	.set	n, n + 1
	.endr

irq_common:
	pushal
	cld
	pushl	32(%esp)
	call	irq
	addl	$4, %esp
	popal
	addl	$4, %esp
	iret

	.section .payload, "a"
	.balign	128
	.globl firmware, firmware_end, job, job_end
firmware:
	.incbin FIRMWARE
firmware_end:
	.balign	128
job:
	.incbin JOB
job_end:

/* The last 256 bytes below 4 GB; the processor starts 16 bytes before their end, in 16-bit mode. */
	.section .reset, "ax"
	.code16
reset:
	cli
	lgdtl	%cs:(0xff00 + gdt_pointer - reset)
	movl	%cr0, %eax
	orl	$1, %eax
	movl	%eax, %cr0
	ljmpl	$8, $start32
	.balign	8
gdt:	.quad	0
	.quad	0x00cf9b000000ffff
	.quad	0x00cf93000000ffff
gdt_pointer:
	.word	23
	.long	gdt
	.org	0xf0
	jmp	reset
	.org	0xff
	.byte	0

	.section .bss
	.balign	16
	.space	65536
stack_end:

	.section .note.GNU-stack, "", @progbits
