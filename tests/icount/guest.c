// SPDX-License-Identifier: MIT
/*
 * A machine of its own for tests/icount/test_icount: a BIOS that finds every card, boots its
 * firmware and drives it as a driver would, once polling and once asleep until an interrupt, and
 * prints to the debug port when it saw what. All that it prints is a function of the machine's
 * virtual time: it must repeat to the byte.
 *
 * Times are those of the HPET, in units of its period, and so independent of the cards.
 *
 * Exit status by isa-debug-exit: 1 all was as it should be, 3 not; a line "bad" says what.
 */
#include <stdbool.h>
#include <stdint.h>

#include <spyre/cb.h>
#include <spyre/fw.h>
#include <spyre/hw.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;

#define CARDS	    2u
#define VECTOR_BASE 0x40u /* card i has 8 messages from VECTOR_BASE + 8 * i on */
#define APIC	    0xfee00000u
#define HPET	    0xfed00000u
#define PORT_DEBUG  0xe9
#define PORT_EXIT   0xf4

/* Card memory. */
#define TABLES	    0x1000000u
#define TABLE_DMVA0 (TABLES + 0x10000)
#define TABLE_DMVA7 (TABLES + 0x20000)
#define TABLE_HMVA  (TABLES + 0x30000)
#define PAGES	    0x4000000u

/* Guest RAM is at its physical address as HMVA and, for what only the firmware may write, PRIV
 * again. */
#define RAM_SIZE  0x4000000u
#define HMVA_PRIV 0x40000000u
#define SCRATCH	  0x2000000u /* 8 MB for each card */

#define DMVA	 0x400000u /* 8 pages */
#define DMVA_A	 DMVA
#define DMVA_B	 (DMVA + 0x200000)
#define DMVA_C	 (DMVA + 0x400000)
#define DMVA_D	 (DMVA + 0x600000)
#define DMVA_BIG (DMVA + 0x800000)

#define RING	64u
#define ROUNDS	2u
#define BATCHES 6u
#define SEEN	256u

/* The product of the job: see build.mk. */
#define M	  128u
#define N	  256u
#define K	  128u
#define A_BYTES	  (M * K * 2)
#define B_BYTES	  (K * N * 2)
#define C_BYTES	  (M * N * 2)
#define JOB_BYTES 0x10000u

extern const u8 irq_stubs[], firmware[], firmware_end[], job[], job_end[];

void guest_main(void);
void irq(u32 n);
void *memset(void *p, int c, size_t n);
void *memcpy(void *to, const void *from, size_t n);

struct card {
	u32 devfn;
	volatile u8 *regs, *mem, *doorbells;
	struct spyre_cb ring[RING] __attribute__((aligned(4096)));
	struct spyre_rb rb[RING] __attribute__((aligned(4096)));
	struct spyre_msg cmd[RING] __attribute__((aligned(4096)));
	struct spyre_msg evt[RING] __attribute__((aligned(4096)));
	struct spyre_vec_event vec[256] __attribute__((aligned(4096)));
	volatile struct spyre_shadow shadow __attribute__((aligned(4096)));
	volatile struct spyre_queue_status status __attribute__((aligned(4096)));
	volatile struct spyre_arm arm;
	struct spyre_usage usage __attribute__((aligned(64)));
	u64 symbols[3];
	u32 cmd_tail, evt_head, tail;
	u32 seen_at[RING];
	u8 a[A_BYTES] __attribute__((aligned(4096)));
	u8 b[B_BYTES] __attribute__((aligned(4096)));
	u8 c[C_BYTES] __attribute__((aligned(4096)));
	u8 job[JOB_BYTES] __attribute__((aligned(4096))); /* the card cannot see the BIOS */
};

static struct card card[CARDS];
static u32 cards;
static u64 idt[256];
static bool failed;

static struct {
	u32 vector, at, tsc;
} interrupts[SEEN];
static volatile u32 ninterrupts;
static u32 nprinted;

