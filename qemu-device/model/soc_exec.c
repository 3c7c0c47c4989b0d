/* SPDX-License-Identifier: MIT */
/*
 * The functional pass. Each unit is a resumable interpreter; a core runs its units in turn until all of
 * them wait, then parks until another core gives it a tag, a ring word or room. One host thread runs a core
 * at a time; cores meet only under soc->lock and in LX stores that the program orders with tags.
 */
#include <stdlib.h>

#include "soc_lx.h"

#define WORD SPYRE_STICK

/* Work units are about a byte moved; a slice is at most 64 KiB and far under a millisecond. */
#define SLICE		65536
#define COST_INSN	16
#define COST_MM_ROW	512
#define COST_TIME	256

/* Iterations of a vector operation that are converted and computed at a time: their lanes stay in L1. */
#define BLOCK 16u

/* STEP_MOVED: the unit is past the instruction already. */
enum step { STEP_NEXT, STEP_BLOCKED, STEP_FAILED, STEP_MOVED };

/* --- Cores meeting -------------------------------------------------------------------------- */

/* Under soc->lock: core c has something to look at. */
static void poke(struct core *c, uint32_t units)
{
	struct spyre_soc *soc = c->soc;

	c->in_poke |= units;
	__atomic_store_n(&c->inbox, true, __ATOMIC_RELAXED);
	if (c->state == CORE_PARKED) {
		c->state = CORE_QUEUED;
		soc->queue[(soc->qhead + soc->nqueue++) % 32] = c;
		pthread_cond_signal(&soc->work);
	}
}

/* Under soc->lock, by the thread that runs c. */
static void read_inbox(struct core *c)
{
	unsigned int t;

	for (t = 0; t < SPYRE_TAGS; t++) {
		c->tag[t] += c->in_tag[t];
		c->in_tag[t] = 0;
	}
	c->ready |= c->in_poke;
	c->in_poke = 0;
	__atomic_store_n(&c->inbox, false, __ATOMIC_RELAXED);
}

static void wake_waiter(struct core *c, unsigned int tag)
{
	uint8_t u = c->soc->job->tag_waiter[c->id][tag];

	if (u != 0xff)
		c->ready |= 1u << u;
}

static void send_tag(struct core *c, unsigned int tag, uint32_t mask)
{
	struct spyre_soc *soc = c->soc;

	if (!mask)
		mask = 1u << c->id;
	if (mask & 1u << c->id) {
		c->tag[tag]++;
		wake_waiter(c, tag);
		mask &= ~(1u << c->id);
	}
	if (!mask)
		return;
	pthread_mutex_lock(&soc->lock);
	for (; mask; mask &= mask - 1) {
		struct core *o = &soc->core[__builtin_ctz(mask)];
		uint8_t u = soc->job->tag_waiter[o->id][tag];

		o->in_tag[tag]++;
		poke(o, u == 0xff ? 0 : 1u << u);
	}
	pthread_mutex_unlock(&soc->lock);
}

/* --- Faults --------------------------------------------------------------------------------- */

static enum step prog_fault(struct unit *u, enum spyre_prog_err code)
{
	u->fault = (struct fault){ .status = SPYRE_ERR_PROGRAM, .code = code, .ordinal = u->s.ordinal, .pc = u->s.pc };
	return STEP_FAILED;
}

static enum step mem_fault(struct unit *u, enum spyre_hmi_mode mode, uint64_t addr, enum spyre_syndrome syn)
{
	u->fault = (struct fault){ .status = spyre_syndrome_status(syn), .mode = mode, .addr = addr,
				   .syndrome = syn, .ordinal = u->s.ordinal, .pc = u->s.pc };
	return STEP_FAILED;
}

/* LX is about to be read: whether its parity is wrong, which is found once. */
static bool lx_parity(struct core *c, struct unit *u)
{
	if (__builtin_expect(!__atomic_load_n(&c->lx_parity, __ATOMIC_RELAXED), 1))
		return false;
	if (!__atomic_exchange_n(&c->lx_parity, false, __ATOMIC_RELAXED))
		return false;
	u->fault = (struct fault){ .status = SPYRE_ERR_HW, .ordinal = u->s.ordinal, .pc = u->s.pc };
	return true;
}

/* --- FIFOs ---------------------------------------------------------------------------------- */

static bool fifo_ensure(struct fifo *f)
{
	return f->buf || !posix_memalign((void **)&f->buf, 64, FIFO_CAP * WORD);
}

/* Up to max words that can be written at one address; a writer calls it again after the first part. */
static uint8_t *fifo_room(struct fifo *f, uint32_t max, uint32_t *n)
{
	uint32_t tail, room = FIFO_CAP - f->count;

	if (!f->count)
		f->head = 0;
	tail = (f->head + f->count) % FIFO_CAP;
	if (room > FIFO_CAP - tail)
		room = FIFO_CAP - tail;
	*n = room < max ? room : max;
	return f->buf + tail * WORD;
}

static uint8_t *fifo_words(const struct fifo *f, uint32_t max, uint32_t *n)
{
	uint32_t have = f->count;

	if (have > FIFO_CAP - f->head)
		have = FIFO_CAP - f->head;
	*n = have < max ? have : max;
	return f->buf + f->head * WORD;
}

static void fifo_pop(struct fifo *f, uint32_t n)
{
	f->head = (f->head + n) % FIFO_CAP;
	f->count -= n;
}

static uint32_t reader_bit(unsigned int fifo, unsigned int corelet)
{
	return 1u << job_unit_index(isa_fifos[fifo].reader, corelet);
}

static uint32_t writer_bit(unsigned int fifo, unsigned int corelet)
{
	return 1u << job_unit_index(isa_fifos[fifo].writer, corelet);
}

static void pushed(struct core *c, unsigned int corelet, unsigned int fifo, uint32_t n)
{
	c->cl[corelet].fifo[fifo].count += n;
	c->ready |= reader_bit(fifo, corelet);
}

static void popped(struct core *c, unsigned int corelet, unsigned int fifo, uint32_t n)
{
	fifo_pop(&c->cl[corelet].fifo[fifo], n);
	c->ready |= writer_bit(fifo, corelet);
}

/* --- L3LU, L3SU ----------------------------------------------------------------------------- */

/*
 * Members of a multicast each load for themselves: the words are the same, since a program that changes
 * them meanwhile has a race. What is left of the rendezvous is that all members name the same words, in the
 * same order; the entry of the k-th load is compared when the last member has arrived.
 */
