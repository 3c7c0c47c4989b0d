// SPDX-License-Identifier: MIT
#include "walk.h"

/* LBR3 of the L3 units holds a stick's length, for steps that are no 32-bit field. */
static void add(struct spyreprog_job *job, int p, unsigned int reg, int64_t bytes)
{
	if (!bytes)
		return;
	if (bytes >= INT32_MIN && bytes <= INT32_MAX)
		sp_addimm(job, p, reg, (int32_t)bytes);
	else
		sp_addreg(job, p, reg, SPYRE_LBR0 + 3, (int32_t)(bytes / (int64_t)SPYRE_STICK));
}

uint32_t walk_words(const struct walk_side *s, unsigned int c)
{
	return s->words[c] * (s->pieces ? s->pieces : 1);
}

uint32_t walk_at(const struct walk *w, const struct walk_grid *g, unsigned int o, unsigned int c)
{
	uint32_t at = 0, i;

	(void)w;
	for (i = 0; i < o; i++)
		at += walk_words(&g->in[i], c);
	return at * SPYRE_STICK;
}

void walk_spread(const struct walk *w, int p, bool load, enum spyre_fifo fifo, unsigned int lar,
		 unsigned int wl, uint32_t n, uint32_t stride)
{
	void (*move)(struct spyreprog_job *job, int p, unsigned int lar, unsigned int lbr,
		     unsigned int fifo, uint32_t n, int32_t stride, int32_t larinc) =
		load ? sp_ld : sp_st;

	if (wl == 1) {
		move(w->job, p, lar, SPYRE_REG_NONE, fifo, n, (int32_t)stride, 0);
		return;
	}
	sp_loop(w->job, p, n);
	move(w->job, p, lar, SPYRE_REG_NONE, fifo, wl, (int32_t)SPYRE_STICK, (int32_t)stride);
	sp_end(w->job, p);
}

void walk_by_row(const struct walk *w, int p, bool load, enum spyre_fifo fifo, unsigned int wl,
		 uint32_t rows, uint32_t cols)
{
	if (rows == 1 || cols == 1) {
		walk_spread(w, p, load, fifo, SPYRE_LAR0 + 2, 1, rows * cols * wl, SPYRE_STICK);
		return;
	}
	sp_mvreg(w->job, p, SPYRE_LAR0, SPYRE_LAR0 + 2, 0);
	sp_loop(w->job, p, rows);
	sp_mvreg(w->job, p, SPYRE_LAR0 + 1, SPYRE_LAR0, 0);
	walk_spread(w, p, load, fifo, SPYRE_LAR0 + 1, wl, cols, rows * wl * SPYRE_STICK);
	sp_addimm(w->job, p, SPYRE_LAR0, (int32_t)(wl * SPYRE_STICK));
	sp_end(w->job, p);
}

void walk_store(const struct walk *w, const struct walk_grid *g, int p, unsigned int c)
{
	sp_st(w->job, p, SPYRE_LAR0 + 2, SPYRE_REG_NONE,
	      w->unit == SPYRE_UNIT_SFP ? SPYRE_FIFO_SFP_LXSU : SPYRE_FIFO_PE_LXSU,
	      walk_words(&g->out, c), SPYRE_STICK, 0);
}

static bool place(struct walk *w)
{
	uint64_t in = 0, out = 0, n, at = 0;
	unsigned int i, o, c;

	for (i = 0; i < w->ngrids; i++) {
		const struct walk_grid *g = &w->grids[i];

		for (c = 0; c < 2; c++) {
			for (n = 0, o = 0; o < w->nin; o++)
				n += walk_words(&g->in[o], c);
			in = n > in ? n : in;
			n = walk_words(&g->out, c);
			out = n > out ? n : out;
		}
	}
	if ((in + out) * 4 + w->temp * 2ull > SPYRE_LX_SIZE / SPYRE_STICK)
		return false;
	w->slot_in = (uint32_t)in * SPYRE_STICK;
	w->slot_out = (uint32_t)out * SPYRE_STICK;
	for (c = 0; c < 2; c++, at += 2 * in * SPYRE_STICK)
		w->lx_in[c] = (uint32_t)at;
	for (c = 0; c < 2; c++, at += 2 * out * SPYRE_STICK)
		w->lx_out[c] = (uint32_t)at;
	for (c = 0; c < 2; c++, at += (uint64_t)w->temp * SPYRE_STICK)
		w->lx_temp[c] = (uint32_t)at;
	return true;
}

/* Steps first to last of a grid in L3LU (load) or L3SU. */
struct l3 {
	const struct walk *w;
	const struct walk_grid *g;
	int p;
	bool load;
	unsigned int nsides;
	const struct walk_side *side[WALK_OPERANDS];
};

