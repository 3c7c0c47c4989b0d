// SPDX-License-Identifier: GPL-2.0-only
/*
 * Makes a card's probe fail where no allocation does. As long as the module is loaded one call of a
 * function, or each, by the thread that loaded it, is answered without being made; or the function
 * has a register BAR that is too small. What is wanted are parameters, and it is checked when it
 * loads.
 *
 * A probe at the function's first instruction sends the call to a function that returns: to the
 * caller this is a call that failed and did nothing. Nothing of the driver is there for it, and the
 * functions need no annotation.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/ptrace.h>
#include <linux/vmalloc.h>

#include <spyre/hw.h>

static char *call;
module_param(call, charp, 0444);
MODULE_PARM_DESC(call, "name of the function");

static uint nth = 1;
module_param(nth, uint, 0444);
MODULE_PARM_DESC(nth, "which of the thread's calls is answered (default the first), 0: each");

static long answer;
module_param(answer, long, 0444);
MODULE_PARM_DESC(answer, "with what: a number, or an error as a pointer has it");

static uint hits;
module_param(hits, uint, 0444);
MODULE_PARM_DESC(hits, "out: how many calls came");

static uint words[64];
static uint nwords;
module_param_array(words, uint, &nwords, 0444);
MODULE_PARM_DESC(words, "answer with memory that is as large as the registers and begins with these words");

static bool small_bar;
module_param(small_bar, bool, 0444);
MODULE_PARM_DESC(small_bar, "the card's first BAR is one page; no driver may be bound");

static struct task_struct *thread;
static struct pci_dev *pdev;
static resource_size_t bar_end;
static void *memory;

static noinline long stand_in(void)
{
	return memory ? (long)memory : answer;
}

static int on_call(struct kprobe *kp, struct pt_regs *regs)
{
	if (current != thread)
		return 0;
	if (++hits != nth && nth)
		return 0;
	instruction_pointer_set(regs, (unsigned long)stand_in);
	/* The thread goes on there and not behind the probe. */
	return 1;
}

NOKPROBE_SYMBOL(on_call);

/* An optimized probe could not change where the thread goes on; one with such a handler is not. */
static void behind_call(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
}

NOKPROBE_SYMBOL(behind_call);

static struct kprobe kprobe = {
	.pre_handler = on_call,
	.post_handler = behind_call,
};

static int shrink_bar(void)
{
	struct resource *r;

	pdev = pci_get_device(SPYRE_PCI_VENDOR, SPYRE_PCI_DEVICE_PF, NULL);
	if (!pdev)
		return -ENODEV;
	r = &pdev->resource[SPYRE_BAR_REGS];
	device_lock(&pdev->dev);
	if (pdev->dev.driver || resource_size(r) <= PAGE_SIZE) {
		device_unlock(&pdev->dev);
		pci_dev_put(pdev);
		return -EBUSY;
	}
	bar_end = r->end;
	r->end = r->start + PAGE_SIZE - 1;
	device_unlock(&pdev->dev);
	return 0;
}

static void restore_bar(void)
{
	if (!pdev)
		return;
	device_lock(&pdev->dev);
	pdev->resource[SPYRE_BAR_REGS].end = bar_end;
	device_unlock(&pdev->dev);
	pci_dev_put(pdev);
}

static int __init spyre_fail_init(void)
{
	int ret;

	if (!call == !small_bar) {
		pr_err("spyre_fail: either call= or small_bar= is needed\n");
		return -EINVAL;
	}
	if (small_bar)
		return shrink_bar();
	if (nwords) {
		memory = vzalloc(SPYRE_BAR_REGS_SIZE);
		if (!memory)
			return -ENOMEM;
		memcpy(memory, words, nwords * sizeof(words[0]));
	}
	thread = current;
	kprobe.symbol_name = call;
	ret = register_kprobe(&kprobe);
	if (ret) {
		pr_err("spyre_fail: no probe at %s (%d)\n", call, ret);
		vfree(memory);
	}
	return ret;
}
module_init(spyre_fail_init);

static void __exit spyre_fail_exit(void)
{
	if (call)
		unregister_kprobe(&kprobe);
	restore_bar();
	vfree(memory);
}
module_exit(spyre_fail_exit);

MODULE_DESCRIPTION("Calls that fail while a card of the IBM Spyre driver is probed");
MODULE_LICENSE("GPL");
