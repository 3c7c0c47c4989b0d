// SPDX-License-Identifier: GPL-2.0-only
/*
 * Quotas: one uid may hold half of the card's contexts, half of its queues, and a part of the
 * machine's memory in pinned host pages. The memory cgroup counts those too, but where there is
 * none nothing else keeps one user from pinning all there is.
 */
#include <linux/math.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "spyre_drv.h"

static unsigned int host_quota_percent = 50;
module_param(host_quota_percent, uint, 0644);
MODULE_PARM_DESC(host_quota_percent, "part of RAM a user may pin per card (default 50)");

struct spyre_user *spyre_user_get(struct spyre_device *sdev, kuid_t uid)
{
	struct spyre_user *user, *found = NULL;

	mutex_lock(&sdev->users.lock);
	list_for_each_entry(user, &sdev->users.list, link)
		if (uid_eq(user->uid, uid))
			found = user;
	if (!found) {
		found = kzalloc(sizeof(*found), GFP_KERNEL_ACCOUNT);
		if (found) {
			found->uid = uid;
			list_add(&found->link, &sdev->users.list);
		}
	}
	if (found)
		found->files++;
	mutex_unlock(&sdev->users.lock);
	return found;
}

struct spyre_user *spyre_user_ref(struct spyre_device *sdev, struct spyre_user *user)
{
	mutex_lock(&sdev->users.lock);
	user->files++;
	mutex_unlock(&sdev->users.lock);
	return user;
}

void spyre_user_put(struct spyre_device *sdev, struct spyre_user *user)
{
	mutex_lock(&sdev->users.lock);
	if (!--user->files) {
		list_del(&user->link);
		kfree(user);
	}
	mutex_unlock(&sdev->users.lock);
}

/* Of what users can have: one context and one queue are the driver's own. */
u32 spyre_user_max(struct spyre_device *sdev, enum spyre_quota what)
{
	if (what == SPYRE_QUOTA_CONTEXTS)
		return (sdev->info.contexts - 2 + 1) / 2;
	return (sdev->info.queues - 1 + 1) / 2;
}

int spyre_user_charge(struct spyre_device *sdev, struct spyre_user *user, enum spyre_quota what,
		      bool exempt)
{
	u32 *used = what == SPYRE_QUOTA_CONTEXTS ? &user->contexts : &user->queues;
	int ret = 0;

	mutex_lock(&sdev->users.lock);
	if (*used >= spyre_user_max(sdev, what) && !exempt)
		ret = -EDQUOT;
	else
		(*used)++;
	mutex_unlock(&sdev->users.lock);
	return ret;
}

void spyre_user_uncharge(struct spyre_device *sdev, struct spyre_user *user, enum spyre_quota what)
{
	mutex_lock(&sdev->users.lock);
	if (what == SPYRE_QUOTA_CONTEXTS)
		user->contexts--;
	else
		user->queues--;
	mutex_unlock(&sdev->users.lock);
}

/* Pages of host memory one uid may hold. */
u64 spyre_user_max_host(void)
{
	return mult_frac((u64)totalram_pages(), clamp(READ_ONCE(host_quota_percent), 1u, 100u),
			 100u);
}

int spyre_user_charge_host(struct spyre_device *sdev, struct spyre_user *user, u64 pages,
			   bool exempt)
{
	u64 max = spyre_user_max_host();
	int ret = 0;

	mutex_lock(&sdev->users.lock);
	/* The quota may have been lowered below what is in use. */
	if (!exempt && (user->host_pages > max || pages > max - user->host_pages))
		ret = -EDQUOT;
	else
		user->host_pages += pages;
	mutex_unlock(&sdev->users.lock);
	return ret;
}

void spyre_user_uncharge_host(struct spyre_device *sdev, struct spyre_user *user, u64 pages)
{
	mutex_lock(&sdev->users.lock);
	user->host_pages -= pages;
	mutex_unlock(&sdev->users.lock);
}

#ifdef SPYRE_KUNIT
#include "tests/spyre_user_kunit.c"
#endif
