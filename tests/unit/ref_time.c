// SPDX-License-Identifier: MIT
/*
 * Modelled time, event by event: of all processes (units, and the load ports of PTs) the one whose
 * next step can come first takes it, a word or an instruction at a time. A word is read when its
 * reader is free and the word is there; it is written when its writer is free and has a slot.
 */
#include <stdlib.h>
#include <string.h>

#include "ref.h"
#include "ref_num.h"
#include "time_params.h"

#define NEVER UINT64_MAX

/* --- Parameters, in ticks of 1/4096 core cycle ---------------------------------------------- */

#define CYCLE 4096ull
/* Nearest. */
#define PER_WORD(hz) ((SPYRE_CORE_HZ * CYCLE + (hz) / 2) / (hz))
#define LINK	     PER_WORD(TIME_LINK_HZ)
#define BEAT	     (PER_WORD(TIME_PT_BEAT_HZ) > CYCLE ? PER_WORD(TIME_PT_BEAT_HZ) : CYCLE)
/* Rounded down: words of 128 bytes, times. */
#define OF_WORD(rate) (128ull * SPYRE_CORE_HZ * CYCLE / (rate))
#define NS(n)	      ((uint64_t)((unsigned __int128)(n)*SPYRE_CORE_HZ * CYCLE / 1000000000))
#define PLACES	      TIME_BURSTS_IN_FLIGHT
#define MULTICASTS    TIME_MULTICASTS_IN_FLIGHT

/* --- State ---------------------------------------------------------------------------------- */

struct fifo {
	uint64_t there[SPYRE_FIFO_DEPTH];
	unsigned int head, count;
};

struct tag {
	uint64_t *seen; /* sends, ascending */
	unsigned int count, cap;
};

struct proc {
	struct ref_seq seq;
	bool live, port;
	unsigned int kind, corelet;
	uint64_t t;    /* free from then on */
	uint64_t last; /* its loads and stores are over by then */
	uint64_t when; /* next step, NEVER: waits */
	uint32_t word;
	bool released; /* from its group */
};

struct load {
	unsigned int tile, fifo;
	uint64_t at;
};

struct core {
	struct proc p[REF_PROCS];
	struct fifo fifo[2][SPYRE_FIFOS];
	struct tag tag[SPYRE_TAGS];
	struct load load[2][8];
	unsigned int nloads[2], issued[2], ended[2], pending[2][REF_TILES];
	uint64_t end_of_load[2][8], tile_ready[2][REF_TILES];
	unsigned int tile_fmt[2][REF_TILES];	      /* and 1, 0: never loaded */
	uint64_t flight[PLACES], mflight[MULTICASTS]; /* when each is free again */
	unsigned int nmflight;
	uint64_t in_free, out_free;
};

struct group {
	uint32_t arrived;
	uint64_t start, done;
	unsigned int n[REF_CORES];
};

struct sim {
	const struct ref_job *job;
	struct core *core[REF_CORES];
	bool alone;		    /* the one core simulated stands for all, which are alike */
	unsigned int like, half[2]; /* how many those are, and how many of them on each port */
	uint64_t clock, mem_free, port_free[2], tail;
	struct group group[SPYRE_JOB_GROUPS];
	struct ref_time *res;
	uint64_t end;
};

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static struct core *next_core(struct sim *s, unsigned int c, unsigned int x)
{
	return s->core[s->alone ? c : ref_ring_to(s->job, c, x)];
}

/* The FIFO that core c's unit writes. */
static struct fifo *out_fifo(struct sim *s, unsigned int c, unsigned int x, unsigned int f)
{
	return &(f == SPYRE_FIFO_RING ? next_core(s, c, x) : s->core[c])->fifo[x][f];
}

static void write_word(struct fifo *f, uint64_t there)
{
	f->there[(f->head + f->count++) % SPYRE_FIFO_DEPTH] = there;
}

