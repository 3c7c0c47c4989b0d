// SPDX-License-Identifier: MIT
/* Profiles of SpyreCode directories. The runtime has checked the directory: here it is only read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <job.h>

#include "profile.h"

#define PROGRAM_BASE	((uint64_t)SPYRE_PROGRAM_SEGMENT << SPYRE_SEGMENT_SHIFT)
#define KINDS		(SPYRE_UNITS + 1u)	/* the load ports are a kind of their own */
#define TEXT		300

/* --- Reading ---------------------------------------------------------------------------------- */

/* The allocation in the program segment, and behind it the symbols. */
struct image {
	uint8_t *p;
	uint64_t len;
};

static void *dmva(void *opaque, uint64_t addr, uint64_t *len, bool write, enum spyre_syndrome *syn)
{
	struct image *im = opaque;

	if (addr < PROGRAM_BASE || addr - PROGRAM_BASE >= im->len || write) {
		*syn = SPYRE_SYN_PAGE_FAULT;
		return NULL;
	}
	addr -= PROGRAM_BASE;
	if (*len > im->len - addr)
		*len = im->len - addr;
	return im->p + addr;
}

static uint64_t number(const json_t *cmd, const char *name)
{
	const json_t *v = json_object_get(json_object_get(cmd, "properties"), name);

	/* Modulo 2^64, as the runtime does it: offsets may be negative. */
	if (json_is_string(v))
		return *json_string_value(v) == '-' ? (uint64_t)strtoll(json_string_value(v), NULL, 10) :
						      strtoull(json_string_value(v), NULL, 0);
	return (uint64_t)json_integer_value(v);
}

static uint64_t value(const json_t *symbol, const uint64_t *args, unsigned int nargs)
{
	json_t *o = json_pack("{s:O}", "properties", (json_t *)symbol);
	uint64_t v = number(o, "offset"), i;

	if (json_object_get(symbol, "argument")) {
		i = number(o, "argument");
		v += i < nargs ? args[i] : 0;
	}
	json_decref(o);
	return v;
}

/* What a job is given that no ComputeOnHost precedes: the arguments as they are. */
static void plain(uint64_t *symbols, const uint64_t *args, unsigned int nargs)
{
	memset(symbols, 0, SPYRE_JOB_SYMBOLS * sizeof(*symbols));
	memcpy(symbols, args, (nargs < SPYRE_JOB_SYMBOLS ? nargs : SPYRE_JOB_SYMBOLS) * sizeof(*symbols));
}

static bool read_image(const char *dir, const json_t *prep, struct image *im, char *err)
{
	const uint64_t room = SPYRE_JOB_SYMBOLS * 8ull;
	const json_t *cmd, *props;
	char path[4200];
	uint64_t at, n;
	size_t i, got;
	FILE *f;

	im->len = number(json_array_get(prep, 0), "size");
	im->p = im->len <= SPYRE_SEGMENT_SIZE ? calloc(1, im->len + room) : NULL;
	if (!im->p) {
		snprintf(err, TEXT, "out of memory");
		return false;
	}
	json_array_foreach(prep, i, cmd) {
		if (!i)
			continue;
		props = json_object_get(cmd, "properties");
		at = number(cmd, "dev_ptr") - PROGRAM_BASE;
		n = number(cmd, "size");
		snprintf(path, sizeof(path), "%s/%s", dir,
			 json_string_value(json_object_get(props, json_object_get(props, "init_bin_file") ?
									 "init_bin_file" : "file_path")));
		f = at <= im->len && n <= im->len - at ? fopen(path, "rb") : NULL;
		got = f ? fread(im->p + at, 1, n, f) : 0;
		if (f)
			fclose(f);
		if (!got) {
			snprintf(err, TEXT, "cannot read %.250s", path);
			return false;
		}
	}
	return true;
}