static bool group_arrive(struct core *c, struct unit *u, const struct job_insn *i)
{
	struct spyre_soc *soc = c->soc;
	struct group *g = &soc->group[i->d];
	struct group_entry *e;
	uint32_t m, k, first;
	bool ok = false;

	pthread_mutex_lock(&soc->lock);
	if (g->next[c->id] - g->base < GROUP_DEPTH) {
		ok = true;
		k = g->next[c->id]++ % GROUP_DEPTH;
		g->arrived[k] |= 1u << c->id;
		e = &g->e[k];
		e->m[c->id].ear = u->s.reg[i->c];
		e->m[c->id].n = i->n;
		e->m[c->id].ordinal = u->s.ordinal;
		e->m[c->id].pc = u->s.pc;
		while (g->arrived[g->base % GROUP_DEPTH] == g->members) {
			e = &g->e[g->base % GROUP_DEPTH];
			first = (uint32_t)__builtin_ctz(g->members);
			for (m = g->members; m; m &= m - 1) {
				struct fault *f;

				k = (uint32_t)__builtin_ctz(m);
				if (e->m[k].ear == e->m[first].ear && e->m[k].n == e->m[first].n)
					continue;
				f = &soc->core[k].group_fault;
				if (f->status && f->ordinal <= e->m[k].ordinal)
					break;
				*f = (struct fault){
					.status = SPYRE_ERR_PROGRAM, .code = SPYRE_PE_GROUP_MISMATCH,
					.ordinal = e->m[k].ordinal, .pc = e->m[k].pc,
				};
				break;
			}
			g->arrived[g->base++ % GROUP_DEPTH] = 0;
			/* Only who is a whole log ahead can have waited for this. */
			for (m = g->members & ~(1u << c->id); m; m &= m - 1) {
				k = (uint32_t)__builtin_ctz(m);
				if (g->next[k] - g->base >= GROUP_DEPTH - 1)
					poke(&soc->core[k], 1u << SPYRE_UNIT_L3LU);
			}
		}
	}
	pthread_mutex_unlock(&soc->lock);
	return ok;
}

static enum step do_l3(struct core *c, struct unit *u, const struct job_insn *i)
{
	const struct spyre_soc_mem *mem = c->soc->req.mem;
	bool write = i->op == SPYRE_OP_L3_STU;
	enum spyre_hmi_mode mode = write ? SPYRE_HMI_STORE : SPYRE_HMI_LOAD;
	uint64_t lx = seq_local_addr(&u->s, i), ear = u->s.reg[i->c], bytes = i->n * (uint64_t)WORD, len, at;
	enum spyre_prog_err err = seq_local_range(lx, i->n, WORD, SPYRE_LX_SIZE);
	enum spyre_syndrome syn;
	uint8_t *p;
	bool lend;

	if (err)
		return prog_fault(u, err);
	if (i->op == SPYRE_OP_L3_LDM && !u->done) {
		if (!group_arrive(c, u, i))
			return STEP_BLOCKED;
		u->done = 1;
	}
	if (i->op == SPYRE_OP_L3_STC) {
		uint64_t core = ear >> 24, to = ear & 0xffffff;
		struct core *o;

		if (core >= 32 || !(c->soc->job->core_mask & 1u << core))
			return prog_fault(u, SPYRE_PE_CORE);
		err = seq_local_range(to, i->n, WORD, SPYRE_LX_SIZE);
		if (err)
			return prog_fault(u, err);
		o = &c->soc->core[core];
		if (lx_parity(c, u))
			return STEP_FAILED;
		lx_read(c, lx, bytes);
		lx_write(o, to, bytes, true);
		memmove(o->lx + to, c->lx + lx, bytes);
	} else {
		if (ear % WORD)
			return mem_fault(u, mode, ear, SPYRE_SYN_UNALIGNED);
		if (write && lx_parity(c, u))
			return STEP_FAILED;
		if (write)
			lx_read(c, lx, bytes);
		else
			lx_write(c, lx, bytes, true);
		while (bytes) {
			len = bytes;
			syn = SPYRE_SYN_RANGE;
			p = ear < SPYRE_DMVA_SIZE ? mem->dmva(mem->opaque, ear, &len, write, &syn) : NULL;
			if (!p) {
				/* What was there may be an earlier job's. */
				if (!write)
					memset(c->lx + lx, 0, bytes);
				if (syn == SPYRE_SYN_CANCELLED)
					__atomic_store_n(&c->soc->cancel, true, __ATOMIC_RELAXED);
				return mem_fault(u, mode, ear, syn);
			}
			if (len > bytes)
				len = bytes;
			lend = !write && c->soc->lends && len == bytes && lx_can_lend(lx, len);
			/*
			 * A burst is a page: the host's prefetcher starts anew with each. The next burst of a stream
			 * is asked for while this one moves; a guess that is wrong harms nothing.
			 */
			if (i->imm2 == (int32_t)(i->n * WORD) && !lend)
				for (at = 0; at < len; at += 64)
					__builtin_prefetch(p + i->imm2 + at, 0, 2);
			if (write) {
				lx_settle(c, p, len);
				memcpy(p, c->lx + lx, len);
			} else if (lend) {
				lx_lend(c, lx, p, len);
			} else {
				memcpy(c->lx + lx, p, len);
			}
			lx += len;
			ear += len;
			bytes -= len;
		}
	}
	u->s.reg[i->a] += (uint64_t)(int64_t)i->imm;
	u->s.reg[i->c] += (uint64_t)(int64_t)i->imm2;
	c->budget -= i->n * (int64_t)WORD;
	return STEP_NEXT;
}

/* --- PT ------------------------------------------------------------------------------------- */

/* The load port's first load has its words. */
static void load_tile(struct core *c, struct corelet *cl, const uint8_t *p)
{
	struct ldw *l = &cl->ldw[0];

	c->soc->pt->load(&cl->tile[l->tile], p, l->fmt);
	cl->tile_pending[l->tile]--;
	cl->nldw--;
	memmove(cl->ldw, cl->ldw + 1, cl->nldw * sizeof(cl->ldw[0]));
	c->budget -= 64 * (int64_t)WORD;
}

/* The load port: loads in order as their words are there. */
static void drain_loads(struct core *c, unsigned int corelet)
{
	struct corelet *cl = &c->cl[corelet];
	uint8_t stage[64 * WORD] __attribute__((aligned(64)));

	while (cl->nldw) {
		unsigned int fifo = cl->ldw[0].fifo;
		struct fifo *f = &cl->fifo[fifo];
		uint8_t *p;
		uint32_t n;

		if (f->count < 64)
			return;
		p = fifo_words(f, 64, &n);
		if (n < 64) {
			memcpy(stage, p, n * (size_t)WORD);
			memcpy(stage + n * (size_t)WORD, f->buf, (64 - n) * (size_t)WORD);
			p = stage;
		}
		load_tile(c, cl, p);
		popped(c, corelet, fifo, 64);
	}
}

static void canon_rows(struct core *c, struct corelet *cl, uint32_t first, uint32_t n)
{
	c->soc->vec->canon(cl->rows[first], cl->rows[first], n * (size_t)SPYRE_LANES);
}