static void read_words(struct fifo *f, unsigned int n)
{
	f->head = (f->head + n) % SPYRE_FIFO_DEPTH;
	f->count -= n;
}

/* When n words are there. */
static uint64_t words_there(const struct fifo *f, unsigned int n)
{
	return f->count < n ? NEVER : f->there[(f->head + n - 1) % SPYRE_FIFO_DEPTH];
}

/* --- Vector instructions -------------------------------------------------------------------- */

struct moves {
	unsigned int nin, fifo[3], words[3]; /* sources, each FIFO once */
	unsigned int out, nout;
	uint64_t cost;
};

static void vector_moves(const struct ref_insn *in, struct moves *m)
{
	unsigned int k, j, n, f, most = 0;

	memset(m, 0, sizeof(*m));
	for (k = 0; k < 3; k++) {
		n = ref_operand_words(in, k, &f);
		if (!n)
			continue;
		for (j = 0; j < m->nin && m->fifo[j] != f; j++)
			;
		m->nin += j == m->nin;
		m->fifo[j] = f;
		m->words[j] += n;
	}
	m->nout = ref_operand_words(in, 3, &m->out);
	for (j = 0; j < m->nin; j++)
		most = m->words[j] > most ? m->words[j] : most;
	most = m->nout > most ? m->nout : most;
	m->cost = in->op == SPYRE_OP_RRANK   ? TIME_RANK_CYCLES
		  : in->op >= SPYRE_OP_RSUM  ? TIME_REDUCE_CYCLES
		  : in->op >= SPYRE_OP_RECIP ? TIME_SPECIAL_CYCLES
					     : 1;
	m->cost = max(m->cost * CYCLE, most * LINK);
}

/* The place that a core's next burst takes: the one that is free first. */
static uint64_t *place(struct core *k)
{
	unsigned int i, first = 0;

	for (i = 1; i < PLACES; i++)
		if (k->flight[i] < k->flight[first])
			first = i;
	return &k->flight[first];
}

/* --- When can a process take its next step? --------------------------------------------------- */

static uint64_t ready(struct sim *s, unsigned int c, struct proc *p)
{
	struct core *k = s->core[c];
	const struct ref_insn *in;
	unsigned int x = p->corelet, i;
	struct fifo *f = NULL;
	struct moves m;
	uint64_t t = max(p->t, s->clock);

	if (p->port) {
		if (!k->nloads[x])
			return NEVER;
		f = &k->fifo[x][k->load[x][0].fifo];
		if (!f->count)
			return NEVER;
		return max(max(t, k->load[x][0].at), words_there(f, 1));
	}
	if (!p->live)
		return NEVER;
	in = ref_seq_insn(&p->seq);
	switch (in->op) {
	case SPYRE_OP_NOP:
	case SPYRE_OP_MVLOOPCNT:
	case SPYRE_OP_ADDIMM:
	case SPYRE_OP_ADDREG:
	case SPYRE_OP_MVREG:
	case SPYRE_OP_L3_STC:
		return t;
	case SPYRE_OP_RETURN:
	case SPYRE_OP_SYNC_SEND:
		/* PT waits for what it loads. */
		if (p->kind != SPYRE_UNIT_PT)
			return t;
		return k->nloads[x] ? NEVER : max(t, k->p[REF_UNITS + x].t);
	case SPYRE_OP_SYNC_WAIT:
		return k->tag[in->a].count < in->n ? NEVER : max(t, k->tag[in->a].seen[in->n - 1]);
	case SPYRE_OP_L3_LDU:
	case SPYRE_OP_L3_STU:
		return max(t, *place(k));
	case SPYRE_OP_L3_LDM:
		if (!s->alone && !p->released && (s->group[in->d].arrived >> c & 1))
			return NEVER;
		return p->released ? t : max(t, k->mflight[k->nmflight % MULTICASTS]);
	case SPYRE_OP_LD:
	case SPYRE_OP_PT_PSOUT:
		f = out_fifo(s, c, x, in->d);
		return f->count < SPYRE_FIFO_DEPTH ? t : NEVER;
	case SPYRE_OP_PT_LDW:
		return k->nloads[x] == 8 ? NEVER : max(t, k->end_of_load[x][k->issued[x] % 8]);
	case SPYRE_OP_PT_MM:
		if (k->tile_fmt[x][in->a] != in->b + 1u)
			return t;
		if (k->pending[x][in->a])
			return NEVER;
		t = max(t, k->tile_ready[x][in->a]);
		/* fall through */
	case SPYRE_OP_ST:
	case SPYRE_OP_PT_PSIN:
		f = &k->fifo[x][in->d];
		return f->count ? max(t, words_there(f, 1)) : NEVER;
	}
	/* One time of a vector instruction: all its words, and room for all it gives. */
	vector_moves(in, &m);
	for (i = 0; i < m.nin; i++) {
		f = &k->fifo[x][m.fifo[i]];
		if (f->count < m.words[i])
			return NEVER;
		t = max(t, words_there(f, m.words[i]));
	}
	if (m.nout && SPYRE_FIFO_DEPTH - out_fifo(s, c, x, m.out)->count < m.nout)
		return NEVER;
	return t;
}