static bool add(struct profile *out, struct spyre_soc *soc, struct image *im, uint64_t offset, const uint64_t *symbols,
		uint32_t phases, char *err)
{
	const struct spyre_job_header *h = (const void *)(im->p + offset);
	struct spyre_soc_mem mem = { .opaque = im, .dmva = dmva };
	struct spyre_soc_job job = { .bootaddr = PROGRAM_BASE + offset, .mem = &mem };
	struct profile_job *j;
	struct spyre_rb rb;
	uint64_t len = im->len;
	bool ok;

	j = realloc(out->jobs, (out->njobs + 1) * sizeof(*j));
	if (!j) {
		snprintf(err, TEXT, "out of memory");
		return false;
	}
	out->jobs = j;
	j += out->njobs;
	if (len - offset < sizeof(*h)) {
		snprintf(err, TEXT, "no job binary at offset %llu", (unsigned long long)offset);
		return false;
	}
	job.nsymbols = h->nsymbols <= SPYRE_JOB_SYMBOLS ? h->nsymbols : 0;
	job.symbols = PROGRAM_BASE + len;
	memcpy(im->p + len, symbols, SPYRE_JOB_SYMBOLS * 8);
	im->len += SPYRE_JOB_SYMBOLS * 8;
	j->offset = offset;
	j->p.phases = phases;
	ok = spyre_soc_profile(soc, &job, &j->p, &rb);
	im->len = len;
	if (!ok) {
		snprintf(err, TEXT, "the job binary at offset %llu cannot be timed: status %u, code %u, core %d, unit %d, "
			 "instruction %u", (unsigned long long)offset, rb.status, rb.err_code, (int16_t)rb.err_core,
			 (int16_t)rb.err_unit, rb.err_pc);
		return false;
	}
	out->njobs++;
	return true;
}

int profile_read(const char *dir, const uint64_t *args, unsigned int nargs, uint32_t core_hz, uint32_t phases,
		 struct profile *out, char *err)
{
	struct spyre_soc_config cfg = {
		.threads = 1, .cores = 0xffffffffu, .core_hz = core_hz, .soc_hz = SPYRE_SOC_HZ, .watchdog = 1ull << 40,
	};
	uint64_t symbols[SPYRE_JOB_SYMBOLS];
	struct spyre_soc *soc = NULL;
	struct image im = { 0 };
	json_t *root, *cmd, *hcm, *sym, *file;
	const char *name, *handle;
	char path[4200];
	json_error_t je;
	size_t i, k;
	int ret = -1;

	memset(out, 0, sizeof(*out));
	snprintf(path, sizeof(path), "%s/spyrecode.json", dir);
	root = json_load_file(path, 0, &je);
	if (!root) {
		snprintf(err, TEXT, "%.200s: %.90s", path, je.text);
		return -1;
	}
	if (!read_image(dir, json_object_get(root, "JobPreparationPlan"), &im, err))
		goto out;
	soc = spyre_soc_new(&cfg);
	if (!soc) {
		snprintf(err, TEXT, "out of memory");
		goto out;
	}
	plain(symbols, args, nargs);
	json_array_foreach(json_object_get(root, "JobExecPlan"), i, cmd) {
		name = json_string_value(json_object_get(cmd, "command"));
		handle = name ? name : "";
		if (!strcmp(handle, "ComputeOnHost")) {
			hcm = json_object_get(json_object_get(cmd, "properties"), "hcm");
			file = NULL;
			if (json_is_string(hcm)) {
				snprintf(path, sizeof(path), "%s/%s", dir, json_string_value(hcm));
				hcm = file = json_load_file(path, 0, &je);
			}
			memset(symbols, 0, sizeof(symbols));
			json_array_foreach(json_object_get(json_object_get(hcm, "vdci"), "symbols"), k, sym)
				if (k < SPYRE_JOB_SYMBOLS)
					symbols[k] = value(sym, args, nargs);
			json_decref(file);
		} else if (!strcmp(handle, "ComputeOnDevice")) {
			if (!add(out, soc, &im, number(cmd, "job_bin_ptr") - PROGRAM_BASE, symbols, phases, err))
				goto out;
			plain(symbols, args, nargs);
		}
	}
	ret = 0;
out:
	if (ret)
		profile_free(out);
	spyre_soc_free(soc);
	free(im.p);
	json_decref(root);
	return ret;
}

void profile_free(struct profile *p)
{
	size_t i;

	for (i = 0; i < p->njobs; i++)
		spyre_soc_profile_free(&p->jobs[i].p);
	free(p->jobs);
	memset(p, 0, sizeof(*p));
}

/* --- Sums ------------------------------------------------------------------------------------- */

static const char *const kind_names[KINDS] = {
	"L3LU", "L3SU", "LXLU", "LXSU", "L0LU", "L0SU", "PT", "PE", "SFP", "PT load",
};

