// SPDX-License-Identifier: GPL-2.0-only
/*
 * IBM Spyre accelerator: PCI life cycle, files, ioctl table.
 */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string_choices.h>

#include <drm/drm_accel.h>
#include <drm/drm_gem.h>
#include <drm/drm_ioctl.h>
#include <drm/drm_managed.h>

#include "kernel_compat.h"
#include "spyre_ctx.h"
#include "spyre_debugfs.h"
#include "spyre_dmabuf.h"
#include "spyre_drv.h"
#include "spyre_dump.h"
#include "spyre_gem.h"
#include "spyre_peer.h"
#include "spyre_queue.h"
#include "spyre_submit.h"
#include "spyre_sysfs.h"
#include "spyre_wait.h"
#include "tests/spyre_cover.h"

/* The driver's area is this part of the aperture, at most AREA_MAX. */
#define AREA_PART	16
#define AREA_MAX	SZ_256M
#define AREA_MIN	SZ_16M

/* A reset in progress is worth waiting for: it is bounded. */
int spyre_wait_recovered(struct spyre_device *sdev)
{
	int ret = wait_event_interruptible(sdev->reset.over, !READ_ONCE(sdev->recovering));

	return ret ? -EINTR : 0;
}

/**
 * spyre_enter - begin to use the card
 * @sdev: card
 * @file: whose call it is, or NULL
 *
 * Waits for a reset in progress, which is bounded. With 0, spyre_exit() must follow.
 *
 * Return: 0, -EINTR, or -ENODEV: the card is away, or @file was opened before it lost its memory.
 */
int spyre_enter(struct spyre_device *sdev, const struct spyre_file *file)
{
	int ret;

	for (;;) {
		ret = down_read_interruptible(&sdev->reset_sem);
		if (ret)
			return ret;
		if (file && file->gen != sdev->gen)
			break;
		if (sdev->card_ok)
			return 0;
		if (!sdev->recovering)
			break;
		up_read(&sdev->reset_sem);
		ret = spyre_wait_recovered(sdev);
		if (ret)
			return ret;
	}
	up_read(&sdev->reset_sem);
	return -ENODEV;
}

u64 spyre_soc_time(struct spyre_device *sdev)
{
	unsigned long flags;
	u64 time;

	spin_lock_irqsave(&sdev->time_lock, flags);
	time = spyre_read64(sdev, SPYRE_REG_TIME);
	spin_unlock_irqrestore(&sdev->time_lock, flags);
	return time;
}

void spyre_exit(struct spyre_device *sdev)
{
	up_read(&sdev->reset_sem);
}

static int spyre_open(struct drm_device *drm, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file;
	int ret;

	/* A file opened before the generation moves would be stale at once. */
	ret = spyre_wait_recovered(sdev);
	if (ret)
		return ret;
	file = kzalloc(sizeof(*file), GFP_KERNEL_ACCOUNT);
	if (!file)
		return -ENOMEM;
	file->sdev = sdev;
	file->exempt = capable(CAP_SYS_RESOURCE);
	file->user = spyre_user_get(sdev, current_euid());
	if (!file->user) {
		kfree(file);
		return -ENOMEM;
	}
	mutex_init(&file->lock);
	spyre_wait_open(file);
	down_read(&sdev->reset_sem);
	file->gen = sdev->gen;
	up_read(&sdev->reset_sem);
	drm_file->driver_priv = file;
	return 0;
}

static void spyre_postclose(struct drm_device *drm, struct drm_file *drm_file)
{
	struct spyre_device *sdev = to_spyre(drm);
	struct spyre_file *file = drm_file->driver_priv;

	spyre_wait_close(file);
	if (file->ctx) {
		down_read(&sdev->reset_sem);
		spyre_ctx_close(file->ctx);
		up_read(&sdev->reset_sem);
	}
	if (file->dummy)
		__free_page(file->dummy);
	spyre_user_put(sdev, file->user);
	mutex_destroy(&file->lock);
	kfree(file);
}