/* --- The machine ---------------------------------------------------------------- */

static inline void outb(u16 port, u8 v)
{
	__asm__ volatile("outb %0, %1" : : "a"(v), "Nd"(port));
}

static inline void outl(u16 port, u32 v)
{
	__asm__ volatile("outl %0, %1" : : "a"(v), "Nd"(port));
}

static inline u32 inl(u16 port)
{
	u32 v;

	__asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port));
	return v;
}

static inline u32 rdtsc(void)
{
	u32 lo, hi;

	__asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
	return lo;
}

static inline u32 read32(u32 addr)
{
	return *(volatile u32 *)addr;
}

static inline void write32(u32 addr, u32 v)
{
	*(volatile u32 *)addr = v;
}

static u32 now(void)
{
	return read32(HPET + 0xf0);
}

void *memset(void *p, int c, size_t n)
{
	void *to = p;

	__asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(c) : "memory");
	return p;
}

void *memcpy(void *p, const void *from, size_t n)
{
	void *to = p;

	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
	return p;
}

static void put(const char *s)
{
	while (*s)
		outb(PORT_DEBUG, (u8)*s++);
}

static void put_hex(u64 v)
{
	u32 shift = 60;

	while (shift && !(v >> shift))
		shift -= 4;
	for (;; shift -= 4) {
		outb(PORT_DEBUG, (u8) "0123456789abcdef"[v >> shift & 15]);
		if (!shift)
			break;
	}
}

/* A line: its word and n numbers. */
static void line(const char *word, u32 n, const u64 *v)
{
	u32 i;

	put(word);
	for (i = 0; i < n; i++) {
		put(" ");
		put_hex(v[i]);
	}
	put("\n");
}

#define LINE(word, ...) line(word, sizeof((u64[]){ __VA_ARGS__ }) / 8, (u64[]){ __VA_ARGS__ })

static void bad(const char *what, u32 got, u32 want)
{
	failed = true;
	put("bad: ");
	LINE(what, got, want);
}

static __attribute__((noreturn)) void leave(void)
{
	put(failed ? "end bad\n" : "end good\n");
	outl(PORT_EXIT, failed ? 1 : 0);
	for (;;)
		__asm__ volatile("cli; hlt");
}

void irq(u32 n)
{
	u32 i = ninterrupts;

	if (i < SEEN) {
		interrupts[i].vector = n;
		interrupts[i].at = now();
		interrupts[i].tsc = rdtsc();
		ninterrupts = i + 1;
	}
	write32(APIC + 0xb0, 0);
}

static void print_interrupts(void)
{
	for (; nprinted < ninterrupts; nprinted++)
		LINE("irq", interrupts[nprinted].vector, interrupts[nprinted].at,
		     interrupts[nprinted].tsc);
}

static void set_up_machine(void)
{
	struct {
		u16 limit;
		u32 base;
	} __attribute__((packed)) idtr = { sizeof(idt) - 1, (u32)idt };
	u32 i;

	for (i = 0; i < 8 * CARDS; i++) {
		u32 at = (u32)irq_stubs + 16 * i;

		idt[VECTOR_BASE + i] =
			(u64)(at >> 16) << 48 | 0x8e00ull << 32 | 8u << 16 | (at & 0xffff);
	}
	__asm__ volatile("lidt %0" : : "m"(idtr));
	/* Nothing but messages interrupts. */
	outb(0x21, 0xff);
	outb(0xa1, 0xff);
	write32(APIC + 0xf0, 0x1ff);
	write32(HPET + 0x10, 1);
}

/* --- PCI ---------------------------------------------------------------- */

static u32 config_read(u32 devfn, u32 off)
{
	outl(0xcf8, 0x80000000u | devfn << 8 | (off & 0xfc));
	return inl(0xcfc);
}

