// SPDX-License-Identifier: GPL-2.0-only
/*
 * Quotas: one uid may hold half of the card's contexts and half of its queues.
 */
#include <linux/slab.h>

#include "spyre_drv.h"

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