static const struct drm_ioctl_desc spyre_ioctls[] = {
	DRM_IOCTL_DEF_DRV(SPYRE_QUERY, spyre_query_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_BO_CREATE, spyre_bo_create_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_BO_INFO, spyre_bo_info_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_BO_MMAP, spyre_bo_mmap_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_VM_BIND, spyre_vm_bind_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_QUEUE_CREATE, spyre_queue_create_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_QUEUE_DESTROY, spyre_queue_destroy_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_QUEUE_RESET, spyre_queue_reset_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_QUEUE_KICK, spyre_queue_kick_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_WAIT, spyre_wait_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_WAIT_CANCEL, spyre_wait_cancel_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_RAS_READ, spyre_ras_read_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_SUBMIT, spyre_submit_ioctl, 0),
	DRM_IOCTL_DEF_DRV(SPYRE_BO_USERPTR, spyre_bo_userptr_ioctl, 0),
};

/*
 * An accel node has no DRM master, and some of the core's ioctls follow file->master without
 * looking: GET_MAGIC and GET_UNIQUE are an oops on it. So only what has a meaning here gets to the
 * core.
 */
static bool ioctl_known(unsigned int cmd)
{
	unsigned int nr = DRM_IOCTL_NR(cmd);

	if (nr >= DRM_COMMAND_BASE && nr < DRM_COMMAND_END)
		return true;
	switch (nr) {
	case DRM_IOCTL_NR(DRM_IOCTL_VERSION):
	case DRM_IOCTL_NR(DRM_IOCTL_GEM_CLOSE):
	case DRM_IOCTL_NR(DRM_IOCTL_GET_CAP):
	case DRM_IOCTL_NR(DRM_IOCTL_PRIME_HANDLE_TO_FD):
	case DRM_IOCTL_NR(DRM_IOCTL_PRIME_FD_TO_HANDLE):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_CREATE):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_DESTROY):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_HANDLE_TO_FD):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_FD_TO_HANDLE):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_WAIT):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_RESET):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_SIGNAL):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_WAIT):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_QUERY):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_TRANSFER):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_TIMELINE_SIGNAL):
	case DRM_IOCTL_NR(DRM_IOCTL_SYNCOBJ_EVENTFD):
		return true;
	default:
		return false;
	}
}

/* Also: the core's own ioctls do not know that a file ends with the card's memory. */
static int ioctl_refused(struct file *filp, unsigned int cmd)
{
	struct drm_file *drm_file = filp->private_data;
	struct spyre_file *file = drm_file->driver_priv;
	unsigned int nr = DRM_IOCTL_NR(cmd);

	if ((nr == DRM_IOCTL_NR(DRM_IOCTL_PRIME_HANDLE_TO_FD) ||
	     nr == DRM_IOCTL_NR(DRM_IOCTL_PRIME_FD_TO_HANDLE)) &&
	    READ_ONCE(file->sdev->gen) != file->gen)
		return -ENODEV;
	return ioctl_known(cmd) ? 0 : -EINVAL;
}

static long spyre_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	return ioctl_refused(filp, cmd) ?: drm_ioctl(filp, cmd, arg);
}

#ifdef CONFIG_COMPAT
static long spyre_compat_ioctl(struct file *filp, unsigned int cmd, unsigned long arg)
{
	return ioctl_refused(filp, cmd) ?: drm_compat_ioctl(filp, cmd, arg);
}
#endif

/* DRM_ACCEL_FOPS but for the ioctls. */
static const struct file_operations spyre_fops = {
	.owner = THIS_MODULE,
	.open = accel_open,
	.release = drm_release,
	.unlocked_ioctl = spyre_ioctl,
#ifdef CONFIG_COMPAT
	.compat_ioctl = spyre_compat_ioctl,
#endif
	.poll = drm_poll,
	.read = drm_read,
	.llseek = noop_llseek,
	.mmap = drm_gem_mmap,
	.fop_flags = FOP_UNSIGNED_OFFSET,
	.show_fdinfo = drm_show_fdinfo,
};