/* --- Steps ---------------------------------------------------------------------------------- */

static void retire(struct proc *p)
{
	ref_seq_retire(&p->seq);
	p->word = 0;
}

static void fail(struct sim *s, struct proc *p, enum spyre_prog_err code)
{
	p->live = false;
	s->res->errors++;
	s->res->code = code;
}

static void send(struct sim *s, unsigned int c, struct proc *p, const struct ref_insn *in)
{
	uint32_t mask = in->imm && !s->alone ? (uint32_t)in->imm : 1u << c;
	/* Where a core stands for all, those of all come to it. */
	unsigned int times = s->alone && ((uint32_t)in->imm & ~(1u << c)) ? s->like : 1;
	unsigned int o, at, i;

	p->t += CYCLE;
	for (o = 0; o < REF_CORES; o++) {
		struct tag *g;
		uint64_t t = max(p->t, p->last) +
			     (o == c && times == 1 ? TIME_TAG_CYCLES : TIME_TAG_FAR_CYCLES) * CYCLE;

		if (!(mask >> o & 1))
			continue;
		g = &s->core[o]->tag[in->a];
		for (i = 0; i < times; i++) {
			if (g->count == g->cap) {
				g->cap = 2 * g->cap + 8;
				g->seen = realloc(g->seen, g->cap * sizeof(*g->seen));
				if (!g->seen)
					abort();
			}
			for (at = g->count++; at && g->seen[at - 1] > t; at--)
				g->seen[at] = g->seen[at - 1];
			g->seen[at] = t;
		}
	}
	retire(p);
}

/* Cores that are alike ask one after the other: the first one's end, and at the end of the job the
 * others' lag. */
static uint64_t serve(struct sim *s, uint64_t *free, uint64_t t, uint64_t work, unsigned int times)
{
	t = max(t, *free);
	*free = t + work * times;
	s->tail = max(s->tail, work * (times - 1));
	return t + work;
}

/* n words through memory for so many alike; half: on each port. */
static uint64_t memory(struct sim *s, uint64_t t, unsigned int n, unsigned int times,
		       const unsigned int half[2])
{
	uint64_t done = serve(s, &s->mem_free, t, n * OF_WORD(TIME_HMI_BYTES_S), times);
	unsigned int h;

	for (h = 0; h < 2; h++)
		if (half[h]) {
			done = max(done, serve(s, &s->port_free[h], t,
					       n * OF_WORD(TIME_PORT_BYTES_S), half[h]));
			s->res->port[h] += n * half[h];
		}
	return done;
}