static void config_write(u32 devfn, u32 off, u32 v)
{
	outl(0xcf8, 0x80000000u | devfn << 8 | (off & 0xfc));
	outl(0xcfc, v);
}

static void find_cards(void)
{
	u32 devfn;

	for (devfn = 0; devfn < 256 && cards < CARDS; devfn += 8)
		if (config_read(devfn, 0) == (SPYRE_PCI_DEVICE_PF << 16 | SPYRE_PCI_VENDOR))
			card[cards++].devfn = devfn;
	if (!cards)
		bad("no card", 0, 1);
}

/* A 256 MB aperture and the other BARs, below 4 GB. */
static void set_up_pci(struct card *c)
{
	u32 i = c - card;
	u32 regs = 0xe0000000u + i * 0x400000u, mem = 0xc0000000u + i * 0x10000000u,
	    db = 0xe2000000u + i * 0x2000000u;

	config_write(c->devfn, 0x10, regs);
	config_write(c->devfn, 0x14, 0);
	config_write(c->devfn, 0x18, mem);
	config_write(c->devfn, 0x1c, 0);
	config_write(c->devfn, 0x20, db);
	config_write(c->devfn, 0x24, 0);
	config_write(c->devfn, 4, 6);
	/* MSI at 0x50: eight messages. */
	config_write(c->devfn, 0x54, APIC);
	config_write(c->devfn, 0x58, 0);
	config_write(c->devfn, 0x5c, VECTOR_BASE + 8 * i);
	config_write(c->devfn, 0x50, 1u << 16 | 3u << 20);
	c->regs = (u8 *)regs;
	c->mem = (u8 *)mem;
	c->doorbells = (u8 *)db;
}

static void function_reset(struct card *c)
{
	config_write(c->devfn, 0x78, config_read(c->devfn, 0x78) | 1u << 15);
}

/* --- The card ---------------------------------------------------------------- */

static u32 reg(struct card *c, u32 off)
{
	return *(volatile u32 *)(c->regs + off);
}

static void set_reg(struct card *c, u32 off, u32 v)
{
	*(volatile u32 *)(c->regs + off) = v;
}

/* All addresses of this guest have 32 bits; the other half of the register is zero after a reset.
 */
static void set_address(struct card *c, u32 off, const volatile void *p)
{
	set_reg(c, off, (u32)p);
	set_reg(c, off + 4, 0);
}

/* Looks again and again, or after each interrupt: sti lets none come before hlt. */
static void nap(bool asleep)
{
	if (asleep)
		__asm__ volatile("sti; hlt; cli" : : : "memory");
	else
		__asm__ volatile("sti; nop; cli" : : : "memory");
}

static void boot(struct card *c)
{
	u32 start = now(), time = reg(c, SPYRE_REG_TIME);

	memcpy((void *)c->mem, firmware, firmware_end - firmware);
	set_reg(c, SPYRE_REG_FW_ADDR, 0);
	set_reg(c, SPYRE_REG_FW_ADDR + 4, 0);
	set_reg(c, SPYRE_REG_FW_LEN, firmware_end - firmware);
	set_address(c, SPYRE_REG_MBOX_CMD_BASE, c->cmd);
	set_address(c, SPYRE_REG_MBOX_EVT_BASE, c->evt);
	set_reg(c, SPYRE_REG_MBOX_CMD_ENTRIES, RING);
	set_reg(c, SPYRE_REG_MBOX_EVT_ENTRIES, RING);
	set_address(c, SPYRE_REG_VEC_BASE(1), c->vec);
	set_reg(c, SPYRE_REG_VEC_ENTRIES(1), 256);
	set_reg(c, SPYRE_REG_VEC_COUNT, 8);
	set_reg(c, SPYRE_REG_MCU_CTRL, SPYRE_MCU_CTRL_RUN);
	while (reg(c, SPYRE_REG_STATE) != SPYRE_STATE_ONLINE) {
		if (reg(c, SPYRE_REG_BOOT_STATUS) > SPYRE_BOOT_RUNNING) {
			bad("boot", reg(c, SPYRE_REG_BOOT_STATUS), SPYRE_BOOT_RUNNING);
			leave();
		}
		nap(true);
	}
	LINE("online", c - card, start, time, now(), reg(c, SPYRE_REG_TIME),
	     reg(c, SPYRE_REG_RESET_GEN));
}