/* n words at p times the tile of MM i, which has room for them all. */
static void multiply(struct core *c, struct corelet *cl, const struct job_insn *i, const uint8_t *p, uint32_t done,
		     uint32_t n)
{
	bool is_int = isa_formats[i->b].integer;
	uint32_t row = (uint32_t)i->imm + done, k;

	for (k = 0; k < n; k++) {
		/* Which NaN a float row holds is this host's affair until it is canonical. */
		if (is_int && i->c && !cl->row_int[row + k])
			canon_rows(c, cl, row + k, 1);
		cl->row_int[row + k] = is_int;
	}
	(c->soc->cfg.accumulate_dl16 && !is_int ? c->soc->pt->mm_dl16 : c->soc->pt->mm)
		(cl->rows[row], p, n, &cl->tile[i->a], i->b, i->c);
	c->budget -= n * (int64_t)COST_MM_ROW;
}

static void run_unit(struct core *c, unsigned int index);

/* The instruction that a unit is at when it has gone as far as it can; NULL: it has ended. */
static const struct job_insn *stands_at(struct core *c, unsigned int index)
{
	struct unit *u = &c->unit[index];

	if (c->ready & c->live & 1u << index)
		run_unit(c, index);
	return u->state == UNIT_LIVE ? &u->s.insns[u->s.pc] : NULL;
}

/*
 * Spares the way through the FIFO: if PT is about to take just these n words, it takes them where they lie.
 * False: they must go through the FIFO.
 */
static bool feed_pt(struct core *c, unsigned int corelet, unsigned int fifo, const uint8_t *p, uint32_t n)
{
	struct corelet *cl = &c->cl[corelet];
	unsigned int index = job_unit_index(SPYRE_UNIT_PT, corelet);
	struct unit *pt = &c->unit[index];
	const struct job_insn *i;

	if (fifo != SPYRE_FIFO_LXLU_PT && fifo != SPYRE_FIFO_LXLU_PTW && fifo != SPYRE_FIFO_L0LU_PT &&
	    fifo != SPYRE_FIFO_L0LU_PTW)
		return false;
	i = stands_at(c, index);
	if (!i || cl->fifo[fifo].count)
		return false;
	if (fifo == SPYRE_FIFO_LXLU_PTW || fifo == SPYRE_FIFO_L0LU_PTW) {
		if (n != 64 || !cl->nldw || cl->ldw[0].fifo != fifo)
			return false;
		load_tile(c, cl, p);
		c->ready |= 1u << index;
		return true;
	}
	if (i->op != SPYRE_OP_PT_MM || i->d != fifo || i->n != n || pt->done || cl->tile_fmt[i->a] != i->b ||
	    cl->tile_pending[i->a])
		return false;
	multiply(c, cl, i, p, 0, n);
	seq_next(&pt->s, i);
	c->ready |= 1u << index;
	return true;
}

static enum step do_pt(struct core *c, struct unit *u, const struct job_insn *i, unsigned int corelet)
{
	struct corelet *cl = &c->cl[corelet];
	struct fifo *f = &cl->fifo[i->d];
	uint32_t row = (uint32_t)i->imm, n, k;
	uint8_t *p;

	switch (i->op) {
	case SPYRE_OP_PT_LDW:
		if (cl->nldw == PT_TILES)
			return STEP_BLOCKED;
		cl->ldw[cl->nldw++] = (struct ldw){ .tile = i->a, .fmt = i->b, .fifo = i->d };
		cl->tile_pending[i->a]++;
		cl->tile_fmt[i->a] = i->b;
		drain_loads(c, corelet);
		return STEP_NEXT;
	case SPYRE_OP_PT_MM:
		if (cl->tile_fmt[i->a] != i->b)
			return prog_fault(u, SPYRE_PE_TILE);
		if (cl->tile_pending[i->a] || f->count < i->n)
			return STEP_BLOCKED;
		while (u->done < i->n) {
			p = fifo_words(f, i->n - u->done, &n);
			multiply(c, cl, i, p, u->done, n);
			popped(c, corelet, i->d, n);
			u->done += n;
		}
		return STEP_NEXT;
	case SPYRE_OP_PT_PSOUT:
		/* A row is two words, and FIFO_CAP is even: a row does not wrap if only rows go in. */
		for (; u->done < i->n * 2u; u->done += n) {
			uint32_t *src;

			p = fifo_room(f, i->n * 2u - u->done, &n);
			if (!n)
				return STEP_BLOCKED;
			src = &cl->rows[row][0] + u->done * 32;
			for (k = 0; k < n; k++, src += 32, p += WORD) {
				if (cl->row_int[row + (u->done + k) / 2])
					memcpy(p, src, WORD);
				else
					c->soc->vec->canon(p, src, 32);
			}
			pushed(c, corelet, i->d, n);
			c->budget -= n * (int64_t)WORD;
		}
		return STEP_NEXT;
	case SPYRE_OP_PT_PSIN:
		for (; u->done < i->n * 2u; u->done += n) {
			p = fifo_words(f, i->n * 2u - u->done, &n);
			if (!n)
				return STEP_BLOCKED;
			memcpy(&cl->rows[row][0] + u->done * 32, p, n * (size_t)WORD);
			popped(c, corelet, i->d, n);
			c->budget -= n * (int64_t)WORD;
		}
		for (k = 0; k < i->n; k++)
			cl->row_int[row + k] = i->b == SPYRE_IEEE_INT32;
		return STEP_NEXT;
	}
	return STEP_NEXT;
}

/* --- PE, SFP: from words to words ------------------------------------------------------------ */

/* What operand k of b, c, d is, unless a FIFO; imm is theirs to use. */
static inline const uint32_t *vec_source(struct core *c, const struct job_insn *i, uint32_t (*v)[SPYRE_LANES],
					 uint8_t opnd, uint32_t imm[SPYRE_LANES])
{
	unsigned int j;

	if (opnd < SPYRE_VREGS)
		return v[opnd];
	if (opnd == SPYRE_OPND_IMM) {
		for (j = 0; j < SPYRE_LANES; j++)
			imm[j] = (uint32_t)i->imm;
		return imm;
	}
	/* A FIFO's place is the caller's to give, that of an operand which is not read is not looked at. */
	return opnd < 0x80 || opnd == SPYRE_OPND_NONE ? v[0] : c->soc->job->consts[opnd - 0x80];
}

static inline void vec_sources(struct core *c, const struct job_insn *i, unsigned int kind, unsigned int corelet,
			       const uint32_t *src[3], uint32_t imm[SPYRE_LANES])
{
	uint32_t (*v)[SPYRE_LANES] = c->cl[corelet].v[kind == SPYRE_UNIT_SFP];

	src[0] = src[1] = src[2] = v[0];
	if (i->srcs & 1)
		src[0] = vec_source(c, i, v, i->b, imm);
	if (i->srcs & 2)
		src[1] = vec_source(c, i, v, i->c, imm);
	if (i->srcs & 4)
		src[2] = vec_source(c, i, v, i->d, imm);
}

