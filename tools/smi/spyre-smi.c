// SPDX-License-Identifier: MIT
/*
 * spyre-smi: what the Spyre cards of this machine are, do and suffer. Numbers come from libspyrert,
 * which opens cards without a context; processes come from the fdinfo of /proc. Core dumps: dump.c.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <spyrert.h>

#include "dump.h"
#include "names.h"

#define MAX_CARDS	64
#define MAX_PROCS	512
#define RAS_SHOWN	64

/* Exit codes; the manual page has them too. */
enum { EXIT_OK = 0, EXIT_ERROR = 1, EXIT_USAGE = 2, EXIT_NO_CARD = 3 };

struct card {
	int index;
	struct spyrert_device_info info;
	struct spyrert_device *dev;
	char problem[200];		/* why it could not be opened */
	struct spyrert_device_props props;
	struct spyrert_device_health was, now;
	struct spyrert_memory_info mem;
	size_t ras_count;
	bool ras_denied;
	struct spyrert_ras ras;		/* the newest */
};

/* A client of a card: an open file, however many descriptors or processes share it. */
struct proc {
	int pid;
	char name[32];
	char pci[20];
	unsigned long long client;
	unsigned long long device_kib, host_kib, compute_ns, cbs, errors;
};

/* Part of the time between two samples that engines of a kind were busy, in percent; -1: unknown.
 */
static double busy(const struct card *c, uint64_t was, uint64_t now, uint32_t engines)
{
	uint64_t span = c->now.soc_time - c->was.soc_time;
	double p;

	if (!span || !engines || now < was)
		return -1;
	p = 100.0 * (double)(now - was) / ((double)span * engines);
	/* Modelled time is booked when a job starts. */
	return p > 100 ? 100 : p;
}

static void sample(struct card *c)
{
	if (!c->dev)
		return;
	c->was = c->now;
	if (spyrert_device_get_health(c->dev, &c->now, sizeof(c->now)) ||
	    spyrert_memory_get_info(c->dev, &c->mem, sizeof(c->mem))) {
		snprintf(c->problem, sizeof(c->problem), "%.190s", spyrert_last_error());
		spyrert_device_close(c->dev);
		c->dev = NULL;
	}
}

/* Also again: a card that was reset answers only to who opened it afterwards. */
static void open_card(struct spyrert *lib, struct card *c)
{
	struct spyrert_device_info info;

	c->problem[0] = '\0';
	memset(&c->now, 0, sizeof(c->now));
	if (spyrert_device_get_info(lib, c->index, &info, sizeof(info))) {
		snprintf(c->problem, sizeof(c->problem), "%.190s", spyrert_last_error());
		return;
	}
	/* Numbers move up when a card goes. */
	if (c->info.pci_address[0] && strcmp(c->info.pci_address, info.pci_address)) {
		snprintf(c->problem, sizeof(c->problem), "the card is gone");
		return;
	}
	c->info = info;
	if (spyrert_device_open(lib, c->index, &c->dev) ||
	    spyrert_device_get_props(c->dev, &c->props, sizeof(c->props))) {
		snprintf(c->problem, sizeof(c->problem), "%.190s", spyrert_last_error());
		spyrert_device_close(c->dev);
		c->dev = NULL;
		return;
	}
	sample(c);
}

static void read_ras(struct card *c)
{
	static struct spyrert_ras buf[RAS_SHOWN];
	size_t n = RAS_SHOWN;
	uint64_t after = c->ras.seq;

	while (c->dev && n == RAS_SHOWN) {
		if (spyrert_device_ras_read(c->dev, after, buf, &n, sizeof(buf[0]))) {
			c->ras_denied = true;
			return;
		}
		c->ras_count += n;
		if (n) {
			c->ras = buf[n - 1];
			after = c->ras.seq;
		}
	}
}

/* "key:\tvalue" of an fdinfo. */
static bool field(const char *line, const char *key, const char **value)
{
	size_t n = strlen(key);

	if (strncmp(line, key, n) || line[n] != ':')
		return false;
	*value = line + n + 1;
	while (isspace((unsigned char)**value))
		(*value)++;
	return true;
}