static void l3_step(const struct l3 *l)
{
	struct spyreprog_job *job = l->w->job;
	const uint32_t *lx = l->load ? l->w->lx_in : l->w->lx_out;
	unsigned int c, i;
	int p = l->p;

	for (c = 0; c < 2; c++) {
		if (!l->g->out.words[c])
			continue;
		sp_wait(job, p, (l->load ? TAG_FREE : TAG_STAGED) + c, 1);
		sp_mvreg(job, p, SPYRE_LAR0 + 2, SPYRE_LAR0 + c, 0);
		for (i = 0; i < l->nsides; i++) {
			const struct walk_side *s = l->side[i];

			if (!s->words[c])
				continue;
			sp_mvreg(job, p, SPYRE_EAR0 + 3, SPYRE_EAR0 + i, 0);
			if (c)
				add(job, p, SPYRE_EAR0 + 3, s->half);
			if (s->pieces > 1)
				sp_loop(job, p, s->pieces);
			gen_l3(job, p, l->load ? SPYRE_OP_L3_LDU : SPYRE_OP_L3_STU, SPYRE_LAR0 + 2,
			       SPYRE_EAR0 + 3, s->words[c], 0);
			if (s->pieces > 1) {
				add(job, p, SPYRE_EAR0 + 3,
				    s->piece - (int64_t)(s->words[c] * SPYRE_STICK));
				sp_end(job, p);
			}
		}
		sp_send(job, p, (l->load ? TAG_LOADED : TAG_EMPTY) + c, 0);
		gen_swap(job, p, SPYRE_LAR0 + c, SPYRE_LAR0 + 3, lx[c], l->load ? l->w->slot_in : l->w->slot_out);
	}
}

static void l3_row(const struct l3 *l, uint32_t n, bool wraps)
{
	unsigned int i;

	if (n > 1)
		sp_loop(l->w->job, l->p, n);
	l3_step(l);
	for (i = 0; i < l->nsides; i++)
		add(l->w->job, l->p, SPYRE_EAR0 + i, l->side[i]->inner);
	if (n > 1)
		sp_end(l->w->job, l->p);
	for (i = 0; wraps && i < l->nsides; i++)
		add(l->w->job, l->p, SPYRE_EAR0 + i,
		    l->side[i]->outer - (int64_t)l->g->cols * l->side[i]->inner);
}

static void l3_grid(const struct l3 *l, uint64_t first, uint64_t last)
{
	uint64_t cols = l->g->cols, row = first / cols, col = first % cols, n;
	unsigned int i;

	for (i = 0; i < l->nsides; i++) {
		const struct walk_side *s = l->side[i];

		sp_mvreg(l->w->job, l->p, SPYRE_EAR0 + i, SPYRE_LBR0 + i, 0);
		add(l->w->job, l->p, SPYRE_EAR0 + i,
		    (int64_t)s->base + (int64_t)row * s->outer + (int64_t)col * s->inner);
	}
	if (col) {
		n = cols - col < last - first ? cols - col : last - first;
		l3_row(l, (uint32_t)n, true);
		first += n;
	}
	n = (last - first) / cols;
	if (n > 1)
		sp_loop(l->w->job, l->p, (uint32_t)n);
	if (n)
		l3_row(l, (uint32_t)cols, true);
	if (n > 1)
		sp_end(l->w->job, l->p);
	first += n * cols;
	if (first < last)
		l3_row(l, (uint32_t)(last - first), false);
}

/* A core's share: products b0 to b1, place part of parts in each. */
struct share {
	uint32_t core, b0, b1, part, parts;
};

static void range(const struct walk_grid *g, const struct share *sh, uint64_t *first,
		  uint64_t *last)
{
	uint64_t steps = (uint64_t)g->rows * g->cols;

	*first = steps * sh->part / sh->parts;
	*last = steps * (sh->part + 1) / sh->parts;
}

