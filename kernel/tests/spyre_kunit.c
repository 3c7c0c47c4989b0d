// SPDX-License-Identifier: GPL-2.0-only
/*
 * Runs the suites that are in spyre.ko.
 */
#include <linux/module.h>

#include "../kernel_compat.h"
#include "spyre_kunit.h"

kunit_test_suites(&spyre_ctx_suite, &spyre_irq_suite, &spyre_mbox_suite, &spyre_mem_suite,
		  &spyre_queue_suite, &spyre_ras_suite, &spyre_reset_suite, &spyre_submit_suite,
		  &spyre_table_suite, &spyre_user_suite, &spyre_vm_suite, &spyre_wait_suite);

SPYRE_COMPAT_IMPORT_KUNIT;
MODULE_DESCRIPTION("KUnit tests of the IBM Spyre driver");
MODULE_LICENSE("GPL");
