/* SPDX-License-Identifier: MIT */
/*
 * gdb remote stub for the management core: registers, memory, breakpoints, step, continue, interrupt.
 * Nothing here waits for the core: a halt is asked for, and the core's thread sends the stop reply when it
 * has come to rest. Memory and registers are only touched while it rests.
 */
#include "card.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { G_IDLE, G_BODY, G_SUM1, G_SUM2 };

static const char hex[] = "0123456789abcdef";

static const char target_head[] =
	"<?xml version=\"1.0\"?><!DOCTYPE target SYSTEM \"gdb-target.dtd\"><target version=\"1.0\">"
	"<architecture>riscv:rv32</architecture><feature name=\"org.gnu.gdb.riscv.cpu\">";
static const char *const reg_name[33] = {
	"zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "fp", "s1", "a0", "a1", "a2", "a3", "a4",
	"a5", "a6", "a7", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4",
	"t5", "t6", "pc",
};

void gdb_init(struct spyre_card *c)
{
	pthread_mutex_init(&c->gdb.lock, NULL);
}

static void send_bytes(struct spyre_card *c, const char *data, size_t len)
{
	void (*send)(void *opaque, const uint8_t *data, size_t len);
	void *opaque;

	pthread_mutex_lock(&c->gdb.lock);
	send = c->gdb.send;
	opaque = c->gdb.opaque;
	pthread_mutex_unlock(&c->gdb.lock);
	if (send)
		send(opaque, (const uint8_t *)data, len);
}

static void reply(struct spyre_card *c, const char *text)
{
	size_t len = strlen(text), i;
	char *buf = malloc(len + 5);
	uint8_t sum = 0;

	if (!buf)
		return;
	for (i = 0; i < len; i++)
		sum += text[i];
	buf[0] = '$';
	memcpy(buf + 1, text, len);
	sprintf(buf + 1 + len, "#%02x", sum);
	send_bytes(c, buf, len + 4);
	free(buf);
}

/* --- Halt and resume -------------------------------------------------------------------------- */

static void clear_steps(struct mcu *m)
{
	unsigned int i;

	for (i = 0; i < m->nstep; i++)
		mcu_invalidate_insn(m, m->step_bp[i]);
	m->nstep = 0;
	mcu_invalidate_insn(m, m->skip_bp);
	m->skip_bp = ~0u;
}

static bool has_bp(struct mcu *m, uint32_t pc)
{
	unsigned int i;

	for (i = 0; i < m->nbp; i++)
		if (m->bp[i] == pc)
			return true;
	return false;
}

/* Releases a core that rests; m->lock held. */
static void release(struct mcu *m)
{
	m->halted = false;
	pthread_cond_signal(&m->cond);
}

static bool resume(struct spyre_card *c, bool step)
{
	struct mcu *m = &c->mcu;
	bool ok;

	pthread_mutex_lock(&m->lock);
	ok = m->parked && m->halted;
	if (ok) {
		unsigned int i;

		clear_steps(m);
		/* A breakpoint here has been reported: one step passes it. */
		if (step || has_bp(m, m->pc)) {
			m->nstep = mcu_next_pcs(m, m->step_bp);
			for (i = 0; i < m->nstep; i++)
				mcu_invalidate_insn(m, m->step_bp[i]);
			m->skip_bp = m->pc;
			mcu_invalidate_insn(m, m->pc);
		}
		pthread_mutex_lock(&c->gdb.lock);
		c->gdb.want_stop_reply = true;
		c->gdb.passing = !step && m->nstep;
		pthread_mutex_unlock(&c->gdb.lock);
		release(m);
	}
	pthread_mutex_unlock(&m->lock);
	return ok;
}

void gdb_halted(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;
	bool pass, tell = false;

	pthread_mutex_lock(&m->lock);
	clear_steps(m);
	pthread_mutex_lock(&c->gdb.lock);
	pass = c->gdb.passing && !has_bp(m, m->pc) && !c->gdb.interrupt;
	c->gdb.passing = false;
	c->gdb.interrupt = false;
	if (!pass) {
		tell = c->gdb.want_stop_reply;
		c->gdb.want_stop_reply = false;
	}
	pthread_mutex_unlock(&c->gdb.lock);
	if (pass)
		release(m);
	pthread_mutex_unlock(&m->lock);
	if (tell)
		reply(c, "S05");
}