static void l3_unit(const struct walk *w, const struct share *sh, bool load)
{
	struct spyreprog_job *job = w->job;
	const uint32_t *lx = load ? w->lx_in : w->lx_out;
	unsigned int i, o, c, nsides = load ? w->nin : 1;
	uint64_t first, last;
	int p, u;

	p = spyreprog_job_program(job, load ? SPYRE_UNIT_L3LU : SPYRE_UNIT_L3SU);
	u = spyreprog_job_unit(job, sh->core, load ? SPYRE_UNIT_L3LU : SPYRE_UNIT_L3SU, 0, p);
	for (o = 0; o < nsides; o++)
		spyreprog_job_init(job, u, SPYRE_LBR0 + o, w->symbol[load ? o : w->nin],
				   sh->b0 * w->step[load ? o : w->nin]);
	gen_set(job, p, SPYRE_LBR0 + 3, SPYRE_STICK);
	for (c = 0; c < 2; c++) {
		gen_set(job, p, SPYRE_LAR0 + c, lx[c]);
		for (i = 0; i < 2 && !load; i++)
			sp_send(job, p, TAG_EMPTY + c, 0);
	}
	if (sh->b1 - sh->b0 > 1)
		sp_loop(job, p, sh->b1 - sh->b0);
	for (i = 0; i < w->ngrids; i++) {
		struct l3 l = { .w = w, .g = &w->grids[i], .p = p, .load = load,
				.nsides = nsides };

		for (o = 0; o < nsides; o++)
			l.side[o] = load ? &l.g->in[o] : &l.g->out;
		range(l.g, sh, &first, &last);
		if (first < last)
			l3_grid(&l, first, last);
	}
	for (o = 0; o < nsides; o++)
		add(job, p, SPYRE_LBR0 + o, (int64_t)w->step[load ? o : w->nin]);
	if (sh->b1 - sh->b0 > 1)
		sp_end(job, p);
	for (c = 0; load && c < 2; c++)
		sp_wait(job, p, TAG_FREE + c, 2);
}

static void corelet_unit(const struct walk *w, const struct share *sh, unsigned int c,
			 enum spyre_unit unit)
{
	bool lxlu = unit == SPYRE_UNIT_LXLU, lxsu = unit == SPYRE_UNIT_LXSU;
	uint32_t base = lxlu ? w->lx_in[c] : w->lx_out[c];
	struct spyreprog_job *job = w->job;
	uint64_t first, last;
	unsigned int i;
	int p;

	p = spyreprog_job_program(job, unit);
	spyreprog_job_unit(job, sh->core, unit, c, p);
	if (lxlu || lxsu)
		gen_set(job, p, SPYRE_LAR0 + 2, base);
	for (i = 0; lxlu && i < 2; i++)
		sp_send(job, p, TAG_FREE + c, 0);
	if (sh->b1 - sh->b0 > 1)
		sp_loop(job, p, sh->b1 - sh->b0);
	for (i = 0; i < w->ngrids; i++) {
		const struct walk_grid *g = &w->grids[i];

		range(g, sh, &first, &last);
		if (first == last || !g->out.words[c])
			continue;
		if (last - first > 1)
			sp_loop(job, p, (uint32_t)(last - first));
		if (lxlu) {
			sp_wait(job, p, TAG_LOADED + c, 1);
			g->load(w, g, p, c);
			sp_send(job, p, TAG_FREE + c, 0);
			gen_swap(job, p, SPYRE_LAR0 + 2, SPYRE_LAR0 + 3, base, w->slot_in);
		} else if (lxsu) {
			sp_wait(job, p, TAG_EMPTY + c, 1);
			g->store(w, g, p, c);
			sp_send(job, p, TAG_STAGED + c, 0);
			gen_swap(job, p, SPYRE_LAR0 + 2, SPYRE_LAR0 + 3, base, w->slot_out);
		} else {
			g->compute(w, g, p, c);
		}
		if (last - first > 1)
			sp_end(job, p);
	}
	/* Also keeps a block without steps from being empty. */
	spyreprog_job_insn(job, p, &(struct spyre_insn){ .op = SPYRE_OP_NOP });
	if (sh->b1 - sh->b0 > 1)
		sp_end(job, p);
	if (lxsu)
		sp_wait(job, p, TAG_EMPTY + c, 2);
}

bool walk(struct walk *w)
{
	uint32_t avail = w->cores ? w->cores : 0xffffffffu, used[32], n = 0, i, parts, groups;
	uint32_t batch = w->batch ? w->batch : 1;
	uint64_t most = 1, steps;
	unsigned int c;

	if (!place(w))
		return false;
	spyreprog_job_share(w->job);
	for (i = 0; i < 32; i++)
		if (avail >> i & 1)
			used[n++] = i;
	for (i = 0; i < w->ngrids; i++) {
		steps = (uint64_t)w->grids[i].rows * w->grids[i].cols;
		most = steps > most ? steps : most;
	}
	groups = batch < n ? batch : n;
	parts = n / groups < most ? n / groups : (uint32_t)most;
	for (i = 0; i < groups * parts; i++) {
		struct share sh = { .core = used[i], .part = i % parts, .parts = parts,
				    .b0 = (uint32_t)((uint64_t)batch * (i / parts) / groups),
				    .b1 = (uint32_t)((uint64_t)batch * (i / parts + 1) / groups) };

		l3_unit(w, &sh, true);
		l3_unit(w, &sh, false);
		for (c = 0; c < 2; c++) {
			corelet_unit(w, &sh, c, SPYRE_UNIT_LXLU);
			corelet_unit(w, &sh, c, w->unit);
			corelet_unit(w, &sh, c, SPYRE_UNIT_LXSU);
		}
	}
	return true;
}