static const struct drm_driver spyre_driver = {
	.driver_features = DRIVER_GEM | DRIVER_COMPUTE_ACCEL | DRIVER_SYNCOBJ |
			   DRIVER_SYNCOBJ_TIMELINE,
	.open = spyre_open,
	.postclose = spyre_postclose,
	.show_fdinfo = spyre_show_fdinfo,
	.ioctls = spyre_ioctls,
	.num_ioctls = ARRAY_SIZE(spyre_ioctls),
	.fops = &spyre_fops,
	.prime_fd_to_handle = spyre_dmabuf_fd_to_handle,
	.gem_prime_import = spyre_dmabuf_import,
	.name = "spyre",
	.desc = "IBM Spyre accelerator",
	SPYRE_COMPAT_DRIVER_DATE
	.major = 1,
	.minor = 0,
};

static void free_xarray(struct drm_device *drm, void *data)
{
	struct spyre_device *sdev = to_spyre(drm);

	xa_destroy(&sdev->ctxs);
	spyre_ras_log_fini(&sdev->ras);
}

static int init_software(struct spyre_device *sdev)
{
	struct drm_device *drm = &sdev->drm;
	int ret;

	init_rwsem(&sdev->reset_sem);
	init_rwsem(&sdev->mmio_sem);
	spin_lock_init(&sdev->time_lock);
	spin_lock_init(&sdev->wake_lock);
	spin_lock_init(&sdev->peer_lock);
	xa_init_flags(&sdev->ctxs, XA_FLAGS_ALLOC1);
	INIT_LIST_HEAD(&sdev->limbo);
	INIT_LIST_HEAD(&sdev->bos);
	INIT_LIST_HEAD(&sdev->peers);
	INIT_LIST_HEAD(&sdev->imports);
	INIT_LIST_HEAD(&sdev->users.list);
	spyre_reset_init(sdev);
	spyre_telemetry_init(sdev);
	ret = spyre_ras_log_init(&sdev->ras, 512);
	if (ret)
		return ret;
	ret = drmm_add_action_or_reset(drm, free_xarray, NULL);
	if (!ret)
		ret = drmm_mutex_init(drm, &sdev->limbo_lock);
	if (!ret)
		ret = drmm_mutex_init(drm, &sdev->bo_lock);
	if (!ret)
		ret = drmm_mutex_init(drm, &sdev->revoke_lock);
	if (!ret)
		ret = drmm_mutex_init(drm, &sdev->users.lock);
	if (!ret)
		ret = drmm_mutex_init(drm, &sdev->telemetry.lock);
	if (!ret)
		ret = spyre_submits_init(sdev);
	return ret;
}

static void first_generation(struct spyre_device *sdev)
{
	sdev->gen = spyre_read(sdev, SPYRE_REG_RESET_GEN);
	sdev->fw_gen = sdev->gen;
}