static bool read_fdinfo(const char *path, struct proc *p)
{
	char line[256];
	const char *v;
	bool ours = false;
	FILE *f;

	f = fopen(path, "re");
	if (!f)
		return false;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		if (field(line, "drm-driver", &v))
			ours = !strcmp(v, "spyre");
		else if (field(line, "drm-pdev", &v))
			snprintf(p->pci, sizeof(p->pci), "%.19s", v);
		else if (field(line, "drm-client-id", &v))
			p->client = strtoull(v, NULL, 10);
		else if (field(line, "drm-total-device", &v))
			p->device_kib = strtoull(v, NULL, 10);
		else if (field(line, "drm-total-host", &v))
			p->host_kib = strtoull(v, NULL, 10);
		else if (field(line, "drm-engine-compute", &v))
			p->compute_ns = strtoull(v, NULL, 10);
		else if (field(line, "spyre-cbs", &v))
			p->cbs = strtoull(v, NULL, 10);
		else if (field(line, "spyre-errors", &v))
			p->errors = strtoull(v, NULL, 10);
	}
	fclose(f);
	return ours;
}

static int read_procs(struct proc *list, int max)
{
	char path[320], link[256], name[64];
	struct dirent *de, *fd;
	int n = 0, i;
	DIR *d, *fds;
	ssize_t len;
	FILE *f;

	d = opendir("/proc");
	if (!d)
		return 0;
	while (n < max && (de = readdir(d))) {
		int pid = atoi(de->d_name);

		if (pid <= 0 || pid == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/%d/fd", pid);
		fds = opendir(path);
		if (!fds)
			continue;
		while (n < max && (fd = readdir(fds))) {
			struct proc p = { .pid = pid };

			/* Reading every fdinfo would be slow: only those of accel nodes. */
			snprintf(path, sizeof(path), "/proc/%d/fd/%.200s", pid, fd->d_name);
			len = readlink(path, link, sizeof(link) - 1);
			if (len <= 0)
				continue;
			link[len] = '\0';
			if (strncmp(link, "/dev/accel/", 11))
				continue;
			snprintf(path, sizeof(path), "/proc/%d/fdinfo/%.200s", pid, fd->d_name);
			if (!read_fdinfo(path, &p))
				continue;
			for (i = 0; i < n; i++)
				if (list[i].client == p.client && !strcmp(list[i].pci, p.pci))
					break;
			if (i < n)
				continue;
			snprintf(path, sizeof(path), "/proc/%d/comm", pid);
			f = fopen(path, "re");
			if (f) {
				if (fgets(name, sizeof(name), f))
					name[strcspn(name, "\n")] = '\0';
				else
					name[0] = '\0';
				fclose(f);
				snprintf(p.name, sizeof(p.name), "%.31s", name);
			}
			list[n++] = p;
		}
		closedir(fds);
	}
	closedir(d);
	return n;
}

static void print_table(struct card *cards, int n, const struct proc *procs, int nprocs)
{
	char when[64];
	time_t t = time(NULL);
	int i, k, shown = 0;

	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", localtime(&t));
	printf("spyre-smi %u.%u   %s\n\n", spyrert_version() >> 16, spyrert_version() & 0xffff,
	       when);
	printf("card  address       state     temp   power   compute  copy in  copy out  memory "
	       "used / total      "
	       "link           errors\n");
	for (i = 0; i < n; i++) {
		struct card *c = &cards[i];
		double b[3];
		char cell[3][16], link[32] = "-", ras[32] = "-";

		if (!c->dev) {
			printf("%4d  %-12s  %s\n", c->index,
			       c->info.pci_address[0] ? c->info.pci_address : "-", c->problem);
			continue;
		}
		b[0] = busy(c, c->was.busy_compute, c->now.busy_compute, 1);
		b[1] = busy(c, c->was.busy_dmi, c->now.busy_dmi, c->props.dmi_engines);
		b[2] = busy(c, c->was.busy_dmo, c->now.busy_dmo, c->props.dmo_engines);
		for (k = 0; k < 3; k++) {
			if (b[k] < 0)
				snprintf(cell[k], sizeof(cell[k]), "-");
			else
				snprintf(cell[k], sizeof(cell[k]), "%.0f %%", b[k]);
		}
		if (c->info.link_width)
			snprintf(link, sizeof(link), "%.1f GT/s x%u", c->info.link_speed / 10.0,
				 c->info.link_width);
		if (!c->ras_denied)
			snprintf(ras, sizeof(ras), "%zu", c->ras_count);
		printf("%4d  %-12s  %-8s  %3.0f C  %5.1f W  %7s  %7s  %8s  %7" PRIu64 " / %6" PRIu64
		       " MiB  %-14s"
		       " %s, ECC %u/%u\n",
		       c->index, c->info.pci_address[0] ? c->info.pci_address : "-",
		       card_state_name(c->now.state), c->now.temp_mc / 1000.0, c->now.power_mw / 1000.0,
		       cell[0], cell[1], cell[2], c->mem.card_used >> 20, c->mem.total >> 20, link,
		       ras, c->now.ecc_corrected, c->now.ecc_uncorrected);
		if (c->ras.code && !c->ras_denied)
			printf("      last error: 0x%04x %s: %s\n", c->ras.code, c->ras.name,
			       c->ras.message);
	}
	printf("\n  pid       card memory  host memory  compute time  operations  errors  card     "
	       "     name\n");
	for (i = 0; i < nprocs; i++) {
		const struct proc *p = &procs[i];

		printf("%7d  %8llu MiB  %7llu MiB  %10.3f s  %10llu  %6llu  %-12s  %s\n", p->pid,
		       p->device_kib >> 10, p->host_kib >> 10, (double)p->compute_ns * 1e-9, p->cbs,
		       p->errors, p->pci, p->name);
		shown++;
	}
	if (!shown)
		printf("         no processes%s\n", geteuid() ? " of yours" : "");
}

static json_t *percent(double v)
{
	return v < 0 ? json_null() : json_real((double)(int)(v * 10 + 0.5) / 10);
}

static json_t *make_json(struct card *cards, int n, const struct proc *procs, int nprocs)
{
	json_t *root = json_object(), *list = json_array(), *o, *e;
	char line[8192];
	int i;

	for (i = 0; i < n; i++) {
		struct card *c = &cards[i];

		o = json_object();
		json_object_set_new(o, "index", json_integer(c->index));
		json_object_set_new(o, "name", json_string(c->info.name));
		json_object_set_new(o, "node", json_string(c->info.node));
		json_object_set_new(o, "pci_address", json_string(c->info.pci_address));
		json_object_set_new(o, "serial", json_string(c->info.serial));
		json_object_set_new(o, "numa_node", json_integer(c->info.numa_node));
		json_object_set_new(o, "link_gts", json_real(c->info.link_speed / 10.0));
		json_object_set_new(o, "link_width", json_integer(c->info.link_width));
		json_object_set_new(o, "link_gts_max", json_real(c->info.link_speed_max / 10.0));
		json_object_set_new(o, "link_width_max", json_integer(c->info.link_width_max));
		json_array_append_new(list, o);
		if (!c->dev) {
			json_object_set_new(o, "state", json_string(card_state_name(c->info.state)));
			json_object_set_new(o, "problem", json_string(c->problem));
			continue;
		}
		json_object_set_new(o, "state", json_string(card_state_name(c->now.state)));
		json_object_set_new(o, "firmware", json_string(c->props.fw_version));
		json_object_set_new(o, "cores", json_integer(c->props.cores));
		json_object_set_new(o, "reset_generation", json_integer(c->now.reset_generation));
		json_object_set_new(o, "temperature_c", json_real(c->now.temp_mc / 1000.0));
		json_object_set_new(o, "power_w", json_real(c->now.power_mw / 1000.0));
		json_object_set_new(o, "memory_total", json_integer((json_int_t)c->mem.total));
		json_object_set_new(o, "memory_used", json_integer((json_int_t)c->mem.card_used));
		json_object_set_new(o, "memory_read", json_integer((json_int_t)c->now.mem_read));
		json_object_set_new(o, "memory_written",
				    json_integer((json_int_t)c->now.mem_written));
		json_object_set_new(o, "busy_compute", percent(busy(c, c->was.busy_compute,
								     c->now.busy_compute, 1)));
		json_object_set_new(o, "busy_dmi", percent(busy(c, c->was.busy_dmi, c->now.busy_dmi,
								 c->props.dmi_engines)));
		json_object_set_new(o, "busy_dmo", percent(busy(c, c->was.busy_dmo, c->now.busy_dmo,
								 c->props.dmo_engines)));
		json_object_set_new(o, "busy_dmx", percent(busy(c, c->was.busy_dmx, c->now.busy_dmx,
								 c->props.dmx_engines)));
		json_object_set_new(o, "contexts", json_integer(c->now.contexts));
		json_object_set_new(o, "queues", json_integer(c->now.queues));
		json_object_set_new(o, "ecc_corrected", json_integer(c->now.ecc_corrected));
		json_object_set_new(o, "ecc_uncorrected", json_integer(c->now.ecc_uncorrected));
		if (c->ras_denied) {
			json_object_set_new(o, "ras_records", json_null());
			continue;
		}
		json_object_set_new(o, "ras_records", json_integer((json_int_t)c->ras_count));
		if (c->ras.code &&
		    spyrert_ras_format(&c->ras, line, sizeof(line)) < (int)sizeof(line)) {
			e = json_loads(line, 0, NULL);
			json_object_set_new(o, "ras_last", e ? e : json_null());
		}
	}
	json_object_set_new(root, "cards", list);
	list = json_array();
	for (i = 0; i < nprocs; i++) {
		const struct proc *p = &procs[i];

		o = json_object();
		json_object_set_new(o, "pid", json_integer(p->pid));
		json_object_set_new(o, "name", json_string(p->name));
		json_object_set_new(o, "pci_address", json_string(p->pci));
		json_object_set_new(o, "client", json_integer((json_int_t)p->client));
		json_object_set_new(o, "device_memory",
				    json_integer((json_int_t)(p->device_kib << 10)));
		json_object_set_new(o, "host_memory",
				    json_integer((json_int_t)(p->host_kib << 10)));
		json_object_set_new(o, "compute_ns", json_integer((json_int_t)p->compute_ns));
		json_object_set_new(o, "operations", json_integer((json_int_t)p->cbs));
		json_object_set_new(o, "errors", json_integer((json_int_t)p->errors));
		json_array_append_new(list, o);
	}
	json_object_set_new(root, "processes", list);
	return root;
}

static void usage(FILE *f)
{
	fputs("usage: spyre-smi [--json] [--loop SECONDS] [--card N]\n"
	      "       spyre-smi --dump FILE\n"
	      "Show the Spyre cards of this machine, what they do and who uses them.\n\n"
	      "  -j, --json          one JSON object a sample, on one line\n"
	      "  -l, --loop SECONDS  a sample every SECONDS (may be a fraction), until "
	      "interrupted\n"
	      "  -c, --card N        only card N\n"
	      "  -d, --dump FILE     a core dump of the driver with names for its numbers; -: "
	      "standard input\n"
	      "  -h, --help          this text\n\n"
	      "Exit status: 0 shown, 1 error, 2 bad usage, 3 no card.\n",
	      f);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' }, { "loop", required_argument, NULL, 'l' },
		{ "card", required_argument, NULL, 'c' }, { "dump", required_argument, NULL, 'd' },
		{ "help", no_argument, NULL, 'h' },	  { 0 },
	};
	static struct card cards[MAX_CARDS];
	static struct proc procs[MAX_PROCS];
	bool json = false, first = true;
	int only = -1, n, i, k = 0, opt, nprocs, status = EXIT_OK;
	double loop = 0;
	const char *dump = NULL;
	struct spyrert *lib;
	char *end;

	while ((opt = getopt_long(argc, argv, "jl:c:d:h", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'l':
			loop = strtod(optarg, &end);
			if (*end || !(loop >= 0.1 && loop <= 86400)) {
				fprintf(stderr,
					"spyre-smi: --loop takes 0.1 to 86400 seconds, not '%s'\n",
					optarg);
				return EXIT_USAGE;
			}
			break;
		case 'c':
			only = (int)strtol(optarg, &end, 10);
			if (*end || only < 0) {
				fprintf(stderr, "spyre-smi: --card takes a card number, not '%s'\n",
					optarg);
				return EXIT_USAGE;
			}
			break;
		case 'd':
			dump = optarg;
			break;
		case 'h':
			usage(stdout);
			return EXIT_OK;
		default:
			usage(stderr);
			return EXIT_USAGE;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "spyre-smi: '%s' is no option and nothing else is taken; see --help\n",
			argv[optind]);
		return EXIT_USAGE;
	}
	if (dump && (json || loop != 0 || only >= 0)) {
		fprintf(stderr, "spyre-smi: --dump goes with no other option\n");
		return EXIT_USAGE;
	}
	if (dump)
		return dump_print(dump) || fflush(stdout) ? EXIT_ERROR : EXIT_OK;
	if (spyrert_init(NULL, &lib)) {
		fprintf(stderr, "spyre-smi: %s\n", spyrert_last_error());
		return EXIT_ERROR;
	}
	if (spyrert_device_count(lib, &n)) {
		fprintf(stderr, "spyre-smi: %s\n", spyrert_last_error());
		spyrert_exit(lib);
		return EXIT_ERROR;
	}
	if (!n || only >= n) {
		if (json)
			puts("{\"cards\": [], \"processes\": []}");
		if (only >= 0 && n)
			fprintf(stderr, "spyre-smi: there is no card %d; cards are 0 to %d\n", only,
				n - 1);
		else
			fprintf(stderr, "spyre-smi: no Spyre card that works was found; check "
				"'lspci -d 1014:06a7' and that the spyre module is loaded\n");
		spyrert_exit(lib);
		return EXIT_NO_CARD;
	}
	for (i = 0; i < n && k < MAX_CARDS; i++) {
		struct card *c = &cards[k];

		if (only >= 0 && i != only)
			continue;
		c->index = i;
		open_card(lib, c);
		k++;
	}
	for (;;) {
		/* Two samples make a rate; the driver refreshes its page every 100 ms. */
		if (first)
			nanosleep(&(struct timespec){ .tv_nsec = 250000000 }, NULL);
		first = false;
		for (i = 0; i < k; i++) {
			if (!cards[i].dev)
				open_card(lib, &cards[i]);
			sample(&cards[i]);
			read_ras(&cards[i]);
		}
		nprocs = read_procs(procs, MAX_PROCS);
		if (json) {
			json_t *root = make_json(cards, k, procs, nprocs);

			/* Thousandths at most, and 17 digits would show binary's remainder. */
			json_dumpf(root, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER |
				   JSON_REAL_PRECISION(9));
			putchar('\n');
			json_decref(root);
		} else {
			if (loop && isatty(STDOUT_FILENO))
				fputs("\033[H\033[J", stdout);
			print_table(cards, k, procs, nprocs);
		}
		if (fflush(stdout) || ferror(stdout)) {
			status = EXIT_ERROR;
			break;
		}
		if (!loop)
			break;
		nanosleep(&(struct timespec){ .tv_sec = (time_t)loop,
					      .tv_nsec =
						      (long)((loop - (double)(time_t)loop) * 1e9) },
			  NULL);
	}
	for (i = 0; i < k; i++)
		spyrert_device_close(cards[i].dev);
	spyrert_exit(lib);
	return status;
}
