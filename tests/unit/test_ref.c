// SPDX-License-Identifier: MIT
/*
 * Random programs on the card's model and on the reference: equal bits wherever they wrote, equal
 * status, equal modelled cycles, for several numbers of threads and every vector width; every
 * eighth program on a card that sums in DL16.
 *
 *	SPYRE_REF_SEED=N    first program (else 1)
 *	SPYRE_REF_COUNT=N   programs (else until enough instructions were executed)
 *	SPYRE_REF_INSNS=N   instructions to execute (else a million)
 *	SPYRE_REF_EVENTS=N  length of programs, to make a failing one smaller
 *	SPYRE_REF_SAVE=FILE the last program's container, for spyre-dis
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <spyre/isa_table.h>

#include "ref.h"
#include "ref_gen.h"
#include "ref_num.h"
#include "soc_int.h"
#include "test_soc_env.h"

static uint64_t number(const char *name, uint64_t otherwise)
{
	const char *s = getenv(name);

	return s && *s ? strtoull(s, NULL, 0) : otherwise;
}

/* What the programs read: numbers of modest size, any bits, and runs of the same. */
static void fill_input(uint8_t *p, uint64_t seed)
{
	uint64_t r = seed ^ 0x5851f42d4c957f2dull;
	uint32_t i, k, kind = 0, v;

	for (i = 0; i < REF_IN_BYTES; i += 4) {
		if (i % 128 == 0) {
			r = r * 6364136223846793005ull + 1442695040888963407ull;
			kind = (uint32_t)(r >> 61);
		}
		r = r * 6364136223846793005ull + 1442695040888963407ull;
		v = (uint32_t)(r >> 32);
		switch (kind) {
		case 0: /* any bits */
		case 1:
			break;
		case 2: /* fp32 */
		case 3:
			v = (v & 0x807fffff) | (118 + (uint32_t)(r >> 8) % 20) << 23;
			break;
		case 4: /* 16-bit formats: exponents around 1 in each of them */
			v = (v & 0x83ff83ff) | 0x3c003c00;
			break;
		case 5:
			v = (v & 0x8fff8fff) | 0x38003800;
			break;
		case 6: /* small integers */
			v = (v & 0x00030003) - 0x00010001;
			break;
		default: /* alike */
			v = seed & 1 ? 0x3f803f80 : 0;
			break;
		}
		for (k = 0; k < 4; k++)
			p[i + k] = (uint8_t)(v >> (8 * k));
	}
}

struct bound {
	uint8_t op;
	double ulp;
};

/* Documentation/isa.rst, and half a place for the rounding of the reference. */
static const struct bound bounds[] = {
	{ SPYRE_OP_RECIP, 0.5 }, { SPYRE_OP_RSQRT, 1.5 }, { SPYRE_OP_SQRT, 0.5 },
	{ SPYRE_OP_EXP, 1.5 },	 { SPYRE_OP_LN, 1.5 },	  { SPYRE_OP_SIGMOID, 3 },
	{ SPYRE_OP_TANH, 2 },	 { SPYRE_OP_ERF, 2.5 },	  { SPYRE_OP_GELU, 6 },
};

static bool within(uint8_t op, uint32_t got, uint32_t want)
{
	int64_t a = got & 0x7fffffff, b = want & 0x7fffffff, d;
	unsigned int i;

	if (ref_is_nan(got) || ref_is_nan(want))
		return got == want;
	a = got >> 31 ? -a : a;
	b = want >> 31 ? -b : b;
	d = a > b ? a - b : b - a;
	for (i = 0; bounds[i].op != op; i++)
		;
	return (double)d <= bounds[i].ulp + 0.5;
}

/*
 * Narrower results: numbers that are a few fp32 codes apart have at most one rounding boundary
 * between them, so that their codes are equal or neighbours; infinity and the one NaN of DL16 are
 * neighbours of the largest number.
 */
static bool near_code(uint32_t got, uint32_t want, unsigned int bits)
{
	uint32_t top = (1u << (bits - 1)) - 1;
	int32_t a = (int32_t)(got & top), b = (int32_t)(want & top);

	a = got >> (bits - 1) & 1 ? -a : a;
	b = want >> (bits - 1) & 1 ? -b : b;
	return abs(a - b) <= 1;
}