/* Sends a command and takes events until its answer has come. */
static void call(struct card *c, u32 type, const void *body, u32 length)
{
	struct spyre_msg *m = &c->cmd[c->cmd_tail % RING];
	u32 tag = 0x100 + c->cmd_tail;

	memset(m, 0, sizeof(*m));
	m->MessageAppId = SPYRE_APP_DRIVER;
	m->MessageType = type;
	m->MessageTag = tag;
	m->length = length;
	memcpy(m->body, body, length);
	set_reg(c, SPYRE_REG_MBOX_CMD_TAIL, ++c->cmd_tail);
	for (;;) {
		volatile struct spyre_msg *e = &c->evt[c->evt_head % RING];
		bool answer;

		while (e->seq != c->evt_head + 1)
			nap(true);
		answer = e->MessageType == SPYRE_MSG_RESPONSE && e->MessageTag == tag;
		LINE("event", c - card, e->MessageType, e->status, now());
		if (answer && e->status != SPYRE_MSG_OK)
			bad("answer", e->status, SPYRE_MSG_OK);
		set_reg(c, SPYRE_REG_MBOX_EVT_HEAD, ++c->evt_head);
		if (answer)
			return;
	}
}

static void put_entry(struct card *c, u32 table, u32 i, u64 v)
{
	volatile u32 *e = (volatile u32 *)(c->mem + table + 8 * i);

	e[1] = (u32)(v >> 32);
	e[0] = (u32)v;
}

static void put_segment(struct card *c, u32 i, u32 table)
{
	volatile u32 *s = (volatile u32 *)(c->mem + TABLES + sizeof(struct spyre_segment) * i);

	s[0] = table;
	s[2] = SPYRE_SEGMENT_PAGES;
}

static void set_up_queue(struct card *c)
{
	struct spyre_msg_ctx x = {
		.id = 1,
		.vector = 1,
		.table = TABLES,
		.arm = (u32)&c->arm,
		.usage = (u32)&c->usage,
	};
	struct spyre_msg_queue q = {
		.id = 0,
		.context = 1,
		.entries = RING,
		.priority = 1,
		.ring = (u32)c->ring,
		.response = (u32)c->rb + HMVA_PRIV,
		.shadow = (u32)&c->shadow,
		.status = (u32)&c->status + HMVA_PRIV,
		.generation = reg(c, SPYRE_REG_RESET_GEN),
	};
	u32 i;

	for (i = 0; i < 8; i++)
		put_entry(c, TABLE_DMVA0, DMVA / SPYRE_PAGE_SIZE + i,
			  (PAGES + i * SPYRE_PAGE_SIZE) | SPYRE_PTE_WRITE | SPYRE_PTE_VALID);
	put_entry(c, TABLE_DMVA7, 0,
		  (PAGES + 8 * SPYRE_PAGE_SIZE) | SPYRE_PTE_WRITE | SPYRE_PTE_VALID);
	for (i = 0; i < RAM_SIZE / SPYRE_PAGE_SIZE; i++) {
		u64 e = i * SPYRE_PAGE_SIZE | SPYRE_PTE_LEAF | SPYRE_PTE_WRITE | SPYRE_PTE_VALID;

		put_entry(c, TABLE_HMVA, i, e);
		put_entry(c, TABLE_HMVA, HMVA_PRIV / SPYRE_PAGE_SIZE + i, e | SPYRE_PTE_PRIV);
	}
	put_segment(c, 0, TABLE_DMVA0);
	put_segment(c, SPYRE_PROGRAM_SEGMENT, TABLE_DMVA7);
	put_segment(c, SPYRE_SEGMENTS, TABLE_HMVA);
	call(c, SPYRE_MSG_CTX_CREATE, &x, sizeof(x));
	call(c, SPYRE_MSG_QUEUE_CREATE, &q, sizeof(q));
}

