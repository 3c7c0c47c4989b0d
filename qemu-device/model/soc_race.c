// SPDX-License-Identifier: MIT
/*
 * The race check: steps through a job without its data and looks for two accesses to a stick of LX,
 * L0 or memory, one of them a write, that nothing orders. What orders: a unit's own program, a word
 * of a FIFO (its writer's accesses before it come before its reader's after it), and a tag (what
 * comes before a send comes before the wait that needs that send). Room in a FIFO and the meeting
 * of a multicast order nothing: the functional pass has deeper FIFOs, and its members load each for
 * itself.
 *
 * Each unit has a vector clock over all units of the job. It is in two parts, as most of what a
 * unit learns comes from its own core: the components of that core by value, and the rest shared
 * between all who know the same.
 */
#include <stdlib.h>

#include "soc_race.h"

#define DEPTH		64u		/* of FIFOs; any number from the card's own depth on */
#define L0_PLACES	(SPYRE_L0_SIZE / SPYRE_STICK)
#define LX_PLACES	(SPYRE_LX_SIZE / SPYRE_STICK)
/* Memory is looked at in pages, and of those that the job writes so many in a pass: what a check
 * needs is bounded. */
#define PAGE_SHIFT	21
#define PAGE_PLACES	((1u << PAGE_SHIFT) / SPYRE_STICK)
#define PAGES		(SPYRE_DMVA_SIZE >> PAGE_SHIFT)
#define WINDOW		32u
#define CHECK_STEPS	4096u		/* between two checkpoints */

/* --- Accesses ------------------------------------------------------------------------------- */

static bool ordered(const struct runit *u, const struct access *a)
{
	return !a->at || race_knows(&u->clk, u->core, a->unit) >= a->at;
}

static void race(struct races *r, const struct runit *u, bool writes, const struct access *other,
		 bool other_writes, enum spyre_race_place place, uint64_t addr)
{
	if (r->found)
		return;
	r->found = true;
	r->a = race_now(u);
	r->b = *other;
	r->place = (uint8_t)place;
	r->writes = (writes ? SPYRE_RACE_WRITES : 0) | (other_writes ? SPYRE_RACE_OTHER_WRITES : 0);
	r->addr = addr;
}

static void touch_local(struct races *r, struct runit *u, struct local *l, bool write,
			enum spyre_race_place place, uint64_t addr)
{
	unsigned int k;

	if (!ordered(u, &l->w))
		race(r, u, write, &l->w, true, place, addr);
	if (!write) {
		l->r[place == SPYRE_RACE_L0 || u->kind == SPYRE_UNIT_L3SU ? 0 : 1 + u->corelet] =
			race_now(u);
		return;
	}
	for (k = 0; k < 3; k++) {
		if (!ordered(u, &l->r[k]))
			race(r, u, true, &l->r[k], false, place, addr);
		l->r[k].at = 0;
	}
	l->w = race_now(u);
}

static void touch_lx(struct races *r, struct runit *u, unsigned int core, uint64_t addr, bool write)
{
	if (r->local)
		touch_local(r, u, &r->core[core].lx[addr / SPYRE_STICK], write, SPYRE_RACE_LX,
			    (uint64_t)core << 24 | addr);
}

static struct access *many_new(struct races *r)
{
	struct access *m = r->many;

	if (m)
		memcpy(&r->many, m, sizeof(r->many));
	else
		m = malloc(32 * sizeof(*m));
	if (!m) {
		r->nomem = true;
		return NULL;
	}
	memset(m, 0, 32 * sizeof(*m));
	return m;
}

static void many_put(struct races *r, struct access *m)
{
	memcpy(m, &r->many, sizeof(r->many));
	r->many = m;
}