/* Which operands of an instruction come from FIFOs, if it can go straight from words to words; 0: it cannot. */
static unsigned int stream_operands(const struct spyre_soc *soc, const struct job_insn *i)
{
	return (i->ways & JOB_WAY_STREAM) && soc->vec->stream[i->op] ? i->fifos : 0;
}

/*
 * Spares the way through the FIFO behind PE or SFP: where LXSU, which waits for the FIFO's next word, is going to store up
 * to n of them. NULL: they must go through the FIFO. Else *n fits there, and stored() follows.
 */
static uint8_t *store_at(struct core *c, unsigned int corelet, unsigned int fifo, uint32_t *n)
{
	unsigned int index = job_unit_index(SPYRE_UNIT_LXSU, corelet);
	struct unit *su = &c->unit[index];
	const struct job_insn *i;
	uint64_t addr;

	if (isa_fifos[fifo].reader != SPYRE_UNIT_LXSU || c->cl[corelet].fifo[fifo].count)
		return NULL;
	i = stands_at(c, index);
	if (!i || c->cl[corelet].fifo[fifo].count)
		return NULL;
	if (i->op != SPYRE_OP_ST || i->d != fifo || i->imm != (int)WORD || su->done == i->n)
		return NULL;
	addr = seq_local_addr(&su->s, i);
	if (seq_local_range(addr, i->n, WORD, SPYRE_LX_SIZE))
		return NULL;
	if (*n > i->n - su->done)
		*n = i->n - su->done;
	return c->lx + addr + su->done * (uint64_t)WORD;
}

static void stored(struct core *c, unsigned int corelet, uint32_t n)
{
	unsigned int index = job_unit_index(SPYRE_UNIT_LXSU, corelet);

	c->unit[index].done += n;
	c->budget -= n * (int64_t)WORD;
	c->ready |= 1u << index;
}

/*
 * Up to n times of an instruction with these stream_operands(): as many as there are words and room for. fed: words of
 * LX, n of them, for operands whose FIFOs are empty, or NULL. src: what the operands are that are no FIFOs.
 */
static uint32_t stream_run(struct core *c, unsigned int corelet, const struct job_insn *i, unsigned int packed,
			   const uint32_t *const src[3], uint32_t n, const uint8_t *const fed[3])
{
	const uint8_t opnd[3] = { i->b, i->c, i->d };
	unsigned int to = i->a - 0x20u, k;
	struct corelet *cl = &c->cl[corelet];
	const void *from[3] = { src[0], src[1], src[2] };
	uint32_t done = 0, m;
	uint8_t *lx, *p;

	/* A part of the slice at a time: what is left of it is looked at in between. */
	if (n > SLICE / 4 / WORD)
		n = SLICE / 4 / WORD;
	for (; done < n; done += m) {
		m = n - done;
		for (k = 0; k < 3; k++) {
			if (!(packed & 1u << k))
				continue;
			if (fed[k])
				from[k] = fed[k] + done * (size_t)WORD;
			else
				from[k] = fifo_words(&cl->fifo[opnd[k] - 0x20u], m, &m);
		}
		if (!m)
			break;
		lx = store_at(c, corelet, to, &m);
		/* Stores that overlap what is loaded see the order of the FIFOs, unless they fall on the same words. */
		for (k = 0; lx && k < 3; k++)
			if (fed[k] && lx != fed[k] + done * (size_t)WORD && lx < fed[k] + n * (size_t)WORD &&
			    fed[k] < lx + m * (size_t)WORD)
				lx = NULL;
		if (lx)
			lx_write(c, (uint64_t)(lx - c->lx), m * (uint64_t)WORD, true);
		p = lx ? lx : fifo_room(&cl->fifo[to], m, &m);
		if (!m)
			break;
		c->soc->vec->stream[i->op](p, from, packed, (uint32_t)i->imm2 >> 24, m);
		if (lx)
			stored(c, corelet, m);
		else
			pushed(c, corelet, to, m);
		for (k = 0; k < 3; k++)
			if ((packed & 1u << k) && !fed[k])
				popped(c, corelet, opnd[k] - 0x20u, m);
		c->budget -= m * (int64_t)WORD;
	}
	return done;
}

/*
 * The instruction of the unit behind a FIFO, if it waits for the FIFO's next word and goes straight from words to words;
 * NULL: not so. *packed are its stream_operands().
 */
static const struct job_insn *stream_waits(struct core *c, unsigned int corelet, unsigned int fifo, unsigned int *packed)
{
	unsigned int kind = isa_fifos[fifo].reader, index = job_unit_index(kind, corelet);
	const struct job_insn *i;

	if ((kind != SPYRE_UNIT_PE && kind != SPYRE_UNIT_SFP) || c->cl[corelet].fifo[fifo].count)
		return NULL;
	i = stands_at(c, index);
	if (!i || c->cl[corelet].fifo[fifo].count)
		return NULL;
	if (i->op < SPYRE_OP_MOV || c->unit[index].done == i->n)
		return NULL;
	*packed = stream_operands(c->soc, i);
	return i;
}

/* The operand, of these, that is this FIFO; 3: none. */
static unsigned int operand_of(const struct job_insn *i, unsigned int packed, unsigned int fifo)
{
	const uint8_t opnd[3] = { i->b, i->c, i->d };
	unsigned int k;

	for (k = 0; k < 3; k++)
		if ((packed & 1u << k) && opnd[k] == SPYRE_OPND_FIFO(fifo))
			break;
	return k;
}

/* n times of instruction i of the unit behind a FIFO, with words at fed[] in place of those of empty FIFOs. */
static uint32_t feed(struct core *c, unsigned int corelet, unsigned int fifo, const struct job_insn *i, unsigned int packed,
		     uint32_t n, const uint8_t *const fed[3])
{
	unsigned int kind = isa_fifos[fifo].reader, index = job_unit_index(kind, corelet);
	uint32_t imm[SPYRE_LANES] __attribute__((aligned(64)));
	struct unit *u = &c->unit[index];
	const uint32_t *src[3];

	vec_sources(c, i, kind, corelet, src, imm);
	n = stream_run(c, corelet, i, packed, src, n < i->n - u->done ? n : i->n - u->done, fed);
	u->done += n;
	if (n)
		c->ready |= 1u << index;
	return n;
}

/* feed_pt() for PE and SFP: how many of the n words at p, LX's, the instruction took that waits for them. */
static uint32_t feed_vec(struct core *c, unsigned int corelet, unsigned int fifo, const uint8_t *p, uint32_t n)
{
	const uint8_t *fed[3] = { NULL, NULL, NULL };
	const struct job_insn *i;
	unsigned int packed, k;

	i = stream_waits(c, corelet, fifo, &packed);
	if (!i)
		return 0;
	k = operand_of(i, packed, fifo);
	if (k == 3)
		return 0;
	fed[k] = p;
	return feed(c, corelet, fifo, i, packed, n, fed);
}