static unsigned int kind_of(unsigned int unit)
{
	return unit >= SPYRE_PROFILE_PORT ? SPYRE_UNITS : job_unit_kind(unit);
}

const char *profile_unit_name(unsigned int unit)
{
	return kind_names[kind_of(unit)];
}

/* Shares of the job's time, over the units of a kind that take part. */
struct share {
	double avg[SPYRE_SPENT], max[SPYRE_SPENT];
	uint64_t bytes;
	unsigned int units;
};

struct sums {
	struct share kind[KINDS];
	double memory, port;	/* shares of the time that these need for their bytes */
	double pt;		/* words of activations against the most that the cores in use could take */
	double in, out, ring;	/* busiest core's */
	double flying[2];	/* bursts, multicasts in flight: mean over the cores with any */
	double end_avg, end_max;	/* of cores */
	double seconds;
	unsigned int cores;
};

static double max2(double a, double b)
{
	return a > b ? a : b;
}

static void sum(const struct spyre_soc_profile *p, struct sums *s)
{
	double total = (double)p->total, pt = 0;
	unsigned int loading[2] = { 0 }, i, k, x;

	memset(s, 0, sizeof(*s));
	s->seconds = total / SPYRE_SOC_TICKS / (double)p->core_hz;
	s->memory = (double)p->memory_busy / total;
	s->port = max2((double)p->port_busy[0], (double)p->port_busy[1]) / total;
	for (i = 0; i < 32; i++) {
		const struct spyre_core_profile *c = &p->core[i];
		double end = 0;

		if (!c->alike)
			continue;
		s->cores++;
		for (k = 0; k < SPYRE_PROFILE_UNITS; k++) {
			struct share *sh = &s->kind[kind_of(k)];
			const struct spyre_unit_profile *u = &c->unit[k];

			if (!u->end)
				continue;
			end = max2(end, (double)u->end);
			sh->units++;
			sh->bytes += u->bytes;
			for (x = 0; x < SPYRE_SPENT; x++) {
				sh->avg[x] += (double)u->spent[x] / total;
				sh->max[x] = max2(sh->max[x], (double)u->spent[x] / total);
			}
		}
		s->end_avg += end;
		s->end_max = max2(s->end_max, end);
		pt += (double)c->pt_words;
		s->in = max2(s->in, (double)c->in_busy / total);
		s->out = max2(s->out, (double)c->out_busy / total);
		for (x = 0; x < 2; x++)
			s->ring = max2(s->ring, (double)c->ring_busy[x] / total);
		for (x = 0; x < 2; x++) {
			loading[x] += c->bursts[x] != 0;
			s->flying[x] += (double)c->burst_time[x] / total;
		}
	}
	for (k = 0; k < KINDS; k++)
		for (x = 0; x < SPYRE_SPENT && s->kind[k].units; x++)
			s->kind[k].avg[x] /= s->kind[k].units;
	s->end_avg /= s->cores ? s->cores : 1;
	for (x = 0; x < 2; x++)
		s->flying[x] /= loading[x] ? loading[x] : 1;
	s->pt = pt * p->pt_beats * SPYRE_SOC_TICKS / (2.0 * max2(s->cores, 1) * total);
}

/* --- What limits ------------------------------------------------------------------------------ */