/* Words of a load on their way to a core's LX, behind those of earlier loads. */
static void arrive(struct core *k, struct proc *p, uint64_t *flight, uint64_t sent, unsigned int n)
{
	k->in_free = max(k->in_free + n * OF_WORD(TIME_MNI_IN_BYTES_S), sent + NS(TIME_LOAD_NS));
	*flight = k->in_free;
	p->last = max(p->last, k->in_free);
}

static void multicast(struct sim *s, unsigned int c, struct proc *p, const struct ref_insn *in)
{
	struct core *k = s->core[c];
	struct group *g = &s->group[in->d];
	uint32_t members = s->job->groups[in->d];
	unsigned int half[2], n, times, i;

	if (s->alone) {
		/* As many groups as those alike form. */
		n = (unsigned int)__builtin_popcount(members);
		times = (s->like + n - 1) / n;
		half[0] = (s->half[0] + n - 1) / n;
		half[1] = (s->half[1] + n - 1) / n;
		g->done = memory(s, p->t, in->n, times, half);
		s->res->rd_bytes += in->n * 128ull * times;
	} else if (!p->released) {
		g->arrived |= 1u << c;
		g->start = max(g->start, p->t);
		g->n[c] = in->n;
		if (g->arrived != members)
			return;
		for (i = 0; i < REF_CORES; i++) {
			if ((members >> i & 1) && g->n[i] != g->n[__builtin_ctz(members)]) {
				fail(s, &s->core[i]->p[SPYRE_UNIT_L3LU], SPYRE_PE_GROUP_MISMATCH);
				return;
			}
		}
		half[0] = (members & 0xffff) != 0;
		half[1] = members >> 16 != 0;
		g->done = memory(s, g->start, in->n, 1, half);
		s->res->rd_bytes += in->n * 128ull;
		g->arrived = 0;
		for (i = 0; i < REF_CORES; i++)
			if (members >> i & 1)
				s->core[i]->p[SPYRE_UNIT_L3LU].released = true;
	}
	p->released = false;
	s->res->in[c] += in->n;
	s->res->work[c][SPYRE_UNIT_L3LU].bytes += in->n * 128ull;
	arrive(k, p, &k->mflight[k->nmflight++ % MULTICASTS], g->done, in->n);
	p->t = max(p->t, g->start) + CYCLE;
	retire(p);
}

/* What the process has waited for when it takes a step, and how many words the step moves. */
static void waited(struct sim *s, unsigned int c, struct proc *p, struct ref_work *w)
{
	struct core *k = s->core[c];
	uint64_t wait = s->clock - p->t, there = 0;
	unsigned int x = p->corelet, i;
	const struct ref_insn *in;
	struct moves m;

	if (p->port) {
		/* It has nothing to do before it is given a load. */
		there = p->word ? 0 : k->load[x][0].at;
		w->starved += there > p->t ? s->clock - there : wait;
		w->bytes += 128;
		return;
	}
	in = ref_seq_insn(&p->seq);
	switch (in->op) {
	case SPYRE_OP_RETURN:
		w->starved += wait;
		w->blocked += p->last > s->clock ? p->last - s->clock : 0;
		w->insns = p->seq.retired + 1;
		return;
	case SPYRE_OP_L3_LDU:
	case SPYRE_OP_L3_STU:
	case SPYRE_OP_L3_STC:
		w->blocked += wait;
		w->bytes += in->n * 128ull;
		return;
	case SPYRE_OP_L3_LDM:
		/* Twice: for its place, then for the others. */
		*(p->released ? &w->starved : &w->blocked) += wait;
		return;
	case SPYRE_OP_LD:
	case SPYRE_OP_PT_PSOUT:
		w->blocked += wait;
		w->bytes += 128;
		return;
	case SPYRE_OP_ST:
	case SPYRE_OP_PT_PSIN:
	case SPYRE_OP_PT_MM:
		w->starved += wait;
		w->bytes += 128;
		return;
	case SPYRE_OP_PT_LDW:
		w->blocked += wait;
		return;
	}
	if (in->op < SPYRE_OP_MOV) {
		w->starved += wait;
		return;
	}
	vector_moves(in, &m);
	for (i = 0; i < m.nin; i++) {
		there = max(there, words_there(&k->fifo[x][m.fifo[i]], m.words[i]));
		w->bytes += m.words[i] * 128;
	}
	w->bytes += m.nout * 128;
	there = there > p->t ? there - p->t : 0;
	w->starved += there;
	w->blocked += wait - there;
}