static struct spyre_cb *entry(struct card *c, u32 type, u32 flags)
{
	struct spyre_cb *cb = &c->ring[c->tail % RING];

	memset(cb, 0, sizeof(*cb));
	cb->type = type;
	cb->flags = flags | SPYRE_CB_F_RESPONSE;
	cb->cookie = c->tail++;
	return cb;
}

static void copy(struct card *c, u32 type, u32 flags, u64 dst, u64 src, u32 bytes)
{
	struct spyre_cb *cb = entry(c, type, flags);

	cb->u.dma.dst = dst;
	cb->u.dma.src = src;
	cb->u.dma.bytes = bytes;
	cb->u.dma.ndims = 1;
}

static void fill(struct card *c, u32 dst, u32 bytes, u32 pattern)
{
	struct spyre_cb *cb = entry(c, SPYRE_CB_FILL, 0);

	cb->u.fill.dst = dst;
	cb->u.fill.bytes = bytes;
	cb->u.fill.pattern = (u64)pattern << 32 | pattern;
}

static void compute(struct card *c, u32 flags, u32 nsymbols)
{
	struct spyre_cb *cb = entry(c, SPYRE_CB_COMPUTE, flags | SPYRE_CB_F_SYM_HOST);

	cb->u.compute.bootaddr = SPYRE_PROGRAM_BASE;
	cb->u.compute.symbols = (u32)c->symbols;
	cb->u.compute.nsymbols = nsymbols;
}

static void fence(void)
{
	__asm__ volatile("lock; addl $0, (%%esp)" : : : "memory");
}

/* The rule of struct spyre_shadow; the arm word first, so that the last entry may interrupt. */
static void submit(struct card *c)
{
	u32 old = c->shadow.tail;

	c->arm.arm++;
	c->shadow.tail = c->tail;
	fence();
	if (c->tail - c->status.event_idx - 1 < c->tail - old)
		*(volatile u32 *)c->doorbells = c->tail;
}

/* Waits for everything submitted, noting when each response was first seen, and prints from entry
 * first on. */
static void complete(struct card *c, u32 first, bool asleep)
{
	u32 i;

	for (i = first; i != c->tail; i++) {
		volatile struct spyre_rb *rb = &c->rb[i % RING];

		while (rb->valid != i + 1) {
			/* One interrupt for each arm value; what came before the new one is seen at
			 * once. */
			c->arm.arm++;
			fence();
			if (rb->valid != i + 1)
				nap(asleep);
		}
		c->seen_at[i % RING] = now();
	}
	for (i = first; i != c->tail; i++) {
		struct spyre_rb *rb = &c->rb[i % RING];

		LINE("rb", c - card, i, rb->status, c->seen_at[i % RING], rb->ts[0], rb->ts[1],
		     rb->ts[2], rb->ts[3], rb->ts[4], rb->cycles, rb->bytes, rb->power);
	}
}

/* --- The work ---------------------------------------------------------------- */

/* Bits of the operands, 1 or 0, and the numbers they stand for. */
static bool a_bit(u32 r, u32 k)
{
	return (r * 0x9e3779b1u + k * 0x85ebca77u) >> 30 & 1;
}

static bool b_bit(u32 k, u32 n)
{
	return (k * 0xc2b2ae3du + n * 0x27d4eb2fu) >> 29 & 1;
}

/* A whole number up to 512 in SEN169_FP16. */
static u16 dl16(u32 v)
{
	u32 e = 0;

	if (!v)
		return 0;
	while (v >> (e + 1))
		e++;
	return (31 + e) << 9 | (v << (9 - e) & 0x1ff);
}

