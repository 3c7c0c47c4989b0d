// SPDX-License-Identifier: GPL-2.0-only
/*
 * Device memory of one card in address spaces of another.
 *
 * The importer reaches the exporter's aperture through a switch that both are below. The memory
 * ends with the exporter's reset or removal, and is taken out of every address space before it
 * becomes somebody else's or the aperture goes: spyre_peers_revoke(). Bindings stay as places where
 * nothing is, so what the importer has in flight faults, and no address has a second meaning.
 *
 * An import enters the exporter's list while mmio_ok, under mmio_sem. Reset and removal clear it
 * first, so that what they then find in the list is all there is.
 */
#include <linux/dma-mapping.h>
#include <linux/pci.h>
#include <linux/slab.h>

#include "spyre_ctx.h"
#include "spyre_drv.h"
#include "spyre_gem.h"
#include "spyre_peer.h"
#include "spyre_vm.h"

#define PAGE_PAGES	(SPYRE_PAGE_SIZE >> PAGE_SHIFT)

/* Several files may import one buffer. It is not in the CPU's caches: nothing is to be synced. */
#define MAP_ATTRS	DMA_ATTR_SKIP_CPU_SYNC

static struct spyre_device *exporter(const struct spyre_bo *bo)
{
	return to_spyre(bo->peer->base.dev);
}

static struct pci_dev *common_bridge(struct pci_dev *a, struct pci_dev *b)
{
	struct pci_dev *up, *other;

	for (up = pci_upstream_bridge(a); up; up = pci_upstream_bridge(up))
		for (other = pci_upstream_bridge(b); other; other = pci_upstream_bridge(other))
			if (up == other)
				return up;
	return NULL;
}

/*
 * Whether @pdev gets to @target's aperture. A switch routes between its downstream ports, or, where
 * an IOMMU has them redirect, hands the request to the root complex that it came from. Nothing
 * tells whether a root complex passes requests from one of its ports to another, so ways that have
 * only that in common are refused, and so are the functions of one device.
 */
static bool reachable(struct pci_dev *pdev, struct pci_dev *target)
{
	struct pci_dev *bridge = common_bridge(pdev, target);

	if (!bridge || !pci_is_pcie(bridge) || pci_pcie_type(bridge) != PCI_EXP_TYPE_UPSTREAM)
		return false;
	/* dma_map_resource() gives addresses of the CPU where there is no IOMMU. */
	return pci_bus_address(target, SPYRE_BAR_APERTURE) ==
		pci_resource_start(target, SPYRE_BAR_APERTURE);
}

static void unmap_chunks(struct spyre_device *sdev, struct spyre_bo *bo)
{
	struct spyre_chunk *c;

	while (bo->nchunks) {
		c = &bo->chunks[--bo->nchunks];
		dma_unmap_resource(&sdev->pdev->dev, c->dma, (size_t)c->npages << PAGE_SHIFT,
				   bo->dma_dir, MAP_ATTRS);
	}
}

static int map_chunks(struct spyre_device *sdev, struct spyre_bo *bo)
{
	const struct spyre_bo *from = bo->peer;
	struct device *dev = &sdev->pdev->dev;
	struct spyre_chunk *c;
	phys_addr_t phys;
	u32 i, n;

	for (i = 0; i < from->ndev_pages; i += n) {
		for (n = 1; i + n < from->ndev_pages; n++)
			if (from->dev_pages[i + n] != from->dev_pages[i] + n)
				break;
		phys = exporter(bo)->aperture_phys + ((u64)from->dev_pages[i] << SPYRE_PAGE_SHIFT);
		c = &bo->chunks[bo->nchunks];
		c->first = i * PAGE_PAGES;
		c->npages = n * PAGE_PAGES;
		c->dma = dma_map_resource(dev, phys, (size_t)n << SPYRE_PAGE_SHIFT, bo->dma_dir,
					  MAP_ATTRS);
		if (dma_mapping_error(dev, c->dma)) {
			unmap_chunks(sdev, bo);
			return -ENOMEM;
		}
		bo->nchunks++;
	}
	bo->npages = from->ndev_pages * PAGE_PAGES;
	bo->color = (bo->chunks[0].dma >> PAGE_SHIFT) % PAGE_PAGES;
	return 0;
}

/*
 * bo_lock of @sdev, the importer, is held and it is not gone; under mmio_sem and with mmio_ok the
 * exporter is not gone either, so both have the bridges that lead to them.
 */
int spyre_peer_on_bus(struct spyre_device *sdev, struct spyre_bo *bo)
{
	struct spyre_device *peer = exporter(bo);
	int ret;

	lockdep_assert_held(&sdev->bo_lock);
	down_read(&peer->mmio_sem);
	if (!peer->mmio_ok || bo->peer->gen != READ_ONCE(peer->mem.gen))
		ret = -ENODEV;
	else if (!reachable(sdev->pdev, peer->pdev))
		ret = -EXDEV;
	else
		ret = map_chunks(sdev, bo);
	if (!ret) {
		spin_lock(&peer->peer_lock);
		list_add(&bo->peer_link, &peer->peers);
		peer->peer_pages += bo->peer->ndev_pages;
		spin_unlock(&peer->peer_lock);
	}
	up_read(&peer->mmio_sem);
	return ret;
}