/* Memory is read by L3LUs alone, one of each core, and written by L3SUs. */
static void touch_memory(struct races *r, struct runit *u, uint64_t addr, bool write)
{
	struct place *p = r->check ? r->page[addr >> PAGE_SHIFT] : NULL;
	unsigned int at = (unsigned int)(addr / SPYRE_STICK % PAGE_PLACES), k;

	/* Reads of what is not written need no place. */
	if (!p || !(r->written[addr >> PAGE_SHIFT][at / 64] >> at % 64 & 1))
		return;
	p += at;
	if (!ordered(u, &p->w))
		race(r, u, write, &p->w, true, SPYRE_RACE_MEMORY, addr);
	if (write) {
		if (!ordered(u, &p->r))
			race(r, u, true, &p->r, false, SPYRE_RACE_MEMORY, addr);
		for (k = 0; p->many && k < 32; k++)
			if (!ordered(u, &p->many[k]))
				race(r, u, true, &p->many[k], false, SPYRE_RACE_MEMORY, addr);
		if (p->many)
			many_put(r, p->many);
		p->many = NULL;
		p->r.at = 0;
		p->w = race_now(u);
	} else if (p->many) {
		p->many[u->core] = race_now(u);
	} else if (ordered(u, &p->r)) {
		p->r = race_now(u);
	} else {
		p->many = many_new(r);
		if (!p->many)
			return;
		p->many[p->r.unit / JOB_CORE_UNITS] = p->r;
		p->many[u->core] = race_now(u);
		p->r.at = 0;
	}
}

/* --- FIFOs ---------------------------------------------------------------------------------- */

/* The FIFO that a unit of c writes. */
static struct rcore *fifo_core(struct rcore *c, unsigned int corelet, unsigned int fifo)
{
	return fifo == SPYRE_FIFO_RING ? c->next[corelet] : c;
}

static void push(struct races *r, struct rcore *c, struct runit *u, unsigned int fifo, uint32_t n)
{
	struct rcore *to = fifo_core(c, u->corelet, fifo);
	struct wfifo *f = &to->fifo[u->corelet][fifo];

	if (!f->w)
		f->w = calloc(DEPTH, sizeof(*f->w));
	if (!f->w) {
		r->nomem = true;
		return;
	}
	for (; n; n--)
		race_clock_set(r, &f->w[(f->head + f->count++) % DEPTH], &u->clk);
	race_tick(u);
	race_wake(r, to, isa_fifos[fifo].load_port ? PORT0 + u->corelet :
		    job_unit_index(isa_fifos[fifo].reader, u->corelet));
}

/* A writer knows all that it knew at its words before: the last one says it all. */
static void pop(struct races *r, struct rcore *c, struct runit *u, unsigned int fifo, uint32_t n)
{
	struct wfifo *f = &c->fifo[u->corelet][fifo];
	struct rcore *from = fifo == SPYRE_FIFO_RING ? c->prev[u->corelet] : c;

	race_join(r, u, from->id, &f->w[(f->head + n - 1) % DEPTH]);
	f->head = (f->head + n) % DEPTH;
	f->count -= n;
	race_wake(r, from, job_unit_index(isa_fifos[fifo].writer, u->corelet));
}

static uint32_t fifo_has(const struct rcore *c, const struct runit *u, unsigned int fifo)
{
	return c->fifo[u->corelet][fifo].count;
}

static uint32_t fifo_room(struct rcore *c, const struct runit *u, unsigned int fifo)
{
	return DEPTH - fifo_core(c, u->corelet, fifo)->fifo[u->corelet][fifo].count;
}

/* --- Units ---------------------------------------------------------------------------------- */

/* Instructions end with one of these; a unit that fails here fails when the job runs, with its own
 * error. */
enum step { STEP_NEXT, STEP_BLOCKED, STEP_END };

static enum step do_l3(struct races *r, struct runit *u, const struct job_insn *i)
{
	uint64_t lx = seq_local_addr(&u->s, i), ear = u->s.reg[i->c],
		 bytes = i->n * (uint64_t)SPYRE_STICK, k;