static bool within_fmt(uint8_t op, unsigned int fmt, uint32_t got, uint32_t want)
{
	switch (fmt) {
	case SPYRE_IEEE_FP32:
	case SPYRE_IEEE_INT32: /* the lane as it is */
		return within(op, got, want);
	case SPYRE_SEN18F_FP24:
		return !(got & 0xff) && near_code(got >> 8, want >> 8, 24);
	default:
		return near_code(got & 0xffff, want & 0xffff, 16) &&
		       near_code(got >> 16, want >> 16, 16);
	}
}

static bool same_special(const struct ref_program *p, const uint8_t *got, const uint8_t *want)
{
	unsigned int i, c;
	uint32_t k, g, w;

	for (c = 0; c < p->clones; c++) {
		for (i = 0; i < p->nspecials; i++) {
			for (k = 0; k < p->special[i].bytes; k += 4) {
				memcpy(&g, got + c * p->out_stride + p->special[i].offset + k, 4);
				memcpy(&w, want + c * p->out_stride + p->special[i].offset + k, 4);
				if (!within_fmt(p->special[i].op, p->special[i].fmt, g, w)) {
					print_error(
						"special function %02x to format %u: %08x, "
						"expected %08x\n",
						p->special[i].op, p->special[i].fmt, g, w);
					return false;
				}
			}
		}
	}
	return true;
}

/* Offset of the first lane that differs, shown; -1 if none does. */
static int64_t first_difference(const char *what, const uint8_t *got, const uint8_t *want,
				uint64_t n)
{
	uint32_t g, w;
	uint64_t i;

	if (!memcmp(got, want, n))
		return -1;
	for (i = 0;; i += 4) {
		memcpy(&g, got + i, 4);
		memcpy(&w, want + i, 4);
		if (g != w) {
			print_error("%s + %llx: %08x, expected %08x\n", what, (unsigned long long)i,
				    g, w);
			return (int64_t)i;
		}
	}
}

struct variant {
	unsigned int threads;
	const struct vec_ops *vec;
	const struct pt_ops *pt;
};

/* Every width and several numbers of threads, not all with all. */
static unsigned int variants(struct variant *v)
{
	const struct vec_ops *const *vec = spyre_vec_ops_all();
	const struct pt_ops *const *pt = spyre_pt_ops_all();
	unsigned int n = 0, i, nv, np;

	for (nv = 0; vec[nv]; nv++)
		;
	for (np = 0; pt[np]; np++)
		;
	for (i = 0; i < nv || i < np; i++)
		v[n++] = (struct variant){ i % 2 ? 3 : 1, vec[i % nv], pt[i % np] };
	if (n % 2)
		v[n++] = (struct variant){ 3, vec[nv - 1], pt[np - 1] };
	return n;
}

/* env_map() for programs one after another: memory that is long enough is cleared, not mapped anew.
 */