/* What the card says of itself must be such that everything after can rely on it. */
static int read_identity(struct spyre_device *sdev)
{
	struct drm_device *drm = &sdev->drm;
	u64 aperture_bar = pci_resource_len(sdev->pdev, SPYRE_BAR_APERTURE);
	u32 id = spyre_read(sdev, SPYRE_REG_ID);
	unsigned int i;

	if (id != SPYRE_ID_MAGIC) {
		drm_err(drm, "card does not answer: identity register reads 0x%08x\n", id);
		return -ENODEV;
	}
	sdev->hw_version = spyre_read(sdev, SPYRE_REG_HWVER);
	if (sdev->hw_version >> 16 != SPYRE_HWVER_MAJOR) {
		drm_err(drm, "hardware version %u.%u is not one this driver knows (%u.x)\n",
			sdev->hw_version >> 16, sdev->hw_version & 0xffff, SPYRE_HWVER_MAJOR);
		return -ENODEV;
	}
	sdev->mem_size = spyre_read64(sdev, SPYRE_REG_MEM_SIZE);
	sdev->aperture_size = spyre_read64(sdev, SPYRE_REG_APERTURE_SIZE);
	sdev->fw_reserved = spyre_read(sdev, SPYRE_REG_FW_RESERVED);
	sdev->db_pages = spyre_read(sdev, SPYRE_REG_DB_PAGES);
	sdev->soc_hz = spyre_read(sdev, SPYRE_REG_TIME_HZ);
	sdev->core_hz = spyre_read(sdev, SPYRE_REG_CORE_HZ);
	sdev->area_size = min_t(u64, sdev->aperture_size / AREA_PART, AREA_MAX) &
		~(SPYRE_PAGE_SIZE - 1);
	if (!sdev->soc_hz || sdev->aperture_size > aperture_bar ||
	    sdev->area_size < AREA_MIN || sdev->mem_size > SPYRE_DMVA_SIZE ||
	    sdev->mem_size < sdev->fw_reserved + sdev->area_size + SPYRE_PAGE_SIZE ||
	    sdev->db_pages < SPYRE_DB_BLOCK_PAGES || sdev->db_pages > SPYRE_DB_PAGES) {
		drm_err(drm, "card describes itself in a way that cannot be: memory %llu, aperture %llu of %llu, reserved %u, doorbells %u, counter %u Hz\n",
			sdev->mem_size, sdev->aperture_size, aperture_bar, sdev->fw_reserved,
			sdev->db_pages, sdev->soc_hz);
		return -EINVAL;
	}
	for (i = 0; i < 16; i += 4)
		*(__le32 *)(sdev->serial + i) =
			cpu_to_le32(spyre_read(sdev, SPYRE_REG_SERIAL + i));
	for (i = 0; i < 16 && sdev->serial[i]; i++)
		if (sdev->serial[i] < ' ' || sdev->serial[i] > '~')
			sdev->serial[i] = '?';
	first_generation(sdev);
	return 0;
}

static int map_bars(struct spyre_device *sdev)
{
	struct pci_dev *pdev = sdev->pdev;
	struct device *dev = &pdev->dev;
	int ret;

	ret = pcim_enable_device(pdev);
	if (ret)
		return ret;
	ret = pcim_request_all_regions(pdev, "spyre");
	if (ret)
		return ret;
	/* What is mapped below, and all that SPYRE_DB_PAGES doorbells need, is inside the BARs. */
	BUILD_BUG_ON((u64)SPYRE_DB_PAGES * SPYRE_DB_PAGE_SIZE > SPYRE_BAR_DOORBELLS_SIZE);
	if (pci_resource_len(pdev, SPYRE_BAR_REGS) < SPYRE_BAR_REGS_SIZE ||
	    pci_resource_len(pdev, SPYRE_BAR_DOORBELLS) < SPYRE_BAR_DOORBELLS_SIZE) {
		drm_err(&sdev->drm, "BARs are missing or too small: is there enough 64-bit PCI space?\n");
		return -ENODEV;
	}
	sdev->aperture_phys = pci_resource_start(pdev, SPYRE_BAR_APERTURE);
	sdev->doorbell_phys = pci_resource_start(pdev, SPYRE_BAR_DOORBELLS);
	sdev->regs = devm_ioremap(dev, pci_resource_start(pdev, SPYRE_BAR_REGS),
				  SPYRE_BAR_REGS_SIZE);
	sdev->doorbells = devm_ioremap(dev, sdev->doorbell_phys, SPYRE_BAR_DOORBELLS_SIZE);
	if (!sdev->regs || !sdev->doorbells)
		return -ENOMEM;
	ret = dma_set_mask_and_coherent(dev, DMA_BIT_MASK(52));
	if (ret) {
		drm_err(&sdev->drm, "no DMA addresses of 52 bits (%d)\n", ret);
		return ret;
	}
	/* Exporters may join pages as they like: whatever comes is cut into pages of the tables. */
	dma_set_max_seg_size(dev, UINT_MAX);
	return 0;
}