	if (seq_local_range(lx, i->n, SPYRE_STICK, SPYRE_LX_SIZE))
		return STEP_END;
	if (i->op == SPYRE_OP_L3_STC) {
		uint64_t core = ear >> 24, to = ear & 0xffffff;

		if (core >= 32 || !(r->job->core_mask & 1u << core) ||
		    seq_local_range(to, i->n, SPYRE_STICK, SPYRE_LX_SIZE))
			return STEP_END;
		for (k = 0; k < bytes; k += SPYRE_STICK)
			touch_lx(r, u, u->core, lx + k, false);
		for (k = 0; k < bytes; k += SPYRE_STICK)
			touch_lx(r, u, (unsigned int)core, to + k, true);
	} else {
		if (ear % SPYRE_STICK || ear >= SPYRE_DMVA_SIZE || SPYRE_DMVA_SIZE - ear < bytes)
			return STEP_END;
		for (k = 0; k < bytes; k += SPYRE_STICK) {
			touch_lx(r, u, u->core, lx + k, i->op != SPYRE_OP_L3_STU);
			touch_memory(r, u, ear + k, i->op == SPYRE_OP_L3_STU);
		}
	}
	r->steps += i->n;
	u->s.reg[i->a] += (uint64_t)(int64_t)i->imm;
	u->s.reg[i->c] += (uint64_t)(int64_t)i->imm2;
	return STEP_NEXT;
}

static enum step do_local(struct races *r, struct rcore *c, struct runit *u,
			  const struct job_insn *i)
{
	bool l0 = u->kind == SPYRE_UNIT_L0LU || u->kind == SPYRE_UNIT_L0SU,
	     load = i->op == SPYRE_OP_LD;
	uint64_t addr = seq_local_addr(&u->s, i), at;

	if (!u->done && seq_local_range(addr, i->n, i->imm, l0 ? SPYRE_L0_SIZE : SPYRE_LX_SIZE))
		return STEP_END;
	for (; u->done < i->n; u->done++, r->steps++) {
		if (load ? !fifo_room(c, u, i->d) : !fifo_has(c, u, i->d))
			return STEP_BLOCKED;
		if (!load)
			pop(r, c, u, i->d, 1);
		at = addr + (uint64_t)((int64_t)u->done * i->imm);
		if (!l0)
			touch_lx(r, u, u->core, at, !load);
		else if (r->local)
			touch_local(r, u, &c->l0[u->corelet][at / SPYRE_STICK], !load,
				    SPYRE_RACE_L0, at);
		if (load)
			push(r, c, u, i->d, 1);
	}
	u->s.reg[i->a] += (uint64_t)(int64_t)i->imm2;
	return STEP_NEXT;
}

static enum step do_pt(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i)
{
	uint32_t total = i->op == SPYRE_OP_PT_MM ? i->n : i->n * 2u, n;
	unsigned int x = u->corelet;

	if (i->op == SPYRE_OP_PT_LDW) {
		if (c->nldw[x] == PT_TILES)
			return STEP_BLOCKED;
		c->ldw[x][c->nldw[x]++] = (struct ldw){ .tile = i->a, .fmt = i->b, .fifo = i->d };
		c->pending[x][i->a]++;
		race_wake(r, c, PORT0 + x);
		return STEP_NEXT;
	}
	if (i->op == SPYRE_OP_PT_MM && !u->done) {
		if (c->pending[x][i->a])
			return STEP_BLOCKED;
		race_join(r, u, c->id, &c->tile[x][i->a]);
	}
	while (u->done < total) {
		n = i->op == SPYRE_OP_PT_PSOUT ? fifo_room(c, u, i->d) : fifo_has(c, u, i->d);
		if (n > total - u->done)
			n = total - u->done;
		if (!n)
			return STEP_BLOCKED;
		if (i->op == SPYRE_OP_PT_PSOUT)
			push(r, c, u, i->d, n);
		else
			pop(r, c, u, i->d, n);
		u->done += n;
		r->steps += n;
	}
	return STEP_NEXT;
}