static void map(struct env *e, unsigned int s, uint64_t len, uint64_t *room)
{
	if (*room < len) {
		env_map(e, s, len);
		*room = len;
		return;
	}
	memset(e->seg[s], 0, len);
	e->len[s] = len;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* What the model has counted of the last job against the reference. Returns where they differ, or
 * NULL. */
static const char *same_counts(const struct env *e, const struct ref_time *t, uint32_t cores)
{
	static char why[200];
	const struct counts *n = e->soc->newest->times->counts;
	uint32_t i, c, k, seen = 0;

	for (i = 0; i < 2; i++)
		if (n->port[i].bytes != t->port[i] * SPYRE_STICK)
			return "bytes through the ports of the HMI differ";
	for (i = 0; i < n->ncores; i++) {
		for (c = 0; c < REF_CORES; c++) {
			const struct core_counts *have = &n->core[i];
			const struct unit_counts *u = have->unit, none = { 0 };

			if (!(have->alike >> c & 1))
				continue;
			if (seen >> c & 1)
				return "a core is counted twice";
			seen |= 1u << c;
			if (have->link[SPYRE_LINK_IN].bytes != t->in[c] * SPYRE_STICK ||
			    have->link[SPYRE_LINK_OUT].bytes != t->out[c] * SPYRE_STICK ||
			    have->link[SPYRE_LINK_CW].bytes != t->ring[c][0] * SPYRE_STICK ||
			    have->link[SPYRE_LINK_CCW].bytes != t->ring[c][1] * SPYRE_STICK) {
				snprintf(why, sizeof(why), "core %u: bytes of links differ", c);
				return why;
			}
			for (k = 0; k < REF_PROCS; k++) {
				const struct ref_work *w = &t->work[c][k];
				const struct unit_counts *g =
					have->units >> k & 1 ? u++ : &none;

				if (g->spent[SPYRE_BUSY] == w->busy &&
				    g->spent[SPYRE_STARVED] == w->starved &&
				    g->spent[SPYRE_BLOCKED] == w->blocked && g->bytes == w->bytes &&
				    g->insns == w->insns)
					continue;
				snprintf(why, sizeof(why),
					 "core %u unit %u: model busy %llu starved %llu blocked "
					 "%llu bytes %llu instructions %llu; reference %llu %llu "
					 "%llu %llu %llu",
					 c, k, (unsigned long long)g->spent[SPYRE_BUSY],
					 (unsigned long long)g->spent[SPYRE_STARVED],
					 (unsigned long long)g->spent[SPYRE_BLOCKED],
					 (unsigned long long)g->bytes, (unsigned long long)g->insns,
					 (unsigned long long)w->busy,
					 (unsigned long long)w->starved,
					 (unsigned long long)w->blocked,
					 (unsigned long long)w->bytes,
					 (unsigned long long)w->insns);
				return why;
			}
		}
	}
	return seen == cores ? NULL : "not all cores are counted";
}

/* One program on both. Returns why they differ, or NULL. */
static const char *compare(const struct ref_program *p, struct env *e, const struct variant *v,
			   unsigned int nv, uint64_t seed, struct ref_result *res, double spent[4],
			   struct ref_seen *seen)
{
	static char why[400];
	static uint64_t room[16][3];
	struct ref_job *job = ref_job_decode(p->container, p->size, p->symbols);
	struct ref_mem mem = { 0 };
	unsigned int i, c;
	const char *ret = NULL;
	double t = seconds();
	struct ref_time time;
	int64_t at;
	bool ends;

	mem.len[REF_SEG_IN] = REF_IN_BYTES;
	mem.len[REF_SEG_RW] = p->rw_bytes;
	mem.len[REF_SEG_OUT] = p->out_bytes;
	for (i = 0; i < 3; i++)
		mem.seg[i] = calloc(1, mem.len[i]);
	fill_input(mem.seg[REF_SEG_IN], seed);
	job->accumulate_dl16 = seed % 8 == 2;
	job->seen = seen;
	ref_run(job, &mem, seed, res);
	spent[0] += seconds() - t;
	t = seconds();
	ends = ref_time(job, &time);
	spent[3] += seconds() - t;
	if (ends != (res->status == SPYRE_OK))
		ret = "the two halves of the reference disagree on whether it ends";
	if (res->status != SPYRE_OK) {
		snprintf(why, sizeof(why), "reference: status %u code %u core %d unit %x pc %u",
			 res->status, res->code, res->core, (unsigned int)res->unit, res->pc);
		ret = why;
	}
	for (i = 0; i < nv && !ret; i++) {
		for (c = 0; c < 3; c++)
			map(&e[i], c, mem.len[c], &room[i][c]);
		memcpy(e[i].seg[REF_SEG_IN], mem.seg[REF_SEG_IN], REF_IN_BYTES);
		env_load(&e[i], p->container, p->size);
		e[i].soc->vec = v[i].vec;
		e[i].soc->pt = v[i].pt;
		e[i].soc->cfg.accumulate_dl16 = job->accumulate_dl16;
		/* Results do not depend on the order of units: nothing in them races. */
		e[i].soc->cfg.check_races = !i && seed % 4 == 0;
		t = seconds();
		env_run(&e[i], p->symbols, p->nsymbols);
		spent[1] += seconds() - t;
		if (e[i].rb.status != res->status) {
			snprintf(why, sizeof(why),
				 "%s: status %u code %u core %d unit %x pc %u, stuck %u (core %u "
				 "unit %x waits %u "
				 "number %u pc %u)",
				 v[i].vec->name, e[i].rb.status, e[i].rb.err_code,
				 (int16_t)e[i].rb.err_core, e[i].rb.err_unit, e[i].rb.err_pc,
				 e[i].rb.nstuck, e[i].rb.stuck[0].core, e[i].rb.stuck[0].unit,
				 e[i].rb.stuck[0].waits, e[i].rb.stuck[0].number,
				 e[i].rb.stuck[0].pc);
			ret = why;
			break;
		}
		at = first_difference("scratch", e[i].seg[REF_SEG_RW], mem.seg[REF_SEG_RW],
				      p->rw_bytes);
		if (at < 0)
			for (c = 0; c < p->clones && at < 0; c++)
				at = first_difference(
					"dump",
					e[i].seg[REF_SEG_OUT] + c * p->out_stride + REF_OUT_AT,
					mem.seg[REF_SEG_OUT] + c * p->out_stride + REF_OUT_AT,
					p->out_stride - REF_OUT_AT);
		if (at >= 0) {
			snprintf(why, sizeof(why), "%s and %s, %u threads: memory differs",
				 v[i].vec->name, v[i].pt->name, v[i].threads);
			ret = why;
		} else if (!same_special(p, e[i].seg[REF_SEG_OUT], mem.seg[REF_SEG_OUT])) {
			ret = "special functions beyond their bound";
		} else if (e[i].time.cycles != time.cycles || e[i].time.rd_bytes != time.rd_bytes ||
			   e[i].time.wr_bytes != time.wr_bytes ||
			   e[i].time.pt_macs != time.pt_macs) {
			snprintf(why, sizeof(why),
				 "model %llu cycles, %llu bytes read, %llu written, %llu macs; "
				 "reference %llu, %llu, "
				 "%llu, %llu",
				 (unsigned long long)e[i].time.cycles,
				 (unsigned long long)e[i].time.rd_bytes,
				 (unsigned long long)e[i].time.wr_bytes,
				 (unsigned long long)e[i].time.pt_macs,
				 (unsigned long long)time.cycles, (unsigned long long)time.rd_bytes,
				 (unsigned long long)time.wr_bytes,
				 (unsigned long long)time.pt_macs);
			ret = why;
		} else {
			ret = same_counts(&e[i], &time, job->cores);
		}
	}
	for (i = 0; i < 3; i++)
		free(mem.seg[i]);
	ref_job_free(job);
	return ret;
}

/* The shape of program number seed. */
static void generate(struct ref_program *p, uint64_t seed, unsigned int events)
{
	unsigned int cores = 1 + seed % 4, clones = 0;

	if (seed % 10 == 9)
		clones = 2 + seed / 10 % 7;
	else if (seed % 40 == 20)
		cores = 32;
	ref_generate(p, seed, cores, clones, events, cores == 32 ? 3000 : 20000);
}

static void save(const struct ref_program *p)
{
	const char *name = getenv("SPYRE_REF_SAVE");
	FILE *f = name ? fopen(name, "wb") : NULL;

	if (f) {
		fwrite(p->container, 1, p->size, f);
		fclose(f);
	}
}

/* --- What of the table was executed ----------------------------------------------------------- */

#define SEEN_MIN 1u

struct coverage {
	unsigned int things, missing;
	uint64_t least;
};

static void cover(struct coverage *c, uint64_t n, const char *op, const char *what,
		  const char *which)
{
	c->things++;
	c->least = n < c->least ? n : c->least;
	if (n >= SEEN_MIN)
		return;
	c->missing++;
	print_error("%s, %s %s: executed %llu times, expected %u at least\n", op, what, which,
		    (unsigned long long)n, SEEN_MIN);
}

/* Every kind of operand that the checker lets pass. */
static void cover_operand(struct coverage *c, const struct isa_op *o, const struct isa_field *f,
			  const uint64_t *seen)
{
	unsigned int fmt;
	char name[40];

	for (fmt = 0; fmt < SPYRE_FORMATS; fmt++) {
		unsigned int lanes = isa_formats[fmt].lanes;

		if (lanes > SPYRE_LANES && !(o->flags & ISA_RECAST))
			continue;
		cover(c, seen[fmt], o->name, f->name, isa_formats[fmt].name);
		if (lanes >= SPYRE_LANES)
			continue;
		snprintf(name, sizeof(name), "half of %s", isa_formats[fmt].name);
		cover(c, seen[fmt | SPYRE_FMT_HALF], o->name, f->name, name);
	}
	/* A special function's result is not exact: it leaves by a FIFO, to be compared. */
	if (f->kind != ISA_DST || o->cost != ISA_SPECIAL)
		cover(c, seen[REF_SEEN_V], o->name, f->name, "register");
	if (f->kind == ISA_DST)
		return;
	cover(c, seen[REF_SEEN_CONST], o->name, f->name, "constant");
	if (!(o->flags & ISA_IMM_OWN))
		cover(c, seen[REF_SEEN_IMM], o->name, f->name, "immediate");
}

/* Each operation by each of its units, with every format at each operand; each FIFO's two ends. */
static void check_seen(const struct ref_seen *s)
{
	struct coverage c = { .least = UINT64_MAX };
	unsigned int i, k;

	for (i = 0; i < ISA_OPS; i++) {
		const struct isa_op *o = isa_op(i);
		const struct isa_field *f;

		if (!o)
			continue;
		for (k = 0; k < SPYRE_UNITS; k++)
			if (o->units >> k & 1)
				cover(&c, s->unit[i][k], o->name, "unit", isa_unit_name(k));
		for (f = o->fields; f->kind; f++) {
			if (f->kind == ISA_DST || f->kind == ISA_SRC)
				cover_operand(&c, o, f,
					      s->operand[i][f->at == ISA_A ? 3 : f->at - ISA_B]);
			if (f->kind != ISA_FMT)
				continue;
			for (k = 0; k < SPYRE_FORMATS; k++) {
				if (!(f->max >> k & 1))
					continue;
				cover(&c, s->operand[i][0][k], o->name, f->name,
				      isa_formats[k].name);
				if (i == SPYRE_OP_PT_MM)
					cover(&c, s->operand[i][1][k], o->name, "summed in DL16",
					      isa_formats[k].name);
			}
		}
	}
	/* What the model takes from words to words. */
	for (i = 0; i < ISA_OPS; i++)
		for (k = 0; k < SPYRE_FORMATS && spyre_vec_ops_plain.stream[i]; k++)
			if (!isa_formats[k].integer && isa_formats[k].lanes == SPYRE_LANES)
				cover(&c, s->alike[i][k], isa_op(i)->name, "all FIFOs of",
				      isa_formats[k].name);
	for (i = 0; i < SPYRE_FIFOS; i++) {
		cover(&c, s->written[i], "FIFO", "written", isa_fifos[i].name);
		cover(&c, s->read[i], "FIFO", "read", isa_fifos[i].name);
	}
	print_message("%u pairs of operation and unit, operand or format, each executed %llu times "
		      "at least\n",
		      c.things, (unsigned long long)c.least);
	assert_int_equal(c.missing, 0);
}

/* All that ran on it: as many programs, and so many instructions. */
static void check_totals(struct env *e, uint64_t programs, uint64_t insns)
{
	struct spyre_soc_counters v;
	unsigned int c, k;

	spyre_soc_counters(e->soc, &v);
	assert_int_equal(v.jobs, programs);
	for (c = 0; c < REF_CORES; c++)
		for (k = 0; k < REF_PROCS; k++)
			insns -= v.core[c].unit[k].instructions;
	assert_int_equal(insns, 0);
}

static void test_random(void **state)
{
	static struct ref_seen seen;
	uint64_t seed = number("SPYRE_REF_SEED", 1), count = number("SPYRE_REF_COUNT", UINT64_MAX);
	uint64_t insns = number("SPYRE_REF_INSNS", 1000000), done = 0, words = 0, programs = 0;
	unsigned int events = (unsigned int)number("SPYRE_REF_EVENTS", 40), nv, i;
	struct variant v[16];
	struct env e[16];
	double spent[4] = { 0 };

	(void)state;
	nv = variants(v);
	for (i = 0; i < nv; i++)
		env_init(&e[i], v[i].threads);
	for (; programs < count && (count != UINT64_MAX || done < insns); seed++, programs++) {
		struct ref_program p;
		struct ref_result res;
		const char *why;

		spent[2] -= seconds();
		generate(&p, seed, events);
		spent[2] += seconds();
		save(&p);
		why = compare(&p, e, v, nv, seed, &res, spent, &seen);
		done += res.instructions;
		words += res.words;
		ref_program_free(&p);
		if (why) {
			/* The shortest beginning of the program that still differs. */
			unsigned int n = events;

			for (i = 1; i < n; i++) {
				generate(&p, seed, i);
				if (compare(&p, e, v, nv, seed, &res, spent, NULL)) {
					n = i;
				}
				ref_program_free(&p);
			}
			fail_msg("program %llu: %s\nrepeat: SPYRE_REF_SEED=%llu SPYRE_REF_COUNT=1 "
				 "SPYRE_REF_EVENTS=%u %s",
				 (unsigned long long)seed, why, (unsigned long long)seed, n,
				 "build/tests/unit/test_ref");
		}
	}
	print_message("%llu programs, %llu instructions, %llu words on %u variants; reference %.1f "
		      "s and %.1f s, "
		      "model %.1f s, generator %.1f s\n",
		      (unsigned long long)programs, (unsigned long long)done,
		      (unsigned long long)words, nv, spent[0], spent[3], spent[1], spent[2]);
	if (count == UINT64_MAX && insns >= 1000000)
		check_seen(&seen);
	for (i = 0; i < nv; i++) {
		check_totals(&e[i], programs, done);
		env_free(&e[i]);
	}
}

/* --- Programs that need not end --------------------------------------------------------------- */

/*
 * Spoils n instructions of a container: neighbours change places, one is left out, a wait takes
 * more. Whether it ends then depends on no data, so that races do not matter; addresses do, hence
 * only the time is compared.
 */
static void spoil(struct ref_program *p, uint64_t *rng, unsigned int n)
{
	struct spyre_job_header *h = p->container;
	struct spyre_insn *text = (void *)((uint8_t *)p->container + h->text_off), t;
	unsigned int tries;

	for (tries = 0; n && tries < 1000; tries++) {
		struct spyre_insn *i;

		*rng = *rng * 6364136223846793005ull + 1442695040888963407ull;
		i = &text[(*rng >> 33) % (h->ninsns - 1)];
		if (i->op < SPYRE_OP_ADDIMM || i->be)
			continue;
		switch (*rng >> 62) {
		case 0:
			if (i->op != SPYRE_OP_SYNC_WAIT && i->op != SPYRE_OP_SYNC_SEND &&
			    i->op < SPYRE_OP_LD)
				continue;
			*i = (struct spyre_insn){ .op = SPYRE_OP_NOP };
			break;
		case 1:
			if (i->op != SPYRE_OP_SYNC_WAIT)
				continue;
			i->n++;
			break;
		default:
			if (i[1].op < SPYRE_OP_ADDIMM || i[1].be ||
			    (i->op < SPYRE_OP_SYNC_SEND && i[1].op < SPYRE_OP_SYNC_SEND))
				continue;
			t = i[0];
			i[0] = i[1];
			i[1] = t;
			break;
		}
		n--;
	}
	spyreprog_seal(p->container, p->size);
}

static void test_spoiled(void **state)
{
	uint64_t seed = number("SPYRE_REF_SEED", 1), count = number("SPYRE_REF_COUNT", 400), i, rng;
	unsigned int ok = 0, dead = 0, bad = 0;
	struct env e;

	(void)state;
	env_init(&e, 1);
	for (i = seed; i < seed + count; i++) {
		struct spyre_soc_job req = {
			.bootaddr = ENV_SEGMENT(7),
			.mem = &e.mem,
			.context = 1,
		};
		struct ref_program p;
		struct ref_job *job;
		struct ref_time t;
		uint32_t status;

		generate(&p, i, 15);
		rng = i;
		spoil(&p, &rng, 1 + (unsigned int)(i % 3));
		save(&p);
		env_load(&e, p.container, p.size);
		req.symbols = ENV_SEGMENT(7) + e.len[7] - ENV_SYMBOLS;
		req.nsymbols = p.nsymbols;
		memcpy(e.seg[7] + e.len[7] - ENV_SYMBOLS, p.symbols, 8 * p.nsymbols);
		memset(&e.rb, 0, sizeof(e.rb));
		/* What is ready to run ends at its first checkpoint. */
		if (spyre_soc_prepare(e.soc, &req, &e.time, &e.rb)) {
			status = e.rb.status;
			e.stop_at = 1;
			spyre_soc_execute(e.soc, &e.rb);
			e.stop_at = 0;
			e.rb.status = status;
			e.rb.err_code = 0;
		}
		job = ref_job_decode(p.container, p.size, p.symbols);
		ref_time(job, &t);
		if (e.rb.status != t.status || (t.errors < 2 && e.rb.err_code != t.code) ||
		    (t.status == SPYRE_OK && e.time.cycles != t.cycles))
			fail_msg("program %llu: status %u code %u cycles %llu; reference %u, %u, "
				 "%llu\n"
				 "repeat: SPYRE_REF_SEED=%llu SPYRE_REF_COUNT=1 "
				 "build/tests/unit/test_ref",
				 (unsigned long long)i, e.rb.status, e.rb.err_code,
				 (unsigned long long)e.time.cycles, t.status, t.code,
				 (unsigned long long)t.cycles, (unsigned long long)i);
		ok += t.status == SPYRE_OK;
		dead += t.status == SPYRE_ERR_DEADLOCK;
		bad += t.status == SPYRE_ERR_PROGRAM;
		ref_job_free(job);
		ref_program_free(&p);
	}
	print_message("%u end, %u deadlock, %u fail\n", ok, dead, bad);
	assert_true(count < 400 || (ok > 10 && dead > 10 && bad > 10));
	env_free(&e);
}

/*
 * One local address of one unit is changed, so that at most this unit fails, on both in the same
 * way. What else the job computes may be a race then.
 */
static void test_addresses(void **state)
{
	uint64_t seed = number("SPYRE_REF_SEED", 1), count = number("SPYRE_REF_COUNT", 60), i, rng;
	unsigned int ok = 0, bad = 0, c, tries;
	struct env e;

	(void)state;
	env_init(&e, 3);
	for (i = seed; i < seed + count; i++) {
		struct spyre_job_header *h;
		struct ref_mem mem = { 0 };
		struct ref_result res;
		struct spyre_insn *in;
		struct ref_program p;
		struct ref_job *job;

		ref_generate(&p, i, 1 + i % 3, 0, 12, 5000);
		h = p.container;
		rng = i;
		for (tries = 0; tries < 1000; tries++) {
			rng = rng * 6364136223846793005ull + 1442695040888963407ull;
			in = (struct spyre_insn *)((uint8_t *)p.container + h->text_off) +
			     (rng >> 33) % h->ninsns;
			if (in->op != SPYRE_OP_MVREG || in->a > SPYRE_LAR0 + 3 ||
			    in->b != SPYRE_REG_NONE)
				continue;
			/* Misaligned, far beyond LX, or most often still right. */
			in->imm += rng >> 62 == 0   ? 64
				   : rng >> 62 == 1 ? SPYRE_LX_SIZE - 4096
						    : 128;
			break;
		}
		spyreprog_seal(p.container, p.size);
		save(&p);
		mem.len[REF_SEG_IN] = REF_IN_BYTES;
		mem.len[REF_SEG_RW] = p.rw_bytes;
		mem.len[REF_SEG_OUT] = p.out_bytes;
		for (c = 0; c < 3; c++) {
			mem.seg[c] = calloc(1, mem.len[c]);
			env_map(&e, c, mem.len[c]);
		}
		job = ref_job_decode(p.container, p.size, p.symbols);
		ref_run(job, &mem, i, &res);
		env_load(&e, p.container, p.size);
		env_run(&e, p.symbols, p.nsymbols);
		if (e.rb.status != res.status ||
		    (res.status && (e.rb.err_code != res.code || e.rb.err_core != res.core ||
				    e.rb.err_unit != res.unit || e.rb.err_pc != res.pc)))
			fail_msg("program %llu: status %u code %u core %d unit %x pc %u; reference "
				 "%u, %u, "
				 "%d, %x, %u\nrepeat: SPYRE_REF_SEED=%llu SPYRE_REF_COUNT=1 "
				 "build/tests/unit/test_ref",
				 (unsigned long long)i, e.rb.status, e.rb.err_code,
				 (int16_t)e.rb.err_core, e.rb.err_unit, e.rb.err_pc, res.status,
				 res.code, res.core, (unsigned int)res.unit, res.pc,
				 (unsigned long long)i);
		ok += res.status == SPYRE_OK;
		bad += res.status != SPYRE_OK;
		for (c = 0; c < 3; c++)
			free(mem.seg[c]);
		ref_job_free(job);
		ref_program_free(&p);
	}
	print_message("%u end, %u fail\n", ok, bad);
	assert_true(count < 60 || (ok > 5 && bad > 20));
	env_free(&e);
}

/* --- What random programs found --------------------------------------------------------------- */

static int unit(struct spyreprog_job *j, unsigned int core, enum spyre_unit kind)
{
	int p = spyreprog_job_program(j, kind);

	spyreprog_job_unit(j, core, kind, 0, p);
	return p;
}

static void idle(struct spyreprog_job *j, int p, uint32_t cycles)
{
	sp_loop(j, p, cycles);
	spyreprog_job_insn(j, p, &(struct spyre_insn){ .op = SPYRE_OP_NOP });
	sp_end(j, p);
}

/* The job takes the same modelled time on both. */
static void same_time(struct spyreprog_job *j)
{
	struct ref_job *job;
	struct ref_time t;
	struct env e;

	env_init(&e, 1);
	env_map(&e, 0, 1 << 20);
	env_load_job(&e, j);
	assert_int_equal(env_run(&e, NULL, 0), SPYRE_OK);
	job = ref_job_decode(e.seg[7], e.len[7], NULL);
	assert_true(ref_time(job, &t));
	assert_int_equal(e.time.cycles, t.cycles);
	ref_job_free(job);
	env_free(&e);
}

/* Loads that a core asks for after a while do not come before what others ask for meanwhile. */
static void test_request_order(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	int p = unit(j, 0, SPYRE_UNIT_L3LU);

	(void)state;
	idle(j, p, 20000);
	sp_l3(j, p, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 32, 0, 0, 0);
	p = unit(j, 1, SPYRE_UNIT_L3LU);
	sp_loop(j, p, 8);
	sp_l3(j, p, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 32, 0, 0, 0);
	sp_end(j, p);
	same_time(j);
}

/* A store into the own LX whose two ends overlap: all of it is read first, by both. */
static void test_overlap(void **state)
{
	static const uint8_t want[4] = { 1, 1, 2, 3 };
	struct spyreprog_job *j = spyreprog_job_new();
	struct ref_mem mem = { .len[0] = 1 << 16 };
	struct ref_result res;
	struct ref_job *job;
	struct env e;
	unsigned int i;
	int p;

	(void)state;
	p = unit(j, 3, SPYRE_UNIT_L3LU);
	sp_l3(j, p, SPYRE_OP_L3_LDU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 4, 0, 0, 0);
	sp_send(j, p, 0, 0);
	p = unit(j, 3, SPYRE_UNIT_L3SU);
	sp_wait(j, p, 0, 1);
	sp_mvreg(j, p, SPYRE_EAR0, SPYRE_REG_NONE, 3 << 24 | 128);
	sp_l3(j, p, SPYRE_OP_L3_STC, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 3, 0, 0, 0);
	sp_mvreg(j, p, SPYRE_EAR0, SPYRE_REG_NONE, 4096);
	sp_l3(j, p, SPYRE_OP_L3_STU, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_EAR0, 4, 0, 0, 0);
	env_init(&e, 1);
	env_map(&e, 0, mem.len[0]);
	env_load_job(&e, j);
	for (i = 0; i < 4; i++)
		memset(e.seg[0] + i * SPYRE_STICK, (int)i + 1, SPYRE_STICK);
	mem.seg[0] = malloc(mem.len[0]);
	memcpy(mem.seg[0], e.seg[0], mem.len[0]);
	assert_int_equal(env_run(&e, NULL, 0), SPYRE_OK);
	job = ref_job_decode(e.seg[7], e.len[7], NULL);
	ref_run(job, &mem, 1, &res);
	assert_int_equal(res.status, SPYRE_OK);
	for (i = 0; i < 4; i++) {
		assert_int_equal(e.seg[0][4096 + i * SPYRE_STICK], want[i]);
		assert_int_equal(mem.seg[0][4096 + i * SPYRE_STICK], want[i]);
	}
	assert_memory_equal(e.seg[0], mem.seg[0], mem.len[0]);
	ref_job_free(job);
	free(mem.seg[0]);
	env_free(&e);
}

/* What PT says after a load of weights, and its end, come after the load. */
static void test_send_after_weights(void **state)
{
	struct spyreprog_job *j;
	unsigned int send;
	int p;

	(void)state;
	for (send = 0; send < 2; send++) {
		j = spyreprog_job_new();
		p = unit(j, 0, SPYRE_UNIT_LXLU);
		idle(j, p, 3000);
		sp_ld(j, p, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PTW, 64, 128, 0);
		p = unit(j, 0, SPYRE_UNIT_PT);
		sp_pt_ldw(j, p, 0, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
		if (send) {
			sp_send(j, p, 0, 0);
			p = unit(j, 0, SPYRE_UNIT_LXSU);
			sp_wait(j, p, 0, 1);
			idle(j, p, 1000);
		}
		same_time(j);
	}
}

/* A load of weights beyond the eighth waits until there is room for it. */
static void test_weights_pending(void **state)
{
	struct spyreprog_job *j = spyreprog_job_new();
	int p = unit(j, 0, SPYRE_UNIT_LXLU);

	(void)state;
	idle(j, p, 3000);
	sp_ld(j, p, SPYRE_LAR0, SPYRE_REG_NONE, SPYRE_FIFO_LXLU_PTW, 640, 128, 0);
	p = unit(j, 0, SPYRE_UNIT_PT);
	sp_loop(j, p, 10);
	sp_pt_ldw(j, p, 0, SPYRE_SEN169_FP16, SPYRE_FIFO_LXLU_PTW);
	sp_end(j, p);
	idle(j, p, 20000);
	same_time(j);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_spoiled),
		cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_request_order),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_send_after_weights),
		cmocka_unit_test(test_weights_pending),
	};

	/* A test that hangs is a failed test. */
	if (!getenv("SPYRE_REF_INSNS"))
		alarm(900);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