/* For good: after it the driver touches neither card nor bus, whatever files are still open. */
static void spyre_stop(struct spyre_device *sdev)
{
	WRITE_ONCE(sdev->gone, true);
	spyre_submits_fail(sdev, -ENODEV);
	/* Whoever waits for the firmware under reset_sem gives up now. */
	spyre_mbox_stop(sdev, -ENODEV);
	spyre_reset_fini(sdev);
	spyre_telemetry_fini(sdev);
	down_write(&sdev->reset_sem);
	sdev->card_ok = false;
	spyre_recovery_over(sdev);
	spyre_show_card(sdev, false);
	spyre_submits_fail(sdev, -ENODEV);
	spyre_fw_stop(sdev);
	pci_clear_master(sdev->pdev);
	spyre_lose_all(sdev, SPYRE_ERR_RESET);
	up_write(&sdev->reset_sem);
	spyre_peers_revoke(sdev);
	spyre_submits_fini(sdev);
	disable_delayed_work_sync(&sdev->mem.scrub_work);
	spyre_mem_unlist(sdev);
	spyre_bos_off_bus(sdev);
}

/*
 * What the card remembers may keep its firmware from booting, an uncorrected error of its memory
 * above all. A reset of the function forgets it. The PCI core's own way to one takes the device
 * lock, which probe has, and calls us. reset_sem: write.
 */
static int boot_anew(struct spyre_device *sdev)
{
	struct pci_dev *pdev = sdev->pdev;
	int ret;

	drm_warn(&sdev->drm, "resetting the function, and booting once more\n");
	pci_save_state(pdev);
	ret = pcie_reset_flr(pdev, PCI_RESET_DO_RESET);
	pci_restore_state(pdev);
	if (ret)
		return ret;
	first_generation(sdev);
	return spyre_boot_and_restore(sdev, false);
}

static int spyre_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct spyre_device *sdev;
	int ret;

	sdev = devm_drm_dev_alloc(&pdev->dev, &spyre_driver, struct spyre_device, drm);
	if (IS_ERR(sdev))
		return PTR_ERR(sdev);
	sdev->pdev = pdev;
	/*
	 * Doorbells are 4 KiB apart and belong to different users, and the card's host pages are
	 * 4 KiB: with larger pages a mapping would show a neighbour's.
	 */
	if (PAGE_SIZE != SPYRE_DB_PAGE_SIZE) {
		drm_err(&sdev->drm, "this kernel has pages of %lu bytes, the card needs %u: boot a kernel with 4 KiB pages\n",
			PAGE_SIZE, SPYRE_DB_PAGE_SIZE);
		return -EOPNOTSUPP;
	}
	ret = init_software(sdev);
	if (ret)
		return ret;
	ret = map_bars(sdev);
	if (ret)
		return ret;
	ret = read_identity(sdev);
	if (ret)
		return ret;
	sdev->area = devm_ioremap_wc(&pdev->dev, sdev->aperture_phys, sdev->area_size);
	sdev->db_blocks = drmm_kcalloc(&sdev->drm, BITS_TO_LONGS(SPYRE_DB_BLOCKS), sizeof(long),
				       GFP_KERNEL);
	if (!sdev->area || !sdev->db_blocks)
		return -ENOMEM;
	ret = spyre_tables_init(sdev);
	if (!ret)
		ret = spyre_mem_init(sdev);
	if (!ret)
		ret = spyre_mbox_init(sdev);
	if (ret)
		return ret;
	ret = spyre_fw_load(sdev);
	if (ret)
		return ret;
	/*
	 * A kernel before us (kexec) may have left the core running on memory that is ours now.
	 */
	spyre_fw_stop(sdev);
	pci_set_master(pdev);
	pci_set_drvdata(pdev, sdev);
	ret = spyre_irq_init(sdev);
	if (ret)
		goto err_fw;

	down_write(&sdev->reset_sem);
	/* What was in card memory before us may be anybody's. */
	ret = spyre_boot_and_restore(sdev, false);
	if (ret == -EREMOTEIO)
		ret = boot_anew(sdev);
	if (!ret)
		spyre_show_card(sdev, true);
	up_write(&sdev->reset_sem);
	if (ret)
		goto err_boot;
	spyre_mem_all_dirty(sdev);
	ret = spyre_mem_list(sdev);
	if (!ret)
		ret = drm_dev_register(&sdev->drm, 0);
	if (ret)
		goto err_boot;
	spyre_hwmon_init(sdev);
	spyre_ras_init(sdev);
	spyre_debugfs_init(sdev);
	pci_save_state(pdev);
	drm_info(&sdev->drm,
		 "serial %s, firmware %s (protocol %u.%u), %llu MiB, %u cores, %u vector%s\n",
		 sdev->serial, sdev->info.version, sdev->info.proto >> 16,
		 sdev->info.proto & 0xffff,
		 sdev->mem_size >> 20, hweight32(sdev->info.cores), sdev->irq.vectors,
		 str_plural(sdev->irq.vectors));
	return 0;