static uint32_t least(uint32_t x, uint32_t y)
{
	return x < y ? x : y;
}

/*
 * feed_vec() for two loads of LX in a row, i at u and the next one, that bring both operands of what waits: neither goes
 * through its FIFO. If a loop holds nothing else, as many of its rounds as can be are done at once. addr: i's, whose own
 * words are known to lie in LX. True: u is past those loads.
 */
static bool feed_pair(struct core *c, struct unit *u, unsigned int corelet, const struct job_insn *i, uint64_t addr)
{
	const struct job_insn *i2 = i + 1, *vec;
	const uint8_t *fed[3] = { NULL, NULL, NULL };
	unsigned int packed, reader, k, k2;
	uint32_t n = i->n, words, r;
	uint64_t addr2;

	if (i->be || i2->op != SPYRE_OP_LD || i2->n != n || i2->imm != (int)WORD || i2->d == i->d || i2->a == i->a ||
	    i2->b == i->a)
		return false;
	reader = isa_fifos[i->d].reader;
	if (isa_fifos[i2->d].reader != reader || c->cl[corelet].fifo[i2->d].count)
		return false;
	vec = stream_waits(c, corelet, i->d, &packed);
	if (!vec || c->cl[corelet].fifo[i2->d].count)
		return false;
	k = operand_of(vec, packed, i->d);
	k2 = operand_of(vec, packed, i2->d);
	/* A third FIFO may have fewer words than these loads bring. */
	if (k == 3 || k2 == 3 || packed != (1u << k | 1u << k2))
		return false;
	/* All that is begun is finished: it is no more than the result has room for, wherever that goes. */
	words = least(SLICE / 4 / WORD, vec->n - c->unit[job_unit_index(reader, corelet)].done);
	words = least(words, FIFO_CAP - c->cl[corelet].fifo[vec->a - 0x20u].count);
	r = 1;
	if (i2->be && u->s.depth && u->s.loop[u->s.depth - 1].start == u->s.pc && i->imm2 == (int)(n * WORD) &&
	    i2->imm2 == i->imm2 && i->b == SPYRE_REG_NONE && i2->b == SPYRE_REG_NONE) {
		uint64_t left = u->s.loop[u->s.depth - 1].left;

		r = left < words / n ? (uint32_t)left : words / n;
	}
	addr2 = seq_local_addr(&u->s, i2);
	words = least(words, r * n);
	if (words < n || seq_local_range(addr, words, WORD, SPYRE_LX_SIZE) ||
	    seq_local_range(addr2, words, WORD, SPYRE_LX_SIZE))
		return false;
	fed[k] = lx_words(c, addr, &words);
	fed[k2] = lx_words(c, addr2, &words);
	r = words / n;
	if (!r)
		return false;
	feed(c, corelet, i->d, vec, packed, r * n, fed);
	c->budget -= 2 * r * n * (int64_t)WORD;
	while (r--) {
		u->s.reg[i->a] += (uint64_t)(int64_t)i->imm2;
		seq_next(&u->s, i);
		u->s.reg[i2->a] += (uint64_t)(int64_t)i2->imm2;
		seq_next(&u->s, i2);
	}
	return true;
}

/* --- LXLU, LXSU, L0LU, L0SU ----------------------------------------------------------------- */

static enum step do_local(struct core *c, struct unit *u, const struct job_insn *i, unsigned int kind,
			  unsigned int corelet)
{
	struct corelet *cl = &c->cl[corelet];
	bool l0 = kind == SPYRE_UNIT_L0LU || kind == SPYRE_UNIT_L0SU;
	uint8_t *base = l0 ? cl->l0 : c->lx, *p, *q;
	struct fifo *f = &cl->fifo[i->d];
	uint64_t addr = seq_local_addr(&u->s, i);
	enum spyre_prog_err err;
	uint32_t n, k, max;

	if (!u->done) {
		err = seq_local_range(addr, i->n, i->imm, l0 ? SPYRE_L0_SIZE : SPYRE_LX_SIZE);
		if (err)
			return prog_fault(u, err);
		if (kind == SPYRE_UNIT_LXLU) {
			int64_t a = (int64_t)addr, z = a + (int64_t)(i->n - 1) * i->imm;

			if (lx_parity(c, u))
				return STEP_FAILED;
			if (i->imm != (int)WORD)
				lx_read(c, (uint64_t)(a < z ? a : z), (uint64_t)(a < z ? z - a : a - z) + WORD);
		}
	}
	while (u->done < i->n) {
		max = i->n - u->done;
		q = base + (int64_t)addr + (int64_t)u->done * i->imm;
		if (i->op == SPYRE_OP_LD) {
			if (!l0 && i->imm == (int)WORD) {
				if (!u->done && feed_pair(c, u, corelet, i, addr))
					return STEP_MOVED;
				q = (uint8_t *)lx_words(c, addr + u->done * (uint64_t)WORD, &max);
			}
			if (max == i->n && i->imm == (int)WORD && feed_pt(c, corelet, i->d, q, i->n)) {
				u->done = i->n;
				break;
			}
			if (!l0 && i->imm == (int)WORD) {
				n = feed_vec(c, corelet, i->d, q, max);
				u->done += n;
				if (n && c->budget <= 0 && u->done < i->n) {
					c->ready |= 1u << job_unit_index(kind, corelet);
					return STEP_BLOCKED;
				}
				if (n)
					continue;
			}
			p = fifo_room(f, max, &n);
			if (!n)
				return STEP_BLOCKED;
			if (i->imm == (int)WORD)
				memcpy(p, q, n * (size_t)WORD);
			else
				for (k = 0; k < n; k++)
					memcpy(p + k * (size_t)WORD, q + (int64_t)k * i->imm, WORD);
			pushed(c, corelet, i->d, n);
		} else {
			p = fifo_words(f, i->n - u->done, &n);
			if (!n)
				return STEP_BLOCKED;
			if (l0) {
				cl->l0_dirty = true;
			} else {
				int64_t a = (int64_t)addr + (int64_t)u->done * i->imm;
				int64_t b = a + (int64_t)(n - 1) * i->imm;

				lx_write(c, (uint64_t)(a < b ? a : b), (uint64_t)(a < b ? b - a : a - b) + WORD,
					 i->imm == (int)WORD);
			}
			if (i->imm == (int)WORD)
				memcpy(q, p, n * (size_t)WORD);
			else
				for (k = 0; k < n; k++)
					memcpy(q + (int64_t)k * i->imm, p + k * (size_t)WORD, WORD);
			popped(c, corelet, i->d, n);
		}
		u->done += n;
		c->budget -= n * (int64_t)WORD;
	}
	u->s.reg[i->a] += (uint64_t)(int64_t)i->imm2;
	return STEP_NEXT;
}