/* PT's load port: loads in order, a tile is known when its 64 words have come. */
static void do_port(struct races *r, struct rcore *c, unsigned int x)
{
	struct runit *port = &c->u[PORT0 + x];

	while (c->nldw[x]) {
		const struct ldw *l = &c->ldw[x][0];
		uint32_t n = fifo_has(c, port, l->fifo);

		if (n > 64 - c->got[x])
			n = 64 - c->got[x];
		if (!n)
			return;
		pop(r, c, port, l->fifo, n);
		r->steps += n;
		c->got[x] += n;
		if (c->got[x] < 64)
			continue;
		c->got[x] = 0;
		race_clock_set(r, &c->tile[x][l->tile], &port->clk);
		c->pending[x][l->tile]--;
		c->nldw[x]--;
		memmove(&c->ldw[x][0], &c->ldw[x][1], c->nldw[x] * sizeof(c->ldw[x][0]));
		race_wake(r, c, job_unit_index(SPYRE_UNIT_PT, x));
	}
}

static enum step do_vec(struct races *r, struct rcore *c, struct runit *u, const struct job_insn *i)
{
	const uint8_t opnd[3] = { i->b, i->c, i->d };
	uint32_t need[3] = { 0, 0, 0 }, sum[SPYRE_FIFOS] = { 0 }, out = 0, n, k;
	unsigned int fifo[3], to = 0, nin = 0, j;

	for (k = 0; k < 3; k++) {
		if (!(i->srcs & 1u << k) || opnd[k] < 0x20 || opnd[k] >= 0x40)
			continue;
		j = opnd[k] - 0x20u;
		fifo[nin] = j;
		need[nin++] = isa_words((uint32_t)i->imm2 >> (8 * k) & 0xff);
		sum[j] += need[nin - 1];
	}
	if (i->a >= 0x20 && i->a < 0x40) {
		to = i->a - 0x20u;
		out = isa_words((uint32_t)i->imm2 >> 24);
	}
	while (u->done < i->n) {
		/* Only a word that goes out tells of the times apart. */
		n = out ? 1 : i->n - u->done;
		for (k = 0; k < nin; k++)
			if (fifo_has(c, u, fifo[k]) / sum[fifo[k]] < n)
				n = fifo_has(c, u, fifo[k]) / sum[fifo[k]];
		if (!n || (out && fifo_room(c, u, to) < out))
			return STEP_BLOCKED;
		for (k = 0; k < nin; k++)
			pop(r, c, u, fifo[k], n * need[k]);
		if (out)
			push(r, c, u, to, out);
		u->done += n;
		r->steps++;
	}
	return STEP_NEXT;
}

bool race_stop(struct races *r)
{
	if (r->steps >= CHECK_STEPS) {
		r->steps = 0;
		r->cancelled |= soc_checkpoint(r->soc, 0);
	}
	return r->cancelled || r->nomem || r->found || r->large;
}