err_boot:
	/* A boot that failed may have asked for a reset, and left a context to be freed. */
	spyre_stop(sdev);
	spyre_irq_fini(sdev);
err_fw:
	pci_clear_master(pdev);
	spyre_fw_unload(sdev);
	return ret;
}

static void spyre_remove(struct pci_dev *pdev)
{
	struct spyre_device *sdev = pci_get_drvdata(pdev);

	spyre_ras_fini(sdev);
	drm_dev_unplug(&sdev->drm);
	spyre_stop(sdev);
	spyre_irq_fini(sdev);
	spyre_fw_unload(sdev);
}

/* Reboot and kexec: the card must not write into the memory of the next kernel. */
static void spyre_shutdown(struct pci_dev *pdev)
{
	struct spyre_device *sdev = pci_get_drvdata(pdev);

	/* Whoever waits for the firmware under reset_sem gives up now. */
	spyre_mbox_stop(sdev, -ENODEV);
	down_write(&sdev->reset_sem);
	sdev->card_ok = false;
	/* Again: a reset may have started it meanwhile. */
	spyre_mbox_stop(sdev, -ENODEV);
	spyre_submits_fail(sdev, -ENODEV);
	spyre_fw_stop(sdev);
	pci_clear_master(pdev);
	up_write(&sdev->reset_sem);
}

/*
 * Suspend: what does not reach a boundary in time fails with RESET at resume, as after a firmware
 * restart. The card keeps its memory over the wake-up reset by the self-refresh bit; if it did
 * not, contexts are lost.
 */
static int spyre_suspend(struct device *dev)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);
	u32 ctrl;

	down_write(&sdev->reset_sem);
	if (sdev->card_ok) {
		spyre_quiesce(sdev);
		spyre_submits_pause(sdev);
		sdev->card_ok = false;
		spyre_show_card(sdev, false);
		spyre_mbox_stop(sdev, -EIO);
		spyre_fw_stop(sdev);
		ctrl = spyre_read(sdev, SPYRE_REG_MCU_CTRL);
		spyre_write(sdev, SPYRE_REG_MCU_CTRL, ctrl | SPYRE_MCU_CTRL_SELF_REFRESH);
		sdev->suspended = true;
	}
	up_write(&sdev->reset_sem);
	return 0;
}