/* --- PE, SFP -------------------------------------------------------------------------------- */

/* lanes of a format between words and lanes; a multiple of a word's. */
static void widen(struct core *c, uint32_t *lanes, const uint8_t *p, size_t n, unsigned int fmt)
{
	if (fmt == SPYRE_IEEE_FP32 || fmt == SPYRE_IEEE_INT32)
		memcpy(lanes, p, n * 4);
	else
		c->soc->vec->widen[fmt](lanes, p, n);
}

static void narrow(struct core *c, uint8_t *p, const uint32_t *lanes, size_t n, unsigned int fmt)
{
	if (fmt == SPYRE_IEEE_INT32)
		memcpy(p, lanes, n * 4);
	else if (fmt == SPYRE_IEEE_FP32)
		c->soc->vec->canon(p, lanes, n);
	else
		c->soc->vec->narrow[fmt](p, lanes, n);
}

/* Lanes that n words of a format become. */
static size_t lanes_of(unsigned int fmt, uint32_t n)
{
	return n * (size_t)(fmt & SPYRE_FMT_HALF ? SPYRE_LANES : isa_formats[fmt].lanes);
}

/* n words; whole times only but for 32-bit formats, where half words are fine. */
static void pop_convert(struct core *c, uint32_t *lanes, const uint8_t *p, uint32_t n, unsigned int fmt)
{
	if (!(fmt & SPYRE_FMT_HALF)) {
		widen(c, lanes, p, lanes_of(fmt, n), fmt);
		return;
	}
	for (; n; n--, p += WORD, lanes += SPYRE_LANES) {
		widen(c, lanes, p, SPYRE_LANES / 2, fmt & ~SPYRE_FMT_HALF);
		memset(lanes + SPYRE_LANES / 2, 0, SPYRE_LANES / 2 * 4);
	}
}

static void push_convert(struct core *c, uint8_t *p, const uint32_t *lanes, uint32_t n, unsigned int fmt)
{
	if (!(fmt & SPYRE_FMT_HALF)) {
		narrow(c, p, lanes, lanes_of(fmt, n), fmt);
		return;
	}
	for (; n; n--, p += WORD, lanes += SPYRE_LANES)
		narrow(c, p, lanes, SPYRE_LANES / 2, fmt & ~SPYRE_FMT_HALF);
}

static void pop_run(struct core *c, struct fifo *f, uint32_t *lanes, uint32_t words, unsigned int fmt)
{
	uint32_t n;
	uint8_t *p;

	for (; words; words -= n) {
		p = fifo_words(f, words, &n);
		pop_convert(c, lanes, p, n, fmt);
		lanes += lanes_of(fmt, n);
		fifo_pop(f, n);
	}
}

static void push_run(struct core *c, struct fifo *f, const uint32_t *lanes, uint32_t words, unsigned int fmt)
{
	uint32_t n;
	uint8_t *p;

	for (; words; words -= n) {
		p = fifo_room(f, words, &n);
		push_convert(c, p, lanes, n, fmt);
		lanes += lanes_of(fmt, n);
		f->count += n;
	}
}

/* LMASK's count is in c, which is no operand there. */
static uint32_t vec_param(const struct job_insn *i)
{
	return (uint32_t)i->imm | (i->op == SPYRE_OP_LMASK ? (uint32_t)i->c << 16 : 0);
}

/* Short runs on registers and constants wait for nothing and convert nothing: most of a shuffle network. */
static enum step do_registers(struct core *c, const struct job_insn *i, unsigned int kind, unsigned int corelet)
{
	uint32_t (*v)[SPYRE_LANES] = c->cl[corelet].v[kind == SPYRE_UNIT_SFP];
	uint32_t imm[SPYRE_LANES] __attribute__((aligned(64)));
	const uint32_t *src[3];

	vec_sources(c, i, kind, corelet, src, imm);
	c->soc->vec->op[i->op](v[i->a], 0, src[0], 0, src[1], 0, src[2], 0, i->n, vec_param(i));
	c->budget -= i->n * (int64_t)COST_TIME;
	return STEP_NEXT;
}

/* JOB_WAY_SHORT: all or nothing. Much of a shuffle network's rest. */
static enum step do_short(struct core *c, const struct job_insn *i, unsigned int kind, unsigned int corelet)
{
	uint32_t in[3][SPYRE_LANES] __attribute__((aligned(64)));
	uint32_t out[SPYRE_LANES] __attribute__((aligned(64)));
	uint32_t imm[SPYRE_LANES] __attribute__((aligned(64)));
	uint32_t (*v)[SPYRE_LANES] = c->cl[corelet].v[kind == SPYRE_UNIT_SFP];
	struct fifo *fifo = c->cl[corelet].fifo, *to = i->a >= 0x20 ? &fifo[i->a - 0x20u] : NULL;
	const uint8_t opnd[3] = { i->b, i->c, i->d };
	unsigned int k, m, fmt = (uint32_t)i->imm2 >> 24;
	const uint32_t *src[3];

	for (m = i->fifos; m; m &= m - 1) {
		k = (unsigned int)__builtin_ctz(m);
		if (fifo[opnd[k] - 0x20u].count < isa_words((uint32_t)i->imm2 >> (8 * k) & 0xff))
			return STEP_BLOCKED;
	}
	if (to && FIFO_CAP - to->count < isa_words(fmt))
		return STEP_BLOCKED;
	vec_sources(c, i, kind, corelet, src, imm);
	for (m = i->fifos; m; m &= m - 1) {
		unsigned int from;

		k = (unsigned int)__builtin_ctz(m);
		from = (uint32_t)i->imm2 >> (8 * k) & 0xff;
		pop_run(c, &fifo[opnd[k] - 0x20u], in[k], isa_words(from), from);
		c->ready |= writer_bit(opnd[k] - 0x20u, corelet);
		src[k] = in[k];
	}
	c->soc->vec->op[i->op](to ? out : v[i->a], 0, src[0], 0, src[1], 0, src[2], 0, 1, vec_param(i));
	if (to) {
		push_run(c, to, out, isa_words(fmt), fmt);
		c->ready |= reader_bit(i->a - 0x20u, corelet);
	}
	c->budget -= COST_TIME;
	return STEP_NEXT;
}