static void run_unit(struct races *r, struct rcore *c, unsigned int index)
{
	struct runit *u = &c->u[index];
	enum step step;

	c->ready &= ~(1u << index);
	if (index >= PORT0) {
		do_port(r, c, index - PORT0);
		return;
	}
	while (!race_stop(r)) {
		const struct job_insn *i = &u->s.insns[u->s.pc];

		r->steps++;
		if (seq_control(&u->s, i))
			continue;
		switch (i->op) {
		case SPYRE_OP_RETURN:
			step = STEP_END;
			break;
		case SPYRE_OP_SYNC_SEND:
			if (!race_tags_have_room(r, c, i))
				return;
			/* Follows the loads of the load port too. */
			if (u->kind == SPYRE_UNIT_PT) {
				if (c->nldw[u->corelet])
					return;
				race_join(r, u, c->id, &c->u[PORT0 + u->corelet].clk);
			}
			race_send(r, c, u, i);
			step = STEP_NEXT;
			break;
		case SPYRE_OP_SYNC_WAIT:
			step = race_wait(r, c, u, i) ? STEP_NEXT : STEP_BLOCKED;
			break;
		case SPYRE_OP_L3_LDU:
		case SPYRE_OP_L3_LDM:
		case SPYRE_OP_L3_STU:
		case SPYRE_OP_L3_STC:
			step = do_l3(r, u, i);
			break;
		case SPYRE_OP_LD:
		case SPYRE_OP_ST:
			step = do_local(r, c, u, i);
			break;
		case SPYRE_OP_PT_LDW:
		case SPYRE_OP_PT_MM:
		case SPYRE_OP_PT_PSOUT:
		case SPYRE_OP_PT_PSIN:
			step = do_pt(r, c, u, i);
			break;
		default:
			step = do_vec(r, c, u, i);
			break;
		}
		if (step == STEP_BLOCKED)
			return;
		if (step == STEP_END) {
			c->live &= ~(1u << index);
			return;
		}
		u->done = 0;
		seq_next(&u->s, i);
	}
}

/* --- Passes --------------------------------------------------------------------------------- */

static void start_core(struct races *r, struct rcore *c, bool log)
{
	unsigned int x, k, index;

	c->live = c->ready = 0;
	for (index = 0; index < R_UNITS; index++) {
		struct runit *u = &c->u[index];
		const struct job_unit *ju = index < PORT0 ? r->job->unit[c->id][index] : NULL;

		race_clock_drop(r, &u->clk);
		memset(u, 0, sizeof(*u));
		u->core = (uint8_t)c->id;
		u->index = (uint8_t)index;
		u->kind = index < PORT0 ? (uint8_t)job_unit_kind(index) : SPYRE_UNIT_PT;
		u->corelet =
			index < PORT0 ? (uint8_t)job_unit_corelet(index) : (uint8_t)(index - PORT0);
		if (index >= PORT0) {
			c->live |= 1u << index;
		} else if (ju) {
			u->clk.near[index] = 1;
			seq_init(&u->s, ju, r->soc->symbols);
			c->live |= 1u << index;
			race_wake(r, c, index);
		}
	}
	for (x = 0; x < 2; x++) {
		for (k = 0; k < SPYRE_FIFOS; k++) {
			struct wfifo *f = &c->fifo[x][k];

			for (; f->w && f->count; f->count--, f->head++)
				race_clock_drop(r, &f->w[f->head % DEPTH]);
			f->head = f->count = 0;
		}
		for (k = 0; k < PT_TILES; k++)
			race_clock_drop(r, &c->tile[x][k]);
		c->nldw[x] = c->got[x] = 0;
		memset(c->pending[x], 0, sizeof(c->pending[x]));
	}
	for (k = 0; k < SPYRE_TAGS; k++) {
		race_forget_sends(r, &c->tag[k]);
		c->tag[k].logged = log && c->tag[k].nfrom > 1 && !c->tag[k].settled;
	}
}

bool race_pass(struct races *r, bool log)
{
	uint32_t m;

	r->qhead = r->nqueue = 0;
	r->logged = 0;
	for (m = r->job->core_mask; m; m &= m - 1) {
		r->core[__builtin_ctz(m)].queued = false;
		start_core(r, &r->core[__builtin_ctz(m)], log);
	}
	while (r->nqueue && !race_stop(r)) {
		struct rcore *c = r->queue[r->qhead];

		r->qhead = (r->qhead + 1) % 32;
		r->nqueue--;
		while (c->ready & c->live && !race_stop(r))
			run_unit(r, c, (unsigned int)__builtin_ctz(c->ready & c->live));
		/* What was woken meanwhile has run. */
		c->queued = false;
		c->ready = 0;
	}
	return !r->cancelled && !r->nomem && !r->found && !r->large;
}