/* Element (r, c) of a matrix of so many stored rows, in sticks. */
static u16 *at(u8 *m, u32 rows, u32 r, u32 c)
{
	return (u16 *)m + ((c / 64) * rows + r) * 64 + c % 64;
}

static void prepare(struct card *c)
{
	u32 i, k;

	if (job_end - job > (int)JOB_BYTES)
		bad("job", job_end - job, JOB_BYTES);
	memcpy(c->job, job, job_end - job);
	for (k = 0; k < K; k++) {
		for (i = 0; i < M; i++)
			*at(c->a, M, i, k) = dl16(a_bit(i, k));
		for (i = 0; i < N; i++)
			*at(c->b, K, k, i) = dl16(b_bit(k, i));
	}
	c->symbols[0] = DMVA_A;
	c->symbols[1] = DMVA_B;
	c->symbols[2] = DMVA_C;
}

static u32 ones(u32 v)
{
	u32 n = 0;

	for (; v; v &= v - 1)
		n++;
	return n;
}

static void check_product(struct card *c)
{
	static u32 row[M][K / 32], column[N][K / 32];
	u32 r, n, k, i, sum = 0;

	memset(row, 0, sizeof(row));
	memset(column, 0, sizeof(column));
	for (k = 0; k < K; k++) {
		for (r = 0; r < M; r++)
			row[r][k / 32] |= (u32)a_bit(r, k) << k % 32;
		for (n = 0; n < N; n++)
			column[n][k / 32] |= (u32)b_bit(k, n) << k % 32;
	}
	for (r = 0; r < M; r++) {
		for (n = 0; n < N; n++) {
			u32 got = *at(c->c, M, r, n), count = 0;

			for (i = 0; i < K / 32; i++)
				count += ones(row[r][i] & column[n][i]);
			sum = (sum ^ got) * 16777619u;
			if (got != dl16(count)) {
				bad("product", got, dl16(count));
				return;
			}
		}
	}
	LINE("product", c - card, sum);
}

static void check_copy(struct card *c)
{
	u32 i, sum = 0;

	for (i = 0; i < A_BYTES; i += 4) {
		u32 got = *(u32 *)(c->a + i),
		    want = i < A_BYTES / 2 ? *(u32 *)(c->b + i) : 0x5a5a1234u;

		sum = (sum ^ got) * 16777619u;
		if (got != want) {
			bad("copy", got, want);
			return;
		}
	}
	LINE("copied", c - card, sum);
}

static void batch(struct card *c, u32 i)
{
	switch (i) {
	case 0:
		copy(c, SPYRE_CB_DMAI, SPYRE_CB_F_INTERRUPT, SPYRE_PROGRAM_BASE, (u32)c->job,
		     JOB_BYTES);
		break;
	case 1:
		/* Both DMI engines. */
		copy(c, SPYRE_CB_DMAI, 0, DMVA_A, (u32)c->a, A_BYTES);
		copy(c, SPYRE_CB_DMAI, SPYRE_CB_F_INTERRUPT, DMVA_B, (u32)c->b, B_BYTES);
		break;
	case 2:
		/* A large copy beside the product. */
		copy(c, SPYRE_CB_DMAO, 0, SCRATCH + (c - card) * 0x800000, DMVA_BIG, 0x400000);
		compute(c, SPYRE_CB_F_INTERRUPT, 3);
		break;
	case 3:
		memset(c->c, 0, C_BYTES);
		copy(c, SPYRE_CB_DMAO, SPYRE_CB_F_INTERRUPT, (u32)c->c, DMVA_C, C_BYTES);
		break;
	case 4:
		/* A chain of everything: the second half is filled, the first moved on the card,
		 * all of it read. */
		fill(c, DMVA_D, A_BYTES, 0x5a5a1234u);
		copy(c, SPYRE_CB_DMAX, SPYRE_CB_F_BARRIER, DMVA_D, DMVA_B, A_BYTES / 2);
		compute(c, SPYRE_CB_F_BARRIER, 3);
		copy(c, SPYRE_CB_DMAO, SPYRE_CB_F_BARRIER, (u32)c->a, DMVA_D, A_BYTES);
		compute(c, SPYRE_CB_F_BARRIER | SPYRE_CB_F_INTERRUPT, 3);
		break;
	default:
		compute(c, SPYRE_CB_F_INTERRUPT, 3);
		break;
	}
}