static enum step do_vec(struct core *c, struct unit *u, const struct job_insn *i, unsigned int kind,
			unsigned int corelet)
{
	struct corelet *cl = &c->cl[corelet];
	struct spyre_soc *soc = c->soc;
	uint32_t (*v)[SPYRE_LANES] = cl->v[kind == SPYRE_UNIT_SFP];
	uint32_t in[3][BLOCK * SPYRE_LANES] __attribute__((aligned(64)));
	uint32_t out[BLOCK * SPYRE_LANES] __attribute__((aligned(64)));
	uint32_t imm[SPYRE_LANES] __attribute__((aligned(64)));
	const uint8_t opnd[3] = { i->b, i->c, i->d };
	static const uint8_t *const unfed[3];
	const uint32_t *src[3];
	size_t stride[3] = { 0, 0, 0 };
	uint32_t need[SPYRE_FIFOS] = { 0 };	/* words a time */
	struct core *ring = NULL, *ring_to = NULL;
	uint32_t param = vec_param(i);
	uint32_t m, k, j, w;
	unsigned int fmt, packed;
	bool twice = false;

	vec_sources(c, i, kind, corelet, src, imm);
	for (k = 0; k < 3; k++) {
		if (!(i->fifos & 1u << k))
			continue;
		j = opnd[k] - 0x20u;
		twice |= need[j] != 0;
		need[j] += isa_words((uint32_t)i->imm2 >> (8 * k) & 0xff);
		src[k] = in[k];
		stride[k] = SPYRE_LANES;
		if (j == SPYRE_FIFO_RING)
			ring = c;
	}
	if (i->a == SPYRE_OPND_FIFO(SPYRE_FIFO_RING))
		ring_to = c->ring_next[corelet];
	packed = stream_operands(soc, i);

	while (u->done < i->n) {
		struct fifo *to = NULL;
		uint32_t wa = 0;

		if (packed) {
			m = stream_run(c, corelet, i, packed, src, i->n - u->done, unfed);
			if (!m)
				return STEP_BLOCKED;
			u->done += m;
			if (c->budget <= 0 && u->done < i->n) {
				c->ready |= 1u << job_unit_index(kind, corelet);
				return STEP_BLOCKED;
			}
			continue;
		}
		/* The ring is shared with the neighbours' threads. */
		if (ring || ring_to)
			pthread_mutex_lock(&soc->lock);
		m = i->n - u->done;
		if (m > BLOCK)
			m = BLOCK;
		if (twice)
			m = 1;
		for (k = 0; k < 3; k++) {
			if (!stride[k])
				continue;
			j = opnd[k] - 0x20u;
			if (cl->fifo[j].count / need[j] < m)
				m = cl->fifo[j].count / need[j];
		}
		if (i->a >= 0x20) {
			j = i->a - 0x20u;
			to = ring_to ? &ring_to->cl[corelet].fifo[j] : &cl->fifo[j];
			wa = isa_words((uint32_t)i->imm2 >> 24);
			if ((FIFO_CAP - to->count) / wa < m)
				m = (FIFO_CAP - to->count) / wa;
		}
		if (!m) {
			if (ring || ring_to)
				pthread_mutex_unlock(&soc->lock);
			return STEP_BLOCKED;
		}
		for (k = 0; k < 3; k++) {
			if (!stride[k])
				continue;
			j = opnd[k] - 0x20u;
			fmt = (uint32_t)i->imm2 >> (8 * k) & 0xff;
			w = isa_words(fmt);
			/* Narrow formats fill several V registers: time after time the same ones. */
			if (isa_vregs(fmt) > 1) {
				uint32_t n;
				uint8_t *p;

				for (n = 0; n < m; n++) {
					uint32_t one;

					p = fifo_words(&cl->fifo[j], 1, &one);
					pop_convert(c, v[i->a], p, 1, fmt);
					fifo_pop(&cl->fifo[j], 1);
				}
			} else {
				pop_run(c, &cl->fifo[j], in[k], m * w, fmt);
			}
			if (j == SPYRE_FIFO_RING)
				poke(c->ring_prev[corelet], writer_bit(j, corelet));
			else
				c->ready |= writer_bit(j, corelet);
		}
		fmt = (uint32_t)i->imm2 >> 24;
		if (isa_vregs((uint32_t)i->imm2 & 0xff) > 1) {
			;	/* done by the pop */
		} else if (isa_vregs(fmt) > 1) {
			for (k = 0; k < m; k++)
				push_run(c, to, v[i->b], 1, fmt);
		} else if (to) {
			soc->vec->op[i->op](out, SPYRE_LANES, src[0], stride[0], src[1], stride[1], src[2],
					    stride[2], m, param);
			push_run(c, to, out, m * wa, fmt);
		} else {
			soc->vec->op[i->op](v[i->a], 0, src[0], stride[0], src[1], stride[1], src[2], stride[2],
					    m, param);
		}
		if (ring_to)
			poke(ring_to, reader_bit(SPYRE_FIFO_RING, corelet));
		else if (to)
			c->ready |= reader_bit(i->a - 0x20u, corelet);
		if (ring || ring_to)
			pthread_mutex_unlock(&soc->lock);
		u->done += m;
		c->budget -= m * (int64_t)COST_TIME;
		if (c->budget <= 0 && u->done < i->n) {
			c->ready |= 1u << job_unit_index(kind, corelet);
			return STEP_BLOCKED;
		}
	}
	return STEP_NEXT;
}

/* --- A unit, a core ------------------------------------------------------------------------- */

static void run_unit(struct core *c, unsigned int index)
{
	struct unit *u = &c->unit[index];
	unsigned int kind = job_unit_kind(index), corelet = job_unit_corelet(index);
	struct corelet *cl = &c->cl[corelet];
	uint32_t bit = 1u << index;
	enum step step;

	c->ready &= ~bit;
	if (kind == SPYRE_UNIT_PT)
		drain_loads(c, corelet);
	for (;;) {
		const struct job_insn *i = &u->s.insns[u->s.pc];

		if (c->budget <= 0) {
			c->ready |= bit;
			return;
		}
		c->budget -= COST_INSN;
		if (seq_control(&u->s, i))
			continue;
		switch (i->op) {
		case SPYRE_OP_RETURN:
			if (kind == SPYRE_UNIT_PT && cl->nldw)
				return;
			u->state = UNIT_DONE;
			c->live &= ~bit;
			return;
		case SPYRE_OP_SYNC_SEND:
			/* Follows the unit's earlier loads, those of the load port too. */
			if (kind == SPYRE_UNIT_PT && cl->nldw)
				return;
			send_tag(c, i->a, (uint32_t)i->imm);
			step = STEP_NEXT;
			break;
		case SPYRE_OP_SYNC_WAIT:
			if (c->tag[i->a] < i->n)
				return;
			c->tag[i->a] -= i->n;
			step = STEP_NEXT;
			break;
		case SPYRE_OP_L3_LDU:
		case SPYRE_OP_L3_LDM:
		case SPYRE_OP_L3_STU:
		case SPYRE_OP_L3_STC:
			step = do_l3(c, u, i);
			break;
		case SPYRE_OP_LD:
		case SPYRE_OP_ST:
			step = do_local(c, u, i, kind, corelet);
			break;
		case SPYRE_OP_PT_LDW:
		case SPYRE_OP_PT_MM:
		case SPYRE_OP_PT_PSOUT:
		case SPYRE_OP_PT_PSIN:
			step = do_pt(c, u, i, corelet);
			break;
		default:
			if ((i->ways & JOB_WAY_REGISTERS) && i->n <= BLOCK)
				step = do_registers(c, i, kind, corelet);
			else if ((i->ways & JOB_WAY_SHORT) && !stream_operands(c->soc, i))
				step = do_short(c, i, kind, corelet);
			else
				step = do_vec(c, u, i, kind, corelet);
			break;
		}
		if (step == STEP_MOVED)
			continue;
		if (step == STEP_BLOCKED)
			return;
		if (step == STEP_FAILED) {
			u->state = UNIT_FAILED;
			c->live &= ~bit;
			return;
		}
		u->done = 0;
		seq_next(&u->s, i);
	}
}