void profile_limit(const struct spyre_soc_profile *p, char *text)
{
	const struct share *k;
	struct { double share; const char *what; } most = { 0 };
	struct sums s;
	unsigned int i;
	double lost;

	sum(p, &s);
	k = s.kind;
	const struct { double share; const char *what; } limits[] = {
		{ s.memory, "the memory's bandwidth" },
		{ s.port, "the bandwidth of one HMI port, which serves half of the cores" },
		{ k[SPYRE_UNIT_PT].max[SPYRE_BUSY], "PT" },
		{ k[SPYRE_UNIT_PE].max[SPYRE_BUSY], "PE" },
		{ k[SPYRE_UNIT_SFP].max[SPYRE_BUSY], "SFP" },
		{ max2(s.ring, max2(s.in, s.out)), "a core's place on the ring" },
		{ k[SPYRE_UNIT_LXLU].max[SPYRE_BUSY], "LXLU, what LX gives to the FIFOs" },
		{ k[SPYRE_UNIT_LXSU].max[SPYRE_BUSY], "LXSU, what LX takes from the FIFOs" },
		{ max2(k[SPYRE_UNIT_L0LU].max[SPYRE_BUSY], k[SPYRE_UNIT_L0SU].max[SPYRE_BUSY]), "L0" },
		{ k[SPYRE_UNITS].max[SPYRE_BUSY], "the loading of PT's tiles" },
	};

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (limits[i].share > most.share) {
			most.share = limits[i].share;
			most.what = limits[i].what;
		}
	lost = (s.end_max - s.end_avg) / (double)p->total;
	if (most.share >= 0.75)
		snprintf(text, TEXT, "Limited by %s: busy %.0f %% of the time.", most.what, 100 * most.share);
	else if ((double)p->overhead / (double)p->total > 0.4)
		snprintf(text, TEXT, "Limited by the start and end of a job on the cores, %.0f %% of the time: the job is short.",
			 100.0 * (double)p->overhead / (double)p->total);
	else if (lost > 0.2)
		snprintf(text, TEXT, "Limited by imbalance: cores are done after %.0f %% of the time on average, the last one "
			 "after %.0f %%.", 100 * s.end_avg / (double)p->total, 100 * s.end_max / (double)p->total);
	else if (s.flying[0] > 0.75 * p->bursts_in_flight[0])
		snprintf(text, TEXT, "Limited by latency: %.1f of the %u loads and stores that a core may have are in flight, and "
			 "the memory is busy %.0f %% of the time; use more cores or longer bursts.", s.flying[0],
			 p->bursts_in_flight[0], 100 * s.memory);
	else if ((double)p->tail / (double)p->total > 0.2)
		snprintf(text, TEXT, "Limited by the tail: the last core lags behind the first by %.0f %% of the time.",
			 100.0 * (double)p->tail / (double)p->total);
	else
		snprintf(text, TEXT, "Limited by latency: too few loads are in flight (%.1f of %u a core) and units wait for each "
			 "other; nearest to its limit is %s, busy %.0f %% of the time.", s.flying[0], p->bursts_in_flight[0],
			 most.what ? most.what : "nothing", 100 * most.share);
}

/* --- Writing ---------------------------------------------------------------------------------- */

static const char *const spent_names[SPYRE_SPENT] = { "busy", "starved", "blocked" };

static double gbs(uint64_t bytes, double seconds)
{
	return (double)bytes / seconds / 1e9;
}

void profile_print(const struct profile *all)
{
	char text[TEXT];
	struct sums s;
	unsigned int k;
	size_t i;

	for (i = 0; i < all->njobs; i++) {
		const struct spyre_soc_profile *p = &all->jobs[i].p;

		sum(p, &s);
		profile_limit(p, text);
		printf("job %zu: %llu core cycles, %.3f us, %u cores\n", i, (unsigned long long)p->time.cycles,
		       s.seconds * 1e6, s.cores);
		printf("  %-8s %5s   %-15s %-15s %-15s %s\n", "unit", "units", "busy avg/max", "starved avg/max",
		       "blocked avg/max", "bytes");
		for (k = 0; k < KINDS; k++) {
			const struct share *sh = &s.kind[k];

			if (sh->units)
				printf("  %-8s %5u   %5.1f / %5.1f %% %5.1f / %5.1f %% %5.1f / %5.1f %% %llu\n", kind_names[k],
				       sh->units, 100 * sh->avg[0], 100 * sh->max[0], 100 * sh->avg[1], 100 * sh->max[1],
				       100 * sh->avg[2], 100 * sh->max[2], (unsigned long long)sh->bytes);
		}
		printf("  memory   %.1f of %.1f GB/s (read %llu, written %llu bytes), busy %.1f %%\n"
		       "           in flight a core: %.1f of %u bursts, %.1f of %u multicasts\n",
		       gbs(p->time.rd_bytes + p->time.wr_bytes, s.seconds), (double)p->memory_bytes_s / 1e9,
		       (unsigned long long)p->time.rd_bytes, (unsigned long long)p->time.wr_bytes, 100 * s.memory, s.flying[0],
		       p->bursts_in_flight[0], s.flying[1], p->bursts_in_flight[1]);
		printf("  ring     a core's way in busy %.1f %%, out %.1f %%; SFP's %.1f %%\n", 100 * s.in, 100 * s.out,
		       100 * s.ring);
		printf("  PT       %.1f %% of the peak of the cores in use (%llu multiply-adds)\n", 100 * s.pt,
		       (unsigned long long)p->time.pt_macs);
		printf("  %s\n", text);
	}
}