static void halt(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;
	bool resting;

	pthread_mutex_lock(&m->lock);
	resting = m->parked;
	if (resting)
		m->halted = true;
	pthread_mutex_lock(&c->gdb.lock);
	c->gdb.want_stop_reply = !resting;
	c->gdb.interrupt = !resting;
	pthread_mutex_unlock(&c->gdb.lock);
	pthread_mutex_unlock(&m->lock);
	if (resting)
		reply(c, "S05");
	else
		mcu_request(c, REQ_GDB);
}

static void detach(struct spyre_card *c)
{
	struct mcu *m = &c->mcu;
	unsigned int i;

	store_release(&c->gdb.attached, false);
	pthread_mutex_lock(&m->lock);
	if (m->parked) {
		clear_steps(m);
		for (i = 0; i < m->nbp; i++)
			mcu_invalidate_insn(m, m->bp[i]);
		m->nbp = 0;
		release(m);
	}
	pthread_mutex_unlock(&m->lock);
}

/* --- Commands; m->lock held and the core at rest ------------------------------------------------ */

static uint8_t *target_memory(struct spyre_card *c, uint32_t addr, uint32_t len)
{
	uint32_t off = addr - SPYRE_MCU_LOG_BASE;

	if (off < SPYRE_LOG_RAM_SIZE && len <= SPYRE_LOG_RAM_SIZE - off)
		return c->log_ram + off;
	return mcu_memory(c, addr, len);
}

static void put_hex(char **out, const uint8_t *p, uint32_t len)
{
	for (; len; len--, p++) {
		*(*out)++ = hex[*p >> 4];
		*(*out)++ = hex[*p & 15];
	}
	**out = 0;
}

static bool get_hex(const char **in, uint8_t *p, uint32_t len)
{
	for (; len; len--) {
		unsigned int v;

		if (sscanf(*in, "%2x", &v) != 1 || !(*in)[1])
			return false;
		*p++ = v;
		*in += 2;
	}
	return true;
}

static uint32_t *reg(struct mcu *m, unsigned long n)
{
	return n < 32 ? &m->x[n] : n == 32 ? &m->pc : NULL;
}

static const char *cmd_memory(struct spyre_card *c, const char *p, char *out, bool write)
{
	unsigned int addr, len;
	uint8_t *mem;
	int used;

	if (sscanf(p, "%x,%x%n", &addr, &len, &used) != 2 || len > 1800)
		return "E01";
	mem = target_memory(c, addr, len);
	if (!mem)
		return "E14";
	if (!write) {
		char *o = out;

		put_hex(&o, mem, len);
		return out;
	}
	p += used;
	if (*p++ != ':' || !get_hex(&p, mem, len))
		return "E01";
	mcu_invalidate_code(&c->mcu);
	return "OK";
}

static const char *cmd_breakpoint(struct mcu *m, const char *p, bool on)
{
	unsigned int kind, addr, i;

	if (sscanf(p, "%x,%x", &kind, &addr) != 2)
		return "E01";
	if (kind > 1)
		return "";
	for (i = 0; i < m->nbp && m->bp[i] != addr; i++)
		;
	if (on && i == m->nbp) {
		if (m->nbp == MCU_BREAKPOINTS)
			return "E1c";
		m->bp[m->nbp++] = addr;
	} else if (!on && i < m->nbp) {
		m->bp[i] = m->bp[--m->nbp];
	}
	mcu_invalidate_insn(m, addr);
	return "OK";
}

static const char *cmd_xml(const char *p, char *out, size_t size)
{
	char xml[3000];
	unsigned int off, len, i;
	size_t n;

	if (sscanf(p, "%x,%x", &off, &len) != 2)
		return "E01";
	n = snprintf(xml, sizeof(xml), "%s", target_head);
	for (i = 0; i < 33; i++)
		n += snprintf(xml + n, sizeof(xml) - n, "<reg name=\"%s\" bitsize=\"32\"/>",
			      reg_name[i]);
	n += snprintf(xml + n, sizeof(xml) - n, "</feature></target>");
	if (off >= n)
		return "l";
	if (len > size - 2)
		len = size - 2;
	if (len >= n - off)
		snprintf(out, size, "l%s", xml + off);
	else
		snprintf(out, size, "m%.*s", (int)len, xml + off);
	return out;
}