static int spyre_resume(struct device *dev)
{
	struct spyre_device *sdev = dev_get_drvdata(dev);
	bool kept;
	int ret;

	down_write(&sdev->reset_sem);
	if (!sdev->suspended) {
		up_write(&sdev->reset_sem);
		return 0;
	}
	sdev->suspended = false;
	spyre_write(sdev, SPYRE_REG_MCU_CTRL, 0);
	kept = spyre_read(sdev, SPYRE_REG_RESET_GEN) == sdev->fw_gen;
	if (!kept) {
		drm_warn(&sdev->drm, "card memory was lost while suspended\n");
		/* Others wait for the end of it, but for those that still have that memory. */
		WRITE_ONCE(sdev->recovering, true);
		up_write(&sdev->reset_sem);
		spyre_peers_revoke(sdev);
		down_write(&sdev->reset_sem);
		spyre_lose_all(sdev, SPYRE_ERR_RESET);
	}
	pci_set_master(sdev->pdev);
	ret = spyre_boot_and_restore(sdev, kept);
	if (!ret) {
		/*
		 * The core's restore has used up what was saved, and a reset of the slot needs it.
		 */
		pci_save_state(sdev->pdev);
		sdev->fw_gen = spyre_read(sdev, SPYRE_REG_RESET_GEN);
		spyre_show_card(sdev, true);
		if (!kept)
			spyre_recovery_over(sdev);
		/* It stopped looking when it found the card away. */
		spyre_reset_watch(sdev);
	} else {
		drm_err(&sdev->drm, "card did not come back from suspend (%d)\n", ret);
		/* Whoever comes waits for the reset below. */
		WRITE_ONCE(sdev->recovering, true);
	}
	up_write(&sdev->reset_sem);
	if (ret)
		spyre_reset_request(sdev, SPYRE_RUNG_FLR, "resume failed");
	return 0;
}

/*
 * What a sleep of the machine does to this card alone: in a machine whose other devices do not live
 * through one, and for who debugs it.
 */
int spyre_sleep(struct spyre_device *sdev, u32 ms)
{
	struct device *dev = &sdev->pdev->dev;

	/*
	 * As the core calls them, and so that no reset or removal comes in between. Only a try:
	 * removal holds the lock while it waits for callers of debugfs.
	 */
	if (!device_trylock(dev))
		return -EBUSY;
	spyre_suspend(dev);
	msleep_interruptible(ms);
	spyre_resume(dev);
	device_unlock(dev);
	return 0;
}

static DEFINE_SIMPLE_DEV_PM_OPS(spyre_pm_ops, spyre_suspend, spyre_resume);

static const struct pci_device_id spyre_ids[] = {
	{ PCI_DEVICE(SPYRE_PCI_VENDOR, SPYRE_PCI_DEVICE_PF) },
	{ }
};
MODULE_DEVICE_TABLE(pci, spyre_ids);

static struct pci_driver spyre_pci_driver = {
	.name = "spyre",
	.id_table = spyre_ids,
	.probe = spyre_probe,
	.remove = spyre_remove,
	.shutdown = spyre_shutdown,
	.err_handler = &spyre_error_handlers,
	.dev_groups = spyre_sysfs_groups,
	.driver.pm = pm_sleep_ptr(&spyre_pm_ops),
};

static int __init spyre_init(void)
{
	spyre_cover_begin();
	return pci_register_driver(&spyre_pci_driver);
}
module_init(spyre_init);

static void __exit spyre_exit_module(void)
{
	pci_unregister_driver(&spyre_pci_driver);
	/*
	 * Fences let go of the module in RCU callbacks, which are in it. So is the way out of who
	 * gave the last reference away: a thread that is preempted there has not called the
	 * scheduler by itself.
	 */
	rcu_barrier();
	synchronize_rcu_tasks();
	spyre_cover_end();
}
module_exit(spyre_exit_module);

MODULE_DESCRIPTION("IBM Spyre accelerator");
MODULE_LICENSE("GPL");

#ifdef SPYRE_KUNIT
#include "tests/spyre_drv_kunit.c"
#endif
