/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef SPYRE_USER_H
#define SPYRE_USER_H

#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/uidgid.h>

struct spyre_device;

/**
 * struct spyre_users - who has files open on a card
 * @lock: protects @list and every member of its entries but the atomic one
 * @list: of struct spyre_user
 */
struct spyre_users {
	struct mutex lock;	/* see above */
	struct list_head list;
};

/**
 * struct spyre_user - what one uid holds
 * @link: in the list
 * @uid: whose
 * @files: open files, the reference count
 * @contexts: in use
 * @queues: in use
 * @host_pages: pages of host memory behind its buffers and queues
 * @ewaits: eventfd waits
 */
struct spyre_user {
	struct list_head link;
	kuid_t uid;
	unsigned int files;
	unsigned int contexts;
	unsigned int queues;
	u64 host_pages;
	atomic_t ewaits;
};

enum spyre_quota { SPYRE_QUOTA_CONTEXTS, SPYRE_QUOTA_QUEUES };

struct spyre_user *spyre_user_get(struct spyre_device *sdev, kuid_t uid);
struct spyre_user *spyre_user_ref(struct spyre_device *sdev, struct spyre_user *user);
void spyre_user_put(struct spyre_device *sdev, struct spyre_user *user);
int spyre_user_charge(struct spyre_device *sdev, struct spyre_user *user, enum spyre_quota what,
		      bool exempt);
void spyre_user_uncharge(struct spyre_device *sdev, struct spyre_user *user, enum spyre_quota what);
int spyre_user_charge_host(struct spyre_device *sdev, struct spyre_user *user, u64 pages,
			   bool exempt);
void spyre_user_uncharge_host(struct spyre_device *sdev, struct spyre_user *user, u64 pages);
u64 spyre_user_max_host(void);
u32 spyre_user_max(struct spyre_device *sdev, enum spyre_quota what);

#endif
