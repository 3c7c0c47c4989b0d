// SPDX-License-Identifier: GPL-2.0-only
/*
 * Coverage of the module by itself. KCOV would do for system calls; threads of interrupts and work
 * it sees only where they are annotated.
 */
#include <linux/bitops.h>
#include <linux/instruction_pointer.h>
#include <linux/printk.h>
#include <linux/sizes.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "spyre_cover.h"

#define COVER_TEXT	SZ_1M	/* more than .text will ever have */
#define COVER_LINE	32u	/* bytes of the bitmap */
#define COVER_PERIOD	(3 * HZ)

static unsigned long covered[COVER_TEXT / BITS_PER_LONG];
static u8 told[COVER_TEXT / 8];

/* The first function of the module's .text, as this object is linked first. */
notrace void spyre_cover_anchor(void)
{
}

/*
 * The compiler calls it at the start of each block. In any context: takes no lock. A kernel with
 * KCOV has one too; the linker takes this one.
 */
notrace void __sanitizer_cov_trace_pc(void)
{
	unsigned long at = _RET_IP_ - (unsigned long)spyre_cover_anchor;

	/* What is in other sections (.init.text) is far away. */
	if (at < COVER_TEXT && !test_bit(at, covered))
		set_bit(at, covered);
}

static void cover_tell(void)
{
	u32 at;

	for (at = 0; at < sizeof(told); at += COVER_LINE) {
		const u8 *line = (const u8 *)covered + at;

		if (!memcmp(told + at, line, COVER_LINE))
			continue;
		memcpy(told + at, line, COVER_LINE);
		pr_info("spyre-cover: %x %*phN\n", at * 8, COVER_LINE, told + at);
	}
}

static void cover_work(struct work_struct *work)
{
	cover_tell();
	schedule_delayed_work(to_delayed_work(work), COVER_PERIOD);
}

static DECLARE_DELAYED_WORK(cover_again, cover_work);

void spyre_cover_begin(void)
{
	schedule_delayed_work(&cover_again, COVER_PERIOD);
}

void spyre_cover_end(void)
{
	cancel_delayed_work_sync(&cover_again);
	cover_tell();
}