/* --- The check ------------------------------------------------------------------------------ */

static void ring(struct races *r)
{
	struct rcore *first = NULL, *last = NULL;
	uint32_t m;

	/* Corelet 0 writes to the next core, corelet 1 to the previous one. */
	for (m = r->job->core_mask; m; m &= m - 1) {
		struct rcore *c = &r->core[__builtin_ctz(m)];

		if (last) {
			last->next[0] = last->prev[1] = c;
			c->prev[0] = c->next[1] = last;
		} else {
			first = c;
		}
		last = c;
	}
	last->next[0] = last->prev[1] = first;
	first->prev[0] = first->next[1] = last;
}

/* Which sticks of memory the job may write: what an L3SU does needs no other unit. */
static bool find_written(struct races *r)
{
	uint32_t i, k;

	for (i = 0; i < r->job->nunits; i++) {
		const struct job_unit *ju = &r->job->units[i];
		struct seq s;

		if (ju->index != SPYRE_UNIT_L3SU || !ju->program->memory)
			continue;
		seq_init(&s, ju, r->soc->symbols);
		for (;;) {
			const struct job_insn *in = &s.insns[s.pc];
			uint64_t ear;

			r->steps++;
			if (race_stop(r))
				return false;
			if (seq_control(&s, in))
				continue;
			if (in->op == SPYRE_OP_RETURN)
				break;
			if (in->op == SPYRE_OP_L3_STU) {
				ear = s.reg[in->c];
				for (k = 0; k < in->n; k++, ear += SPYRE_STICK) {
					uint64_t **w = &r->written[(ear & (SPYRE_DMVA_SIZE - 1)) >>
								   PAGE_SHIFT];
					uint64_t at = ear / SPYRE_STICK % PAGE_PLACES;

					if (ear >= SPYRE_DMVA_SIZE)
						break;
					if (!*w)
						*w = calloc(PAGE_PLACES / 64, sizeof(**w));
					if (!*w) {
						r->nomem = true;
						return false;
					}
					(*w)[at / 64] |= 1ull << at % 64;
				}
				r->steps += in->n;
			}
			if (in->op == SPYRE_OP_L3_STU || in->op == SPYRE_OP_L3_STC) {
				s.reg[in->a] += (uint64_t)(int64_t)in->imm;
				s.reg[in->c] += (uint64_t)(int64_t)in->imm2;
			}
			seq_next(&s, in);
		}
	}
	return true;
}

static bool find_local(struct races *r)
{
	uint32_t m;
	unsigned int x;

	for (m = r->job->core_mask; m; m &= m - 1) {
		struct rcore *c = &r->core[__builtin_ctz(m)];

		c->lx = calloc(LX_PLACES, sizeof(*c->lx));
		r->nomem |= !c->lx;
		for (x = 0; x < 2; x++) {
			c->l0[x] = calloc(L0_PLACES, sizeof(*c->l0[x]));
			r->nomem |= !c->l0[x];
		}
	}
	return !r->nomem;
}

static void free_page(struct races *r, uint64_t page)
{
	struct place *p = r->page[page];
	unsigned int k;

	for (k = 0; p && k < PAGE_PLACES; k++)
		if (p[k].many)
			many_put(r, p[k].many);
	free(p);
	r->page[page] = NULL;
}

/* All accesses: those of LX and L0 in the first pass, those of memory a window a pass. */
static bool check(struct races *r)
{
	uint64_t page = 0, k, window[WINDOW];
	bool ok;
	unsigned int n;

	r->check = r->local = true;
	do {
		for (n = 0; page < PAGES && n < WINDOW; page++) {
			if (!r->written[page])
				continue;
			r->page[page] = calloc(PAGE_PLACES, sizeof(**r->page));
			if (!r->page[page])
				r->nomem = true;
			window[n++] = page;
		}
		ok = (!n && !r->local) || race_pass(r, false);
		for (k = 0; k < n; k++)
			free_page(r, window[k]);
		r->local = false;
	} while (ok && page < PAGES);
	return ok;
}