static const char *at_rest(struct spyre_card *c, const char *p, char *out)
{
	struct mcu *m = &c->mcu;
	unsigned int i;
	char *o = out;
	uint32_t *r;
	int used;

	switch (*p++) {
	case 'g':
		for (i = 0; i < 33; i++)
			put_hex(&o, (uint8_t *)reg(m, i), 4);
		return out;
	case 'G':
		for (i = 0; i < 33; i++)
			if (!get_hex(&p, (uint8_t *)reg(m, i), 4))
				return "E01";
		m->x[0] = 0;
		m->pc &= ~1u;
		return "OK";
	case 'p':
		r = sscanf(p, "%x", &i) == 1 ? reg(m, i) : NULL;
		if (!r)
			return "E01";
		put_hex(&o, (uint8_t *)r, 4);
		return out;
	case 'P':
		if (sscanf(p, "%x=%n", &i, &used) != 1 || !reg(m, i))
			return "E01";
		p += used;
		if (!get_hex(&p, (uint8_t *)reg(m, i), 4))
			return "E01";
		m->x[0] = 0;
		m->pc &= ~1u;
		return "OK";
	case 'm':
		return cmd_memory(c, p, out, false);
	case 'M':
		return cmd_memory(c, p, out, true);
	case 'Z':
		return cmd_breakpoint(m, p, true);
	case 'z':
		return cmd_breakpoint(m, p, false);
	}
	return "";
}

static void command(struct spyre_card *c, const char *p)
{
	struct mcu *m = &c->mcu;
	const char *ret = "";
	char out[4096];
	unsigned int addr;

	switch (*p) {
	case '?':
		store_release(&c->gdb.attached, true);
		halt(c);
		return;
	case 'c':
	case 's':
		if (p[1] && sscanf(p + 1, "%x", &addr) == 1) {
			pthread_mutex_lock(&m->lock);
			if (m->parked)
				m->pc = addr & ~1u;
			pthread_mutex_unlock(&m->lock);
		}
		if (!resume(c, *p == 's'))
			reply(c, "E01");
		return;
	case 'D':
		detach(c);
		ret = "OK";
		break;
	case 'k':
		detach(c);
		return;
	case 'H':
	case 'T':
		ret = "OK";
		break;
	case 'q':
		if (!strncmp(p, "qSupported", 10))
			ret = "PacketSize=fe0;qXfer:features:read+";
		else if (!strncmp(p, "qXfer:features:read:target.xml:", 31))
			ret = cmd_xml(p + 31, out, sizeof(out));
		else if (!strcmp(p, "qAttached"))
			ret = "1";
		else if (!strcmp(p, "qC"))
			ret = "QC1";
		else if (!strcmp(p, "qfThreadInfo"))
			ret = "m1";
		else if (!strcmp(p, "qsThreadInfo"))
			ret = "l";
		break;
	case 'g': case 'G': case 'p': case 'P': case 'm': case 'M': case 'Z': case 'z':
		pthread_mutex_lock(&m->lock);
		ret = m->parked ? at_rest(c, p, out) : "E01";
		pthread_mutex_unlock(&m->lock);
		break;
	}
	reply(c, ret);
}

static int nibble(uint8_t b)
{
	return b >= '0' && b <= '9' ? b - '0' : b >= 'a' && b <= 'f' ? b - 'a' + 10 :
	       b >= 'A' && b <= 'F' ? b - 'A' + 10 : 0;
}

void spyre_card_gdb_receive(struct spyre_card *c, const uint8_t *data, size_t len,
			    void (*send)(void *opaque, const uint8_t *data, size_t len), void *opaque)
{
	pthread_mutex_lock(&c->gdb.lock);
	c->gdb.send = send;
	c->gdb.opaque = opaque;
	pthread_mutex_unlock(&c->gdb.lock);
	for (; len; len--, data++) {
		uint8_t b = *data;

		switch (c->gdb.state) {
		case G_IDLE:
			if (b == '$') {
				c->gdb.state = G_BODY;
				c->gdb.len = 0;
				c->gdb.sum = 0;
			} else if (b == 3) {
				halt(c);
			}
			break;
		case G_BODY:
			if (b == '#') {
				c->gdb.state = G_SUM1;
				break;
			}
			c->gdb.sum += b;
			/* What is too long fails its checksum below. */
			if (c->gdb.len < sizeof(c->gdb.buf) - 1)
				c->gdb.buf[c->gdb.len++] = b;
			else
				c->gdb.sum += 1;
			break;
		case G_SUM1:
			c->gdb.sum -= nibble(b) << 4;
			c->gdb.state = G_SUM2;
			break;
		case G_SUM2:
			c->gdb.sum -= nibble(b);
			c->gdb.state = G_IDLE;
			c->gdb.buf[c->gdb.len] = 0;
			send_bytes(c, c->gdb.sum ? "-" : "+", 1);
			if (!c->gdb.sum)
				command(c, c->gdb.buf);
			break;
		}
	}
}