static void start(struct card *c)
{
	u32 devfn = c->devfn;

	memset(c, 0, sizeof(*c));
	c->devfn = devfn;
	set_up_pci(c);
	boot(c);
	set_up_queue(c);
	prepare(c);
}

static void round(u32 n)
{
	u32 first[CARDS], i, k;
	struct card *c;

	for (c = card; c < card + cards; c++)
		start(c);
	for (i = 0; i < BATCHES; i++) {
		/* At another place within the cards' slices each time. */
		for (k = 0; k < 1009 * (i + n); k++)
			__asm__ volatile("");
		for (c = card; c < card + cards; c++) {
			first[c - card] = c->tail;
			batch(c, i);
			submit(c);
		}
		for (c = card; c < card + cards; c++)
			complete(c, first[c - card], (i ^ n) & 1);
		print_interrupts();
	}
	for (c = card; c < card + cards; c++) {
		struct spyre_msg_id id = { 0, 0 };

		check_product(c);
		check_copy(c);
		/* An error, and the way out of it. */
		first[0] = c->tail;
		compute(c, 0, 2);
		submit(c);
		complete(c, first[0], false);
		if (c->rb[first[0] % RING].status != SPYRE_ERR_SYMBOLS)
			bad("symbols", c->rb[first[0] % RING].status, SPYRE_ERR_SYMBOLS);
		while (c->status.state != SPYRE_QUEUE_ERROR)
			nap(false);
		LINE("error", c - card, now());
		call(c, SPYRE_MSG_QUEUE_RESET, &id, sizeof(id));
		if (c->status.state != SPYRE_QUEUE_ACTIVE)
			bad("queue state", c->status.state, SPYRE_QUEUE_ACTIVE);
	}
	/* Whatever an idle card still does. */
	for (k = 0; k < 100000; k++)
		__asm__ volatile("");
	/* Gone in the middle of a copy, which takes 140 us: it is not announced any more. */
	for (c = card; c < card + cards; c++) {
		copy(c, SPYRE_CB_DMAO, 0, SCRATCH + (c - card) * 0x800000, DMVA_BIG, 0x800000);
		submit(c);
	}
	for (k = 0; k < 1500; k++)
		__asm__ volatile("");
	for (c = card; c < card + cards; c++) {
		u32 last = c->tail - 1;

		if (c->status.fetched != c->tail || c->rb[last % RING].valid == last + 1)
			bad("in flight", c->status.fetched, c->tail);
		LINE("reset", c - card, reg(c, SPYRE_REG_HEARTBEAT), reg(c, SPYRE_REG_TEMP_MC),
		     reg(c, SPYRE_REG_POWER_MW), reg(c, SPYRE_REG_ENG_PROGRESS(2)),
		     c->usage.busy[4], now());
		function_reset(c);
	}
	for (k = 0; k < 10000; k++)
		__asm__ volatile("");
	for (c = card; c < card + cards; c++)
		if (c->rb[(c->tail - 1) % RING].valid == c->tail)
			bad("late response", c->rb[(c->tail - 1) % RING].valid, 0);
	print_interrupts();
}

void guest_main(void)
{
	u32 i;

	set_up_machine();
	find_cards();
	for (i = 0; i < ROUNDS && !failed; i++)
		round(i);
	leave();
}