static void port_step(struct core *k, struct proc *p)
{
	unsigned int x = p->corelet;
	struct load *l = &k->load[x][0];

	read_words(&k->fifo[x][l->fifo], 1);
	p->t += LINK;
	if (++p->word < 64)
		return;
	p->word = 0;
	k->tile_ready[x][l->tile] = p->t;
	k->pending[x][l->tile]--;
	k->end_of_load[x][k->ended[x]++ % 8] = p->t;
	memmove(l, l + 1, --k->nloads[x] * sizeof(*l));
}

static void step(struct sim *s, unsigned int c, struct proc *p)
{
	struct core *k = s->core[c];
	const struct ref_insn *in = ref_seq_insn(&p->seq);
	unsigned int x = p->corelet, i;
	struct moves m;
	uint64_t at;

	if (p->port) {
		port_step(k, p);
		return;
	}
	switch (in->op) {
	case SPYRE_OP_RETURN:
		p->live = false;
		s->end = max(s->end, max(p->t, p->last));
		return;
	case SPYRE_OP_NOP:
	case SPYRE_OP_MVLOOPCNT:
	case SPYRE_OP_ADDIMM:
	case SPYRE_OP_ADDREG:
	case SPYRE_OP_MVREG:
		p->t += CYCLE;
		retire(p);
		return;
	case SPYRE_OP_SYNC_SEND:
		send(s, c, p, in);
		return;
	case SPYRE_OP_SYNC_WAIT:
		k->tag[in->a].count -= in->n;
		memmove(k->tag[in->a].seen, k->tag[in->a].seen + in->n,
			k->tag[in->a].count * sizeof(uint64_t));
		p->t += CYCLE;
		retire(p);
		return;
	case SPYRE_OP_L3_LDU:
		s->res->in[c] += in->n;
		arrive(k, p, place(k),
		       memory(s, p->t, in->n, s->like,
			      s->alone ? s->half : (const unsigned int[]){ c < 16, c >= 16 }),
		       in->n);
		s->res->rd_bytes += in->n * 128ull * s->like;
		p->t += CYCLE;
		retire(p);
		return;
	case SPYRE_OP_L3_LDM:
		multicast(s, c, p, in);
		return;
	case SPYRE_OP_L3_STU:
		at = memory(s, p->t, in->n, s->like,
			    s->alone ? s->half : (const unsigned int[]){ c < 16, c >= 16 });
		k->out_free = max(k->out_free, p->t) + in->n * OF_WORD(TIME_MNI_OUT_BYTES_S);
		s->res->out[c] += in->n;
		p->t = k->out_free;
		at = max(at, p->t) + NS(TIME_STORE_NS);
		*place(k) = at;
		p->last = max(p->last, at);
		s->res->wr_bytes += in->n * 128ull * s->like;
		retire(p);
		return;
	case SPYRE_OP_L3_STC:
		p->t += in->n * OF_WORD(TIME_MNI_OUT_BYTES_S);
		s->res->out[c] += in->n;
		p->last = max(p->last, p->t + TIME_STC_CYCLES * CYCLE);
		retire(p);
		return;
	case SPYRE_OP_LD:
	case SPYRE_OP_PT_PSOUT:
		p->t += LINK;
		write_word(out_fifo(s, c, x, in->d),
			   p->t + (in->op == SPYRE_OP_LD ? TIME_LX_CYCLES * CYCLE
							 : TIME_LINK_CYCLES * CYCLE));
		if (++p->word == (in->op == SPYRE_OP_LD ? 1u : 2u) * in->n)
			retire(p);
		return;
	case SPYRE_OP_ST:
	case SPYRE_OP_PT_PSIN:
		read_words(&k->fifo[x][in->d], 1);
		p->t += LINK;
		if (++p->word == (in->op == SPYRE_OP_ST ? 1u : 2u) * in->n)
			retire(p);
		return;
	case SPYRE_OP_PT_MM:
		if (k->tile_fmt[x][in->a] != in->b + 1u) {
			fail(s, p, SPYRE_PE_TILE);
			return;
		}
		read_words(&k->fifo[x][in->d], 1);
		p->t += TIME_MM_BEATS * BEAT;
		s->res->pt_macs += 1024ull / ref_bits(in->b) * SPYRE_LANES * s->like;
		if (++p->word == in->n)
			retire(p);
		return;
	case SPYRE_OP_PT_LDW:
		k->load[x][k->nloads[x]++] = (struct load){ in->a, in->d, p->t };
		k->issued[x]++;
		k->tile_fmt[x][in->a] = in->b + 1u;
		k->pending[x][in->a]++;
		p->t += CYCLE;
		retire(p);
		return;
	}
	vector_moves(in, &m);
	for (i = 0; i < m.nin; i++)
		read_words(&k->fifo[x][m.fifo[i]], m.words[i]);
	p->t += m.cost;
	if (m.out == SPYRE_FIFO_RING)
		s->res->ring[c][x] += m.nout;
	for (i = 0; i < m.nout; i++)
		write_word(out_fifo(s, c, x, m.out), p->t + TIME_LINK_CYCLES * CYCLE);
	if (++p->word == in->n)
		retire(p);
}