static void *zalloc64(size_t size)
{
	void *p;

	if (posix_memalign(&p, 64, size))
		return NULL;
	memset(p, 0, size);
	return p;
}

/* Memory of what the job's units use, and the zero state every job starts with. */
static bool core_start(struct core *c)
{
	const struct job *job = c->soc->job;
	unsigned int x, k, index;
	uint32_t pc;

	c->ready = c->live = 0;
	memset(c->tag, 0, sizeof(c->tag));
	for (x = 0; x < 2; x++) {
		struct corelet *cl = &c->cl[x];

		for (k = 0; k < SPYRE_FIFOS; k++)
			if (k != SPYRE_FIFO_RING)
				cl->fifo[k].head = cl->fifo[k].count = 0;
		cl->nldw = 0;
		memset(cl->tile_fmt, 0xff, sizeof(cl->tile_fmt));
		memset(cl->tile_pending, 0, sizeof(cl->tile_pending));
		memset(cl->row_int, 0, sizeof(cl->row_int));
		if (job->unit[c->id][job_unit_index(SPYRE_UNIT_L0LU, x)] ||
		    job->unit[c->id][job_unit_index(SPYRE_UNIT_L0SU, x)]) {
			if (!cl->l0)
				cl->l0 = zalloc64(SPYRE_L0_SIZE);
			else if (cl->l0_dirty)
				memset(cl->l0, 0, SPYRE_L0_SIZE);
			cl->l0_dirty = false;
			if (!cl->l0)
				return false;
		}
		if (job->unit[c->id][job_unit_index(SPYRE_UNIT_PT, x)]) {
			if (!cl->tile)
				cl->tile = zalloc64(PT_TILES * sizeof(*cl->tile));
			if (!cl->rows)
				cl->rows = zalloc64(PT_ROWS * sizeof(*cl->rows));
			else
				memset(cl->rows, 0, PT_ROWS * sizeof(*cl->rows));
			if (!cl->tile || !cl->rows)
				return false;
		}
		for (k = 0; k < 2; k++) {
			if (!job->unit[c->id][job_unit_index(SPYRE_UNIT_PE + k, x)])
				continue;
			if (!cl->v[k])
				cl->v[k] = zalloc64(SPYRE_VREGS * sizeof(*cl->v[k]));
			else
				memset(cl->v[k], 0, SPYRE_VREGS * sizeof(*cl->v[k]));
			if (!cl->v[k])
				return false;
		}
	}
	for (index = 0; index < JOB_CORE_UNITS; index++) {
		const struct job_unit *ju = job->unit[c->id][index];
		struct unit *u = &c->unit[index];

		u->state = UNIT_NONE;
		memset(&u->fault, 0, sizeof(u->fault));
		if (!ju)
			continue;
		seq_init(&u->s, ju, c->soc->symbols);
		u->state = UNIT_LIVE;
		u->done = 0;
		c->ready |= 1u << index;
		c->live |= 1u << index;
		/* FIFOs an instruction names must have memory; the ring's are the reader's and made before. */
		for (pc = 0; pc < ju->program->count; pc++) {
			const struct job_insn *i = &u->s.insns[pc];
			const uint8_t opnd[4] = { i->a, i->b, i->c, i->d };

			x = job_unit_corelet(index);
			if (i->op >= SPYRE_OP_LD && i->op < SPYRE_OP_MOV) {
				if (!fifo_ensure(&c->cl[x].fifo[i->d]))
					return false;
			} else if (i->op >= SPYRE_OP_MOV) {
				for (k = 0; k < 4; k++)
					if ((k == 0 || (i->srcs & 1u << (k - 1))) && opnd[k] >= 0x20 &&
					    opnd[k] < 0x40 && !fifo_ensure(&c->cl[x].fifo[opnd[k] - 0x20u]))
						return false;
			}
		}
	}
	c->started = true;
	return true;
}

/* A checkpoint that settles only if somebody waits for what is lent. */
static bool checkpoint(struct core *c, unsigned int w)
{
	const struct spyre_soc_mem *mem = c->soc->req.mem;
	bool stop;

	if (c->nlent) {
		if (mem->keep && mem->keep(mem->opaque, w, &stop)) {
			if (stop)
				__atomic_store_n(&c->soc->cancel, true, __ATOMIC_RELAXED);
			return __atomic_load_n(&c->soc->cancel, __ATOMIC_RELAXED);
		}
		lx_settle(c, NULL, 0);
	}
	return soc_checkpoint(c->soc, w);
}

void spyre_core_run(struct core *c, unsigned int w)
{
	struct spyre_soc *soc = c->soc;

	c->budget = SLICE;
	if (!c->started && !core_start(c)) {
		/* Out of memory: the job cannot go on; the pool reports it as INTERNAL. */
		c->live = 1;
		c->ready = 0;
	}
	for (;;) {
		if (c->budget <= 0) {
			c->budget = SLICE;
			if (checkpoint(c, w))
				c->ready = 0;
		}
		if (__atomic_load_n(&soc->cancel, __ATOMIC_RELAXED))
			c->ready = 0;
		if (c->ready & c->live) {
			run_unit(c, (unsigned int)__builtin_ctz(c->ready & c->live));
			if (!__atomic_load_n(&c->inbox, __ATOMIC_RELAXED))
				continue;
		}
		/* Who comes back to this core may be another worker, and what LX holds may be a later job's. */
		lx_settle(c, NULL, 0);
		pthread_mutex_lock(&soc->lock);
		if (c->inbox)
			read_inbox(c);
		if (!(c->ready & c->live) || __atomic_load_n(&soc->cancel, __ATOMIC_RELAXED)) {
			c->state = CORE_PARKED;
			pthread_mutex_unlock(&soc->lock);
			return;
		}
		pthread_mutex_unlock(&soc->lock);
	}
}

void spyre_core_free(struct core *c)
{
	unsigned int x, k;

	for (x = 0; x < 2; x++) {
		struct corelet *cl = &c->cl[x];

		for (k = 0; k < SPYRE_FIFOS; k++)
			free(cl->fifo[k].buf);
		free(cl->l0);
		free(cl->tile);
		free(cl->rows);
		free(cl->v[0]);
		free(cl->v[1]);
	}
}