/* bo_lock of @sdev, the importer, is held. */
void spyre_peer_off_bus(struct spyre_device *sdev, struct spyre_bo *bo)
{
	struct spyre_device *peer = exporter(bo);

	lockdep_assert_held(&sdev->bo_lock);
	unmap_chunks(sdev, bo);
	spin_lock(&peer->peer_lock);
	list_del_init(&bo->peer_link);
	peer->peer_pages -= bo->peer->ndev_pages;
	spin_unlock(&peer->peer_lock);
}

/* --- Revoke --------------------------------------------------------------------------------- */

/*
 * A card that has imported from this one, with a reference. One that is in the list has not been
 * through spyre_bos_off_bus() yet, so it is alive.
 */
static struct spyre_device *first_importer(struct spyre_device *sdev)
{
	struct spyre_device *other = NULL;
	struct spyre_bo *bo;

	spin_lock(&sdev->peer_lock);
	/* A card that is back has new imports, which are good. */
	if (!READ_ONCE(sdev->mmio_ok))
		bo = list_first_entry_or_null(&sdev->peers, struct spyre_bo, peer_link);
	else
		bo = NULL;
	if (bo) {
		other = to_spyre(bo->base.dev);
		drm_dev_get(&other->drm);
	}
	spin_unlock(&sdev->peer_lock);
	return other;
}

/* Nothing is bound anew, and contexts know what they are to give up. bo_lock of @other is held. */
static void withdraw_buffers(struct spyre_device *sdev, struct spyre_device *other)
{
	struct spyre_bo *bo;

	list_for_each_entry(bo, &other->bos, link) {
		if (bo->peer && exporter(bo) == sdev)
			spyre_bo_withdraw(bo);
		cond_resched();
	}
}

/* The end of some binding was not confirmed. bo_lock of @other is held. */
static bool unconfirmed(struct spyre_device *sdev, struct spyre_device *other)
{
	struct spyre_bo *bo;

	list_for_each_entry(bo, &other->bos, link) {
		if (bo->peer && exporter(bo) == sdev && atomic_read(&bo->unconfirmed))
			return true;
		cond_resched();
	}
	return false;
}

/* Of no other context the lock is waited for. */
static bool has_withdrawn(struct spyre_ctx *ctx)
{
	bool ret;

	spin_lock(&ctx->sdev->wake_lock);
	ret = !list_empty(&ctx->vm.withdrawn);
	spin_unlock(&ctx->sdev->wake_lock);
	return ret;
}

/*
 * Takes the memory out of all address spaces, with one command for each that has any, however many
 * imports there are. False: the card may still use it.
 */
static bool withdraw(struct spyre_device *sdev, struct spyre_device *other)
{
	struct spyre_ctx *ctx;
	unsigned long id;
	bool ok = true;

	mutex_lock(&other->bo_lock);
	withdraw_buffers(sdev, other);
	mutex_unlock(&other->bo_lock);
	xa_for_each(&other->ctxs, id, ctx) {
		ctx = spyre_ctx_get_id(other, id);
		if (!ctx)
			continue;
		if (has_withdrawn(ctx)) {
			mutex_lock(&ctx->lock);
			if (spyre_vm_withdraw(ctx, sdev))
				ok = false;
			mutex_unlock(&ctx->lock);
		}
		spyre_ctx_put(ctx);
	}
	mutex_lock(&other->bo_lock);
	if (spyre_may_run(other) && unconfirmed(sdev, other))
		ok = false;
	mutex_unlock(&other->bo_lock);
	return ok;
}

/*
 * Whatever the card still wants to do on the bus, it does not: it loses its contexts, as it cannot
 * be asked to let go of the memory alone. It may run and reset_sem is held, so no reset is at its
 * configuration space.
 */
static void cut_off(struct spyre_device *sdev)
{
	pci_clear_master(sdev->pdev);
	/* It waits for its reset already, or the error handling of the bus has it. */
	if (!sdev->card_ok || pci_channel_offline(sdev->pdev))
		return;
	spyre_mbox_stop(sdev, -EIO);
	spyre_reset_request(sdev, SPYRE_RUNG_FLR, "memory of another card was not given back");
}

static void revoke_at(struct spyre_device *sdev, struct spyre_device *other)
{
	down_read(&other->reset_sem);
	if (!withdraw(sdev, other))
		cut_off(other);
	/* Nothing of this card stays mapped. */
	spyre_bos_off_peer(other, sdev);
	up_read(&other->reset_sem);
}

/**
 * spyre_peers_revoke - no other card reaches this one's memory any more
 * @sdev: card, mmio_ok was cleared
 *
 * Returns when that is so, which the importer's firmware confirms; a card that does not is taken
 * off the bus and reset. Takes the other's reset_sem, so none may be held. Bounded, as its writers
 * are and commands of the mailbox.
 */
void spyre_peers_revoke(struct spyre_device *sdev)
{
	struct spyre_device *other;

	/* Whoever comes second returns when the first is through. */
	mutex_lock(&sdev->revoke_lock);
	while ((other = first_importer(sdev))) {
		revoke_at(sdev, other);
		drm_dev_put(&other->drm);
	}
	mutex_unlock(&sdev->revoke_lock);
}