/* --- Jobs ----------------------------------------------------------------------------------- */

/* Alike: the same programs, and what can become a loop count starts with the same value. */
static bool alike(const struct ref_job *job, unsigned int a, unsigned int b)
{
	unsigned int i, r;

	for (i = 0; i < REF_UNITS; i++) {
		const struct ref_unit *x = &job->unit[a][i], *y = &job->unit[b][i];

		if (x->text != y->text)
			return false;
		for (r = SPYRE_LCR0; x->text && r < SPYRE_REGS; r++)
			if (x->reg[r] != y->reg[r])
				return false;
	}
	return true;
}

/* Sends to other cores go to all of the job's, so that each core meets the same. */
static bool sends_to_all(const struct ref_job *job, unsigned int c)
{
	const struct ref_insn *in;
	unsigned int i;

	for (i = 0; i < REF_UNITS; i++)
		for (in = job->unit[c][i].text; in && in->op != SPYRE_OP_RETURN; in++)
			if (in->op == SPYRE_OP_SYNC_SEND && in->imm &&
			    (uint32_t)in->imm != job->cores)
				return false;
	return true;
}

static struct core *new_core(const struct ref_job *job, unsigned int c)
{
	struct core *k = calloc(1, sizeof(*k));
	unsigned int i;

	if (!k)
		abort();
	for (i = 0; i < REF_PROCS; i++) {
		struct proc *p = &k->p[i];

		if (i >= REF_UNITS) {
			/* A port that has nothing to load never steps; it needs a program counter
			 * all the same. */
			p->port = true;
			p->corelet = i - REF_UNITS;
			p->seq.text = job->text;
		} else if (job->unit[c][i].text) {
			ref_seq_start(&p->seq, &job->unit[c][i]);
			p->live = true;
			p->kind = job->unit[c][i].kind;
			p->corelet = job->unit[c][i].corelet;
		}
	}
	return k;
}

static void look(struct sim *s, unsigned int c)
{
	unsigned int i;

	for (i = 0; i < REF_PROCS; i++)
		s->core[c]->p[i].when = ready(s, c, &s->core[c]->p[i]);
}

