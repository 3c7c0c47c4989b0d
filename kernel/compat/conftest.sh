#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Usage: conftest.sh OUT COMPILER [FLAG]...
# Finds out by compiling what the kernel's interfaces look like and writes the answers to OUT as
# #defines. The only place that knows of differences between kernels; there are no version numbers.
out=$1
shift
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# probe NAME: defines NAME if the program on stdin compiles
probe() {
	name=$1
	cat >"$tmp/t.c"
	if $compiler -c -o "$tmp/t.o" "$tmp/t.c" >/dev/null 2>&1; then
		echo "#define $name 1"
	else
		echo "/* $name: no */"
	fi
}

compiler="$*"
{
	echo "/* made by compat/conftest.sh */"
	# Must compile, or every answer below is worthless.
	probe SPYRE_COMPAT_WORKS <<-'EOF'
	#include <linux/module.h>
	#include <drm/drm_drv.h>
	EOF
	# Before 6.14: struct drm_driver has a date.
	probe SPYRE_HAVE_DRIVER_DATE <<-'EOF'
	#include <drm/drm_drv.h>
	struct drm_driver d = { .date = "20260101" };
	EOF
	# Before 6.13: the namespace is a word, not a string.
	probe SPYRE_HAVE_IMPORT_NS_WORD <<-'EOF'
	#include <linux/module.h>
	MODULE_IMPORT_NS(DMA_BUF);
	EOF
	# Device memory counts in cgroups, and regions of it are described by a struct.
	probe SPYRE_HAVE_DMEM <<-'EOF'
	#include <linux/cgroup_dmem.h>
	struct dmem_cgroup_region *f(const struct dmem_cgroup_init *i) { return dmem_cgroup_register_region(i, "x"); }
	int g(struct dmem_cgroup_region *r, struct dmem_cgroup_pool_state **p) { return dmem_cgroup_try_charge(r, 1, p, 0); }
	EOF
	# Error counters for netlink.
	probe SPYRE_HAVE_DRM_RAS <<-'EOF'
	#include <drm/drm_ras.h>
	int q(struct drm_ras_node *n, u32 id, const char **name, u32 *val);
	struct drm_ras_node n = { .error_counter_range = { 1, 2 }, .query_error_counter = q };
	int f(void) { return drm_ras_node_register(&n); }
	EOF
	# drm_sched_init(sched, args) and not a row of arguments
	probe SPYRE_HAVE_SCHED_ARGS <<-'EOF'
	#include <drm/gpu_scheduler.h>
	int f(struct drm_gpu_scheduler *s, struct drm_sched_init_args *a) { return drm_sched_init(s, a); }
	EOF
	# A scheduler says how many run queues it has.
	probe SPYRE_HAVE_SCHED_RQS <<-'EOF'
	#include <drm/gpu_scheduler.h>
	struct drm_sched_init_args a = { .num_rqs = 1 };
	EOF
	# drm_sched_job_init(job, entity, credits, owner, client)
	probe SPYRE_HAVE_SCHED_CLIENT <<-'EOF'
	#include <drm/gpu_scheduler.h>
	int f(struct drm_sched_job *j, struct drm_sched_entity *e) { return drm_sched_job_init(j, e, 1, 0, 1ull); }
	EOF
} >"$tmp/out"
if ! grep -q 'define SPYRE_COMPAT_WORKS' "$tmp/out"; then
	echo "conftest: the kernel's headers do not compile:" >&2
	printf '#include <linux/module.h>\n#include <drm/drm_drv.h>\n' >"$tmp/t.c"
	$compiler -c -o "$tmp/t.o" "$tmp/t.c" >&2
	exit 1
fi
cmp -s "$tmp/out" "$out" || cp "$tmp/out" "$out"