static void finish(struct races *r)
{
	struct far *f;
	uint64_t page;
	unsigned int i, x, k;

	for (i = 0; r->core && i < 32; i++) {
		struct rcore *c = &r->core[i];

		for (k = 0; k < SPYRE_TAGS; k++)
			race_free_tag(r, &c->tag[k]);
		for (k = 0; k < R_UNITS; k++)
			race_clock_drop(r, &c->u[k].clk);
		for (x = 0; x < 2; x++) {
			for (k = 0; k < SPYRE_FIFOS; k++) {
				struct wfifo *w = &c->fifo[x][k];
				unsigned int n;

				/*
				 * A popped word's far part is kept until its place is used again.
				 */
				for (n = 0; w->w && n < DEPTH; n++)
					race_clock_drop(r, &w->w[n]);
				free(w->w);
			}
			for (k = 0; k < PT_TILES; k++)
				race_clock_drop(r, &c->tile[x][k]);
			free(c->l0[x]);
		}
		free(c->lx);
	}
	free(r->core);
	for (page = 0; r->written && page < PAGES; page++)
		free(r->written[page]);
	free(r->written);
	free(r->page);
	while ((f = r->spare)) {
		r->spare = (struct far *)(uintptr_t)f->c[0][0];
		free(f);
	}
	while (r->many) {
		struct access *m = r->many;

		memcpy(&r->many, m, sizeof(r->many));
		free(m);
	}
}

static void tell(const struct races *r, struct spyre_rb *rb)
{
	unsigned int a = r->a.unit % JOB_CORE_UNITS, b = r->b.unit % JOB_CORE_UNITS;

	spyre_soc_fail(rb, SPYRE_ERR_PROGRAM, r->found ? SPYRE_PE_RACE : SPYRE_PE_RACE_SIZE,
		       r->a.unit / JOB_CORE_UNITS, job_unit_kind(a) | job_unit_corelet(a) << 8,
		       r->a.pc);
	if (!r->found)
		return;
	rb->rb_hmierr_addr = r->addr;
	rb->nstuck = 1;
	rb->stuck[0] = (struct spyre_stuck){
		.core = (uint8_t)(r->b.unit / JOB_CORE_UNITS),
		.unit = (uint8_t)(job_unit_kind(b) | job_unit_corelet(b) << 7),
		.waits = r->place, .number = r->writes, .pc = r->b.pc,
	};
}

bool spyre_race_job(struct spyre_soc *soc, struct spyre_rb *rb)
{
	struct races r = { .soc = soc, .job = soc->job };
	unsigned int i;
	bool ok;

	r.core = calloc(32, sizeof(*r.core));
	r.written = calloc(PAGES, sizeof(*r.written));
	r.page = calloc(PAGES, sizeof(*r.page));
	for (i = 0; r.core && i < 32; i++)
		r.core[i].id = i;
	if (!r.core || !r.written || !r.page || !race_senders(&r)) {
		r.nomem = true;
		ok = false;
	} else {
		ring(&r);
		ok = find_local(&r) && race_order_tags(&r) && find_written(&r) && check(&r);
	}
	if (r.cancelled)
		spyre_soc_fail(rb, SPYRE_ERR_CANCELLED, SPYRE_PE_NONE, 0xffff, 0xffff, 0);
	else if (r.found || (r.large && !r.nomem))
		tell(&r, rb);
	else if (!ok)
		spyre_soc_fail(rb, SPYRE_ERR_INTERNAL, SPYRE_PE_NONE, 0xffff, 0xffff, 0);
	finish(&r);
	return ok;
}