static json_t *unit_json(const struct share *sh)
{
	json_t *o = json_pack("{s:I, s:I}", "units", (json_int_t)sh->units, "bytes", (json_int_t)sh->bytes);
	char name[32];
	unsigned int x;

	for (x = 0; x < SPYRE_SPENT; x++) {
		snprintf(name, sizeof(name), "%s_avg", spent_names[x]);
		json_object_set_new(o, name, json_real(sh->avg[x]));
		snprintf(name, sizeof(name), "%s_max", spent_names[x]);
		json_object_set_new(o, name, json_real(sh->max[x]));
	}
	return o;
}

/* In core cycles. */
static json_t *core_json(const struct spyre_core_profile *c, unsigned int id)
{
	json_t *units = json_array(), *u;
	unsigned int k, x;

	for (k = 0; k < SPYRE_PROFILE_UNITS; k++) {
		if (!c->unit[k].end)
			continue;
		u = json_pack("{s:s, s:i, s:I, s:f}", "unit", profile_unit_name(k), "corelet",
			      k >= SPYRE_PROFILE_PORT ? (int)(k - SPYRE_PROFILE_PORT) : (int)job_unit_corelet(k), "bytes",
			      (json_int_t)c->unit[k].bytes, "end", (double)c->unit[k].end / SPYRE_SOC_TICKS);
		for (x = 0; x < SPYRE_SPENT; x++)
			json_object_set_new(u, spent_names[x], json_real((double)c->unit[k].spent[x] / SPYRE_SOC_TICKS));
		json_array_append_new(units, u);
	}
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "core", (json_int_t)id, "alike", (json_int_t)c->alike,
			 "in_bytes", (json_int_t)c->in_bytes, "out_bytes", (json_int_t)c->out_bytes, "ring_clockwise_bytes",
			 (json_int_t)c->ring_bytes[0], "ring_counterclockwise_bytes", (json_int_t)c->ring_bytes[1], "macs",
			 (json_int_t)c->macs, "units", units);
}

json_t *profile_json(const struct profile *all)
{
	json_t *jobs = json_array(), *units, *cores;
	char text[TEXT];
	struct sums s;
	unsigned int k;
	size_t i;

	for (i = 0; i < all->njobs; i++) {
		const struct spyre_soc_profile *p = &all->jobs[i].p;

		sum(p, &s);
		profile_limit(p, text);
		units = json_object();
		for (k = 0; k < KINDS; k++)
			if (s.kind[k].units)
				json_object_set_new(units, kind_names[k], unit_json(&s.kind[k]));
		cores = json_array();
		for (k = 0; k < 32; k++)
			if (p->core[k].alike)
				json_array_append_new(cores, core_json(&p->core[k], k));
		json_array_append_new(jobs, json_pack("{s:I, s:f, s:I, s:s, s:o, s:{s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:i, s:f, s:i}, "
						      "s:{s:f, s:f, s:f}, s:{s:f, s:I}, s:f, s:f, s:o}",
			"cycles", (json_int_t)p->time.cycles, "us", s.seconds * 1e6, "cores", (json_int_t)s.cores,
			"limit", text, "units", units, "memory",
			"read_bytes", (json_int_t)p->time.rd_bytes, "written_bytes", (json_int_t)p->time.wr_bytes,
			"achieved_gbs", gbs(p->time.rd_bytes + p->time.wr_bytes, s.seconds),
			"possible_gbs", (double)p->memory_bytes_s / 1e9, "busy", s.memory, "port_busy", s.port,
			"bursts_in_flight", s.flying[0], "bursts_possible", (int)p->bursts_in_flight[0],
			"multicasts_in_flight", s.flying[1], "multicasts_possible", (int)p->bursts_in_flight[1],
			"ring", "in_busy", s.in, "out_busy", s.out, "sfp_busy", s.ring,
			"pt", "utilisation", s.pt, "macs", (json_int_t)p->time.pt_macs,
			"tail_cycles", (double)p->tail / SPYRE_SOC_TICKS,
			"overhead_cycles", (double)p->overhead / SPYRE_SOC_TICKS, "per_core", cores));
	}
	return json_pack("{s:o}", "jobs", jobs);
}
