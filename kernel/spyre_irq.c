// SPDX-License-Identifier: GPL-2.0-only
/*
 * Interrupts. Vector 0 is mailbox and RAS; the others are queues, or all is on vector 0 when the
 * machine gives only one (x86 without interrupt remapping).
 *
 * A context's entry in an event ring says "something became visible since you armed". Whoever
 * waits has armed before it looked the last time, so waking the context's waiters is all there is
 * to do.
 */
#include <linux/dma-fence.h>
#include <linux/dma-mapping.h>
#include <linux/interrupt.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_trace.h"

static bool vector_has_queues(const struct spyre_device *sdev, u32 v)
{
	return sdev->irq.vectors == 1 || v;
}

static void process_ring(struct spyre_vector *vec)
{
	struct spyre_device *sdev = vec->sdev;
	u32 budget;

	mutex_lock(&vec->lock);
	/*
	 * One entry per context can be outstanding; the budget bounds a card that breaks the
	 * rule.
	 */
	for (budget = 4 * SPYRE_VEC_ENTRIES; budget; budget--) {
		const struct spyre_vec_event *e = &vec->ring[vec->head % SPYRE_VEC_ENTRIES];
		u32 id;

		if (le32_to_cpu(READ_ONCE(e->seq)) != vec->head + 1)
			break;
		/* seq is written last: the rest is read after it. */
		dma_rmb();
		id = le32_to_cpu(e->context);
		vec->head++;
		trace_spyre_queue_event(sdev->drm.dev, vec->number, id, le32_to_cpu(e->arm));
		spyre_ctx_wake_id(sdev, id);
	}
	mutex_unlock(&vec->lock);
}

static irqreturn_t spyre_irq_thread(int irq, void *data)
{
	struct spyre_vector *vec = data;
	bool cookie = dma_fence_begin_signalling();

	atomic_inc(&vec->count);
	if (!vec->number)
		spyre_mbox_process(vec->sdev);
	if (vec->ring)
		process_ring(vec);
	dma_fence_end_signalling(cookie);
	return IRQ_HANDLED;
}

int spyre_irq_init(struct spyre_device *sdev)
{
	struct pci_dev *pdev = sdev->pdev;
	u32 v;
	int ret;

	ret = pci_alloc_irq_vectors(pdev, SPYRE_MSI_VECTORS, SPYRE_MSI_VECTORS, PCI_IRQ_MSI);
	if (ret < 0)
		ret = pci_alloc_irq_vectors(pdev, 1, 1, PCI_IRQ_MSI);
	if (ret < 0) {
		drm_err(&sdev->drm, "no MSI vector (%d): the card has no other interrupts\n", ret);
		return ret;
	}
	sdev->irq.vectors = ret;
	for (v = 0; v < sdev->irq.vectors; v++) {
		struct spyre_vector *vec = &sdev->irq.vector[v];

		vec->sdev = sdev;
		vec->number = v;
		ret = drmm_mutex_init(&sdev->drm, &vec->lock);
		if (ret)
			goto fail;
		if (vector_has_queues(sdev, v)) {
			vec->ring = dmam_alloc_coherent(&pdev->dev, SPYRE_VEC_ENTRIES *
							sizeof(*vec->ring), &vec->dma, GFP_KERNEL);
			if (!vec->ring) {
				ret = -ENOMEM;
				goto fail;
			}
		}
		snprintf(vec->name, sizeof(vec->name), "spyre-%s-%u", pci_name(pdev), v);
		ret = request_threaded_irq(pci_irq_vector(pdev, v), NULL, spyre_irq_thread,
					   IRQF_ONESHOT, vec->name, vec);
		if (ret)
			goto fail;
	}
	return 0;
fail:
	drm_err(&sdev->drm, "interrupt vector %u not set up (%d)\n", v, ret);
	while (v--)
		free_irq(pci_irq_vector(pdev, v), &sdev->irq.vector[v]);
	pci_free_irq_vectors(pdev);
	return ret;
}

void spyre_irq_fini(struct spyre_device *sdev)
{
	u32 v;

	for (v = 0; v < sdev->irq.vectors; v++)
		free_irq(pci_irq_vector(sdev->pdev, v), &sdev->irq.vector[v]);
	pci_free_irq_vectors(sdev->pdev);
}

/*
 * While a function is reset its registers are nobody's: returns when no handler runs, and none
 * will. The caller holds reset_sem for writing.
 */
void spyre_irq_quiet(struct spyre_device *sdev, bool quiet)
{
	u32 v;

	lockdep_assert_held_write(&sdev->reset_sem);
	if (sdev->irq.quiet == quiet)
		return;
	sdev->irq.quiet = quiet;
	for (v = 0; v < sdev->irq.vectors; v++) {
		if (quiet)
			disable_irq(pci_irq_vector(sdev->pdev, v));
		else
			enable_irq(pci_irq_vector(sdev->pdev, v));
	}
}

/* With the core stopped: empty rings, told to the card. */
void spyre_irq_start(struct spyre_device *sdev)
{
	u32 v;

	for (v = 0; v < sdev->irq.vectors; v++) {
		struct spyre_vector *vec = &sdev->irq.vector[v];

		if (!vec->ring)
			continue;
		mutex_lock(&vec->lock);
		memset(vec->ring, 0, SPYRE_VEC_ENTRIES * sizeof(*vec->ring));
		vec->head = 0;
		spyre_write64(sdev, SPYRE_REG_VEC_BASE(v), vec->dma);
		spyre_write(sdev, SPYRE_REG_VEC_ENTRIES(v), SPYRE_VEC_ENTRIES);
		mutex_unlock(&vec->lock);
	}
	spyre_write(sdev, SPYRE_REG_VEC_COUNT, sdev->irq.vectors);
}

/* The vector for a new context: they take turns. */
u32 spyre_irq_pick(struct spyre_device *sdev)
{
	u32 queues = sdev->irq.vectors - 1;

	if (!queues)
		return 0;
	return 1 + (u32)atomic_inc_return(&sdev->irq.next) % queues;
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_irq_kunit.c"
#endif
