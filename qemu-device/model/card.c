/* SPDX-License-Identifier: MIT */
/* Life cycle: creation, start and stop of the management core, resets. */
#include "card.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GB	(1ull << 30)
#define MB	(1ull << 20)

void card_log(struct spyre_card *c, enum spyre_log_level level, const char *fmt, ...)
{
	char buf[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	c->ops->log(c->opaque, level, buf);
}

void card_inconsistent(struct spyre_card *c, const char *fmt, ...)
{
	char buf[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	if (c->ops->inconsistent)
		c->ops->inconsistent(c->opaque, buf);
	else
		c->ops->log(c->opaque, SPYRE_LOG_ERROR, buf);
}

void card_raise(struct spyre_card *c, unsigned int v)
{
	if (unlikely(take_fault(&c->fault_lost_irq))) {
		add_relaxed(&c->irqs_lost, 1);
		return;
	}
	add_relaxed(&c->irqs, 1);
	card_trace(c, SPYRE_TRACE_IRQ, v, 0, 0, 0);
	c->ops->raise(c->opaque, v);
}

static bool pow2(uint64_t v)
{
	return v && !(v & (v - 1));
}

static bool bad_hz(const char *name, uint32_t hz, char *buf, size_t size)
{
	if (!hz || (hz >= SPYRE_HZ_MIN && hz <= SPYRE_HZ_MAX))
		return false;
	snprintf(buf, size, "%s is %u, but must be from %u to %u, or 0 for the default", name, hz,
		 SPYRE_HZ_MIN, SPYRE_HZ_MAX);
	return true;
}

const char *spyre_card_config_check(const struct spyre_card_config *cfg, char *buf, size_t size)
{
	if (!pow2(cfg->memory) || cfg->memory < GB || cfg->memory > 128 * GB)
		snprintf(buf, size, "memory is %llu bytes, but must be a power of two from 1G to 128G",
			 (unsigned long long)cfg->memory);
	else if (!pow2(cfg->aperture) || cfg->aperture < 256 * MB || cfg->aperture > 128 * GB)
		snprintf(buf, size, "aperture is %llu bytes, but must be a power of two from 256M to 128G",
			 (unsigned long long)cfg->aperture);
	else if (cfg->mem && (uintptr_t)cfg->mem & 4095)
		snprintf(buf, size, "memdev does not start on a page of 4096 bytes");
	else if (cfg->threads > SOC_THREADS_MAX)
		snprintf(buf, size, "threads is %u, but must be from 0 (one per host CPU) to %u",
			 cfg->threads, SOC_THREADS_MAX);
	else if (bad_hz("soc-hz", cfg->soc_hz, buf, size) || bad_hz("core-hz", cfg->core_hz, buf, size) ||
		 bad_hz("mcu-hz", cfg->mcu_hz, buf, size))
		return buf;
	else if (cfg->sliced && cfg->timing_off)
		snprintf(buf, size, "timing is off, but a card that repeats exactly has no other clock to go by: set "
				    "it to virtual");
	else if (cfg->watchdog > 1ull << 48)
		snprintf(buf, size, "watchdog is %llu cycles, but must be from 0 (default) to 2^48",
			 (unsigned long long)cfg->watchdog);
	else
		return NULL;
	return buf;
}

static int init(struct spyre_card *c)
{
	unsigned int i;
	int ret;

	pthread_mutex_init(&c->ctl_lock, NULL);
	pthread_mutex_init(&c->stop_lock, NULL);
	pthread_cond_init(&c->stop_cond, NULL);
	pthread_mutex_init(&c->ann_lock, NULL);
	pthread_mutex_init(&c->link_lock, NULL);
	pthread_mutex_init(&c->ras_lock, NULL);
	db_init(c);
	gdb_init(c);
	tele_init(c);
	c->mtimecmp = ~0ull;
	c->ann_next = ~0ull;
	c->timer_ns = INT64_MAX;
	for (i = 0; i < MCU_CONTEXTS; i++)
		c->ctx_table[i] = 0;
	ret = mem_init(c);
	if (ret)
		return ret;
	c->log_ram = calloc(1, SPYRE_LOG_RAM_SIZE);
	if (!c->log_ram)
		return -ENOMEM;
	ret = epoch_init(c, WORKER_SOC + c->soc_threads);
	if (ret)
		return ret;
	regs_reset(c);
	ret = compute_init(c);
	if (ret)
		return ret;
	ret = mcu_init(c);
	if (ret)
		return ret;
	return engines_init(c);
}

struct spyre_card *spyre_card_new(const struct spyre_card_config *cfg, const struct spyre_host_ops *ops,
				  void *opaque)
{
	struct spyre_card *c;
	char buf[200];
	long cpus;
	void *p;
	int ret;

	if (spyre_card_config_check(cfg, buf, sizeof(buf))) {
		ops->log(opaque, SPYRE_LOG_ERROR, buf);
		errno = EINVAL;
		return NULL;
	}
	if (posix_memalign(&p, 64, sizeof(*c))) {
		errno = ENOMEM;
		return NULL;
	}
	memset(p, 0, sizeof(*c));
	c = p;
	c->cfg = *cfg;
	c->ops = ops;
	c->opaque = opaque;
	if (!c->cfg.soc_hz)
		c->cfg.soc_hz = SPYRE_SOC_HZ;
	if (!c->cfg.core_hz)
		c->cfg.core_hz = SPYRE_CORE_HZ;
	if (!c->cfg.mcu_hz)
		c->cfg.mcu_hz = SPYRE_MCU_HZ;
	if (!c->cfg.watchdog)
		c->cfg.watchdog = 1ull << 40;
	if (!c->cfg.cores)
		c->cfg.cores = ~0u;
	c->cores = c->cfg.cores;
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	c->soc_threads = c->cfg.threads ? c->cfg.threads : cpus > 0 ? (unsigned int)cpus : 1;
	if (c->soc_threads > SOC_THREADS_MAX)
		c->soc_threads = SOC_THREADS_MAX;
	ret = init(c);
	if (ret) {
		spyre_card_free(c);
		errno = -ret;
		return NULL;
	}
	return c;
}

void spyre_card_free(struct spyre_card *c)
{
	if (!c)
		return;
	if (c->mcu.started) {
		pthread_mutex_lock(&c->ctl_lock);
		card_stop_core(c);
		pthread_mutex_unlock(&c->ctl_lock);
	}
	mcu_free(c);
	engines_free(c);
	compute_free(c);
	epoch_free(c);
	mem_free(c);
	free(c->log_ram);
	pthread_mutex_destroy(&c->ctl_lock);
	pthread_mutex_destroy(&c->stop_lock);
	pthread_cond_destroy(&c->stop_cond);
	pthread_mutex_destroy(&c->ann_lock);
	pthread_mutex_destroy(&c->link_lock);
	pthread_mutex_destroy(&c->ras_lock);
	pthread_mutex_destroy(&c->db.lock);
	pthread_mutex_destroy(&c->gdb.lock);
	pthread_mutex_destroy(&c->tele.lock);
	free(c);
}

void *spyre_card_memory(struct spyre_card *c)
{
	return c->mem;
}

uint64_t spyre_card_memory_size(struct spyre_card *c)
{
	return c->mem_size;
}

uint64_t spyre_card_aperture(struct spyre_card *c)
{
	return c->aperture;
}

bool spyre_card_stopping(struct spyre_card *c)
{
	return load_seq(&c->stopping) != 0;
}

void spyre_card_dma_sync(struct spyre_card *c)
{
	stopping_begin(c);
	epoch_sync(c);
	stopping_end(c);
}

static const char *boot_text(enum spyre_boot_status status)
{
	switch (status) {
	case SPYRE_BOOT_BAD_ADDRESS:
		return "FW_ADDR and FW_LEN are not inside the aperture or not 128-byte aligned";
	case SPYRE_BOOT_BAD_MAGIC:
		return "no firmware image at FW_ADDR (bad magic)";
	case SPYRE_BOOT_BAD_HEADER:
		return "a header field of the firmware image is out of range or a reserved one is set";
	case SPYRE_BOOT_BAD_LENGTH:
		return "FW_LEN and the length in the image header disagree: the image is truncated";
	case SPYRE_BOOT_BAD_DIGEST:
		return "SHA-256 of the firmware image does not match: the image is corrupt";
	case SPYRE_BOOT_TOO_OLD:
		return "the firmware image was built for older hardware";
	case SPYRE_BOOT_TOO_NEW:
		return "the firmware image was built for newer hardware";
	case SPYRE_BOOT_BAD_SIGNATURE:
		return "the firmware image is signed with a key that this card does not hold";
	default:
		return "unknown boot status";
	}
}

void card_start_core(struct spyre_card *c)
{
	enum spyre_boot_status status;
	uint32_t entry = 0;

	store_relaxed(&c->cores, c->cfg.cores & ~load_relaxed(&c->cores_lost));
	spyre_soc_reset(c->soc, load_relaxed(&c->cores));
	db_clear(c);
	mcu_irq_clear(c, MCU_IRQ_MBOX);
	inject_clear(c);
	mcu_bus_reset(c);
	status = bootrom_load(c, &entry);
	card_trace(c, SPYRE_TRACE_BOOT, status, reg64(c, SPYRE_REG_FW_ADDR),
		   load_relaxed(reg_ptr(c, SPYRE_REG_FW_LEN)), 0);
	store_release(reg_ptr(c, SPYRE_REG_BOOT_STATUS), status);
	if (status == SPYRE_BOOT_RUNNING)
		mcu_start(c, entry);
	else
		card_log(c, SPYRE_LOG_WARN, "boot refused: %s", boot_text(status));
}

void card_stop_core(struct spyre_card *c)
{
	unsigned int i;

	stopping_begin(c);
	mcu_park(c);
	engines_stop(c);
	stopping_end(c);
	for (i = 0; i < MCU_CONTEXTS; i++)
		store_release(&c->ctx_table[i], 0);
	mtimecmp_set(c, ~0ull);
	store_release(reg_ptr(c, SPYRE_REG_BOOT_STATUS), SPYRE_BOOT_IDLE);
	store_release(reg_ptr(c, SPYRE_REG_BOOT_PROGRESS), 0);
	store_release(reg_ptr(c, SPYRE_REG_FW_VERSION), 0);
	store_release(reg_ptr(c, SPYRE_REG_MBOX_CMD_TAIL), 0);
	store_release(reg_ptr(c, SPYRE_REG_MBOX_CMD_HEAD), 0);
	store_release(reg_ptr(c, SPYRE_REG_MBOX_EVT_HEAD), 0);
	store_release(reg_ptr(c, SPYRE_REG_MBOX_EVT_TAIL), 0);
	regs_set_state(c, SPYRE_STATE_OFFLINE);
}

void card_control(struct spyre_card *c, uint32_t value)
{
	uint32_t *reg = reg_ptr(c, SPYRE_REG_MCU_CTRL), old;

	value &= SPYRE_MCU_CTRL_RUN | SPYRE_MCU_CTRL_SELF_REFRESH;
	pthread_mutex_lock(&c->ctl_lock);
	old = load_relaxed(reg);
	store_release(reg, value);
	if (~old & value & SPYRE_MCU_CTRL_RUN)
		card_start_core(c);
	else if (old & ~value & SPYRE_MCU_CTRL_RUN)
		card_stop_core(c);
	pthread_mutex_unlock(&c->ctl_lock);
}

void spyre_card_reset(struct spyre_card *c, enum spyre_reset kind)
{
	bool keep;

	pthread_mutex_lock(&c->ctl_lock);
	keep = kind == SPYRE_RESET_WAKEUP &&
	       (load_relaxed(reg_ptr(c, SPYRE_REG_MCU_CTRL)) & SPYRE_MCU_CTRL_SELF_REFRESH);
	card_stop_core(c);
	spyre_soc_reset(c->soc, load_relaxed(&c->cores));
	if (!keep) {
		mem_clear(c);
		__atomic_fetch_add(&c->reset_gen, 1, __ATOMIC_RELEASE);
	}
	regs_reset(c);
	db_clear(c);
	ras_clear(c);
	mcu_bus_reset(c);
	mcu_irq_clear(c, ~0u);
	if (kind == SPYRE_RESET_COLD) {
		memset(c->log_ram, 0, SPYRE_LOG_RAM_SIZE);
		tele_reset(c);
	}
	card_trace(c, SPYRE_TRACE_RESET, kind, load_relaxed(&c->reset_gen), 0, 0);
	pthread_mutex_unlock(&c->ctl_lock);
}

/* --- Counters --------------------------------------------------------------------------------- */

static void put(struct spyre_counter *out, size_t max, size_t *n, const char *name, uint64_t value)
{
	if (*n < max) {
		out[*n].name = name;
		out[*n].value = value;
	}
	++*n;
}

size_t spyre_card_counters(struct spyre_card *c, struct spyre_counter *out, size_t max)
{
	static const char *const eng[ENGINES][3] = {
		{ "dmi0-jobs", "dmi0-busy", "dmi0-bytes" },
		{ "dmi1-jobs", "dmi1-busy", "dmi1-bytes" },
		{ "dmo0-jobs", "dmo0-busy", "dmo0-bytes" },
		{ "dmo1-jobs", "dmo1-busy", "dmo1-bytes" },
		{ "dmx0-jobs", "dmx0-busy", "dmx0-bytes" },
		{ "compute-jobs", "compute-busy", "compute-bytes" },
	};
	unsigned int i;
	size_t n = 0;

	for (i = 0; i < ENGINES; i++) {
		put(out, max, &n, eng[i][0], load_relaxed(&c->engine[i].jobs));
		put(out, max, &n, eng[i][1], load_relaxed(&c->engine[i].busy));
		put(out, max, &n, eng[i][2], load_relaxed(&c->engine[i].bytes));
	}
	put(out, max, &n, "mcu-instructions", load_relaxed(&c->mcu.instructions));
	put(out, max, &n, "mcu-turns", load_relaxed(&c->mcu.turns));
	put(out, max, &n, "mcu-turn-max", load_relaxed(&c->mcu.turn_max));
	put(out, max, &n, "heartbeat", load_relaxed(&c->heartbeat));
	put(out, max, &n, "doorbells", load_relaxed(&c->db.rung));
	put(out, max, &n, "doorbell-overflows", load_relaxed(&c->db_overflow));
	put(out, max, &n, "doorbells-bad", load_relaxed(&c->db_bad));
	put(out, max, &n, "aperture-bad", load_relaxed(&c->aperture_bad));
	put(out, max, &n, "interrupts", load_relaxed(&c->irqs));
	put(out, max, &n, "interrupts-lost", load_relaxed(&c->irqs_lost));
	put(out, max, &n, "memory-read-bytes", load_relaxed(&c->mem_rd));
	put(out, max, &n, "memory-write-bytes", load_relaxed(&c->mem_wr));
	put(out, max, &n, "ecc-corrected", load_relaxed(&c->ecc_ce));
	put(out, max, &n, "ecc-uncorrected", load_relaxed(&c->ecc_ue));
	put(out, max, &n, "ras-lost", load_relaxed(&c->ras_lost));
	put(out, max, &n, "reset-generation", load_relaxed(&c->reset_gen));
	put(out, max, &n, "state", load_relaxed(reg_ptr(c, SPYRE_REG_STATE)));
	put(out, max, &n, "boot-status", load_relaxed(reg_ptr(c, SPYRE_REG_BOOT_STATUS)));
	put(out, max, &n, "cores", load_relaxed(&c->cores));
	put(out, max, &n, "temperature-mc", (uint64_t)(int64_t)tele_temp_mc(c));
	put(out, max, &n, "power-mw", tele_power_mw(c));
	put(out, max, &n, "energy", tele_energy(c, soc_now(c)));
	put(out, max, &n, "throttled", load_relaxed(&c->tele.throttled));
	return n + (n < max ? counters_soc(c, out + n, max - n) : counters_soc(c, NULL, 0));
}