bool ref_time(const struct ref_job *job, struct ref_time *res)
{
	struct sim s = { .job = job, .res = res, .alone = true, .like = 0 };
	unsigned int c, i, first = (unsigned int)__builtin_ctz(job->cores);
	uint64_t ns, low;
	bool live = false, left = false;

	memset(res, 0, sizeof(*res));
	for (c = 0; c < REF_CORES; c++) {
		if (!(job->cores >> c & 1))
			continue;
		s.alone = s.alone && alike(job, first, c) && sends_to_all(job, c);
		s.like++;
		s.half[c / 16]++;
	}
	s.like = s.alone ? s.like : 1;
	for (c = 0; c < REF_CORES; c++)
		if (s.alone ? c == first : job->cores >> c & 1)
			s.core[c] = new_core(job, c);
	for (c = 0; c < REF_CORES; c++)
		if (s.core[c])
			look(&s, c);
	for (;;) {
		uint64_t t = NEVER;
		struct proc *p = NULL;
		unsigned int at = 0;
		uint8_t op;

		/* On equal times the lowest core, then the lowest unit. */
		for (c = 0; c < REF_CORES; c++)
			for (i = 0; s.core[c] && i < REF_PROCS; i++)
				if (s.core[c]->p[i].when < t)
					t = s.core[c]->p[i].when, p = &s.core[c]->p[i], at = c;
		if (!p)
			break;
		s.clock = t;
		op = p->port ? (uint8_t)SPYRE_OP_NOP : ref_seq_insn(&p->seq)->op;
		waited(&s, at, p, &res->work[at][p - s.core[at]->p]);
		p->t = t;
		step(&s, at, p);
		res->work[at][p - s.core[at]->p].busy += p->t - t;
		/* Who may now be able to: units of this core, ring neighbours, whom it tells. */
		for (c = 0; c < REF_CORES; c++)
			if (s.core[c] && (c == at || op == SPYRE_OP_SYNC_SEND ||
					  op == SPYRE_OP_L3_LDM || op >= SPYRE_OP_MOV))
				look(&s, c);
	}
	for (c = 0; c < REF_CORES; c++) {
		for (i = 0; s.core[c] && i < REF_PROCS; i++)
			live |= s.core[c]->p[i].live;
		for (i = 0; s.core[c] && i < 2 * SPYRE_FIFOS; i++)
			left |= s.core[c]->fifo[i % 2][i / 2].count;
		for (i = 0; s.core[c] && i < SPYRE_TAGS; i++) {
			left |= s.core[c]->tag[i].count;
			free(s.core[c]->tag[i].seen);
		}
		free(s.core[c]);
	}
	for (c = first + 1; s.alone && c < REF_CORES; c++) {
		if (!(job->cores >> c & 1))
			continue;
		memcpy(res->work[c], res->work[first], sizeof(res->work[c]));
		memcpy(res->ring[c], res->ring[first], sizeof(res->ring[c]));
		res->in[c] = res->in[first];
		res->out[c] = res->out[first];
	}
	/* No job is faster than its bytes through the memory and the turning between reading and
	 * writing. */
	low = res->rd_bytes < res->wr_bytes ? res->rd_bytes : res->wr_bytes;
	ns = (res->rd_bytes + res->wr_bytes) / (TIME_HMI_BYTES_S / 1000000000) +
	     low * TIME_TURN_FS_BYTE / 1000000;
	res->cycles = (max(s.end + s.tail, NS(ns)) + NS(TIME_JOB_NS)) / CYCLE + 1;
	if (res->errors) {
		res->status = SPYRE_ERR_PROGRAM;
	} else if (live) {
		res->status = SPYRE_ERR_DEADLOCK;
	} else if (left) {
		res->status = SPYRE_ERR_PROGRAM;
		res->code = SPYRE_PE_FIFO_LEFT;
	}
	return res->status == SPYRE_OK;
}
