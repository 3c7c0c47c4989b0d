/* SPDX-License-Identifier: MIT */
/*
 * The binary interface of /dev/accel/accelN, as programs were built with: this compiles as long as it stands.
 * test_uapi compiles it in every way in which programs include the header, and sees that no structure, member or
 * ioctl is left out. A line changes here only if the interface may change: at the end of a structure, or a new ioctl.
 */
#include <stddef.h>

#include "drm/spyre_accel.h"

#ifdef __cplusplus
#define ASSERT static_assert
#else
#define ASSERT _Static_assert
#endif

#define SIZE(type, size) ASSERT(sizeof(struct type) == (size), #type);
#define MEMBER(type, member, offset, size)                                                                             \
	ASSERT(offsetof(struct type, member) == (offset), #type "." #member);                                          \
	ASSERT(sizeof(((struct type *)NULL)->member) == (size), "size of " #type "." #member);
#define NUMBER(name, number) ASSERT((name) == (number), #name);

/* clang-format off */
SIZE(drm_spyre_query, 16)
MEMBER(drm_spyre_query, type, 0, 4)
MEMBER(drm_spyre_query, size, 4, 4)
MEMBER(drm_spyre_query, data, 8, 8)

SIZE(drm_spyre_device_info, 112)
MEMBER(drm_spyre_device_info, hw_version, 0, 4)
MEMBER(drm_spyre_device_info, proto_version, 4, 4)
MEMBER(drm_spyre_device_info, cores, 8, 4)
MEMBER(drm_spyre_device_info, state, 12, 4)
MEMBER(drm_spyre_device_info, core_hz, 16, 4)
MEMBER(drm_spyre_device_info, soc_hz, 20, 4)
MEMBER(drm_spyre_device_info, mem_size, 24, 8)
MEMBER(drm_spyre_device_info, aperture_size, 32, 8)
MEMBER(drm_spyre_device_info, reset_generation, 40, 4)
MEMBER(drm_spyre_device_info, engines, 44, 20)
MEMBER(drm_spyre_device_info, serial, 64, 16)
MEMBER(drm_spyre_device_info, fw_version, 80, 32)

SIZE(drm_spyre_limits, 80)
MEMBER(drm_spyre_limits, contexts_max, 0, 4)
MEMBER(drm_spyre_limits, contexts_used, 4, 4)
MEMBER(drm_spyre_limits, contexts_user_max, 8, 4)
MEMBER(drm_spyre_limits, contexts_user_used, 12, 4)
MEMBER(drm_spyre_limits, queues_max, 16, 4)
MEMBER(drm_spyre_limits, queues_used, 20, 4)
MEMBER(drm_spyre_limits, queues_user_max, 24, 4)
MEMBER(drm_spyre_limits, queues_user_used, 28, 4)
MEMBER(drm_spyre_limits, ring_min, 32, 4)
MEMBER(drm_spyre_limits, ring_max, 36, 4)
MEMBER(drm_spyre_limits, symbols_max, 40, 4)
MEMBER(drm_spyre_limits, wait_entries_max, 44, 4)
MEMBER(drm_spyre_limits, submit_cbs_max, 48, 4)
MEMBER(drm_spyre_limits, submit_syncs_max, 52, 4)
MEMBER(drm_spyre_limits, submits_max, 56, 4)
MEMBER(drm_spyre_limits, submits_used, 60, 4)
MEMBER(drm_spyre_limits, host_user_max, 64, 8)
MEMBER(drm_spyre_limits, host_user_used, 72, 8)

SIZE(drm_spyre_memory_info, 72)
MEMBER(drm_spyre_memory_info, total, 0, 8)
MEMBER(drm_spyre_memory_info, used, 8, 8)
MEMBER(drm_spyre_memory_info, mappable_total, 16, 8)
MEMBER(drm_spyre_memory_info, mappable_used, 24, 8)
MEMBER(drm_spyre_memory_info, largest_free, 32, 8)
MEMBER(drm_spyre_memory_info, table_total, 40, 8)
MEMBER(drm_spyre_memory_info, table_used, 48, 8)
MEMBER(drm_spyre_memory_info, file_device, 56, 8)
MEMBER(drm_spyre_memory_info, file_host, 64, 8)

SIZE(drm_spyre_telemetry, 88)
MEMBER(drm_spyre_telemetry, temp_mc, 0, 4)
MEMBER(drm_spyre_telemetry, power_mw, 4, 4)
MEMBER(drm_spyre_telemetry, energy, 8, 8)
MEMBER(drm_spyre_telemetry, busy, 16, 40)
MEMBER(drm_spyre_telemetry, mem_rd, 56, 8)
MEMBER(drm_spyre_telemetry, mem_wr, 64, 8)
MEMBER(drm_spyre_telemetry, ecc_ce, 72, 4)
MEMBER(drm_spyre_telemetry, ecc_ue, 76, 4)
MEMBER(drm_spyre_telemetry, soc_time, 80, 8)

SIZE(drm_spyre_usage, 96)
MEMBER(drm_spyre_usage, busy, 0, 40)
MEMBER(drm_spyre_usage, bytes, 40, 40)
MEMBER(drm_spyre_usage, cbs, 80, 8)
MEMBER(drm_spyre_usage, errors, 88, 8)

SIZE(drm_spyre_clock, 24)
MEMBER(drm_spyre_clock, soc_time, 0, 8)
MEMBER(drm_spyre_clock, host_ns, 8, 8)
MEMBER(drm_spyre_clock, soc_hz, 16, 4)
MEMBER(drm_spyre_clock, span_ns, 20, 4)

SIZE(drm_spyre_bo_create, 16)
MEMBER(drm_spyre_bo_create, size, 0, 8)
MEMBER(drm_spyre_bo_create, flags, 8, 4)
MEMBER(drm_spyre_bo_create, handle, 12, 4)

SIZE(drm_spyre_bo_info, 16)
MEMBER(drm_spyre_bo_info, handle, 0, 4)
MEMBER(drm_spyre_bo_info, flags, 4, 4)
MEMBER(drm_spyre_bo_info, size, 8, 8)

SIZE(drm_spyre_bo_mmap, 16)
MEMBER(drm_spyre_bo_mmap, handle, 0, 4)
MEMBER(drm_spyre_bo_mmap, pad, 4, 4)
MEMBER(drm_spyre_bo_mmap, offset, 8, 8)

SIZE(drm_spyre_vm_bind, 48)
MEMBER(drm_spyre_vm_bind, op, 0, 4)
MEMBER(drm_spyre_vm_bind, flags, 4, 4)
MEMBER(drm_spyre_vm_bind, handle, 8, 4)
MEMBER(drm_spyre_vm_bind, segment, 12, 4)
MEMBER(drm_spyre_vm_bind, offset, 16, 8)
MEMBER(drm_spyre_vm_bind, size, 24, 8)
MEMBER(drm_spyre_vm_bind, addr, 32, 8)
MEMBER(drm_spyre_vm_bind, space, 40, 4)
MEMBER(drm_spyre_vm_bind, pad, 44, 4)

SIZE(drm_spyre_queue_create, 72)
MEMBER(drm_spyre_queue_create, entries, 0, 4)
MEMBER(drm_spyre_queue_create, priority, 4, 4)
MEMBER(drm_spyre_queue_create, timeout, 8, 8)
MEMBER(drm_spyre_queue_create, flags, 16, 4)
MEMBER(drm_spyre_queue_create, queue, 20, 4)
MEMBER(drm_spyre_queue_create, ring_offset, 24, 8)
MEMBER(drm_spyre_queue_create, ring_size, 32, 8)
MEMBER(drm_spyre_queue_create, status_offset, 40, 8)
MEMBER(drm_spyre_queue_create, status_size, 48, 8)
MEMBER(drm_spyre_queue_create, doorbell_offset, 56, 8)
MEMBER(drm_spyre_queue_create, shadow_at, 64, 4)
MEMBER(drm_spyre_queue_create, response_at, 68, 4)

SIZE(drm_spyre_queue_id, 8)
MEMBER(drm_spyre_queue_id, queue, 0, 4)
MEMBER(drm_spyre_queue_id, pad, 4, 4)

SIZE(drm_spyre_wait_entry, 24)
MEMBER(drm_spyre_wait_entry, kind, 0, 4)
MEMBER(drm_spyre_wait_entry, handle, 4, 4)
MEMBER(drm_spyre_wait_entry, offset, 8, 8)
MEMBER(drm_spyre_wait_entry, value, 16, 8)

SIZE(drm_spyre_wait, 40)
MEMBER(drm_spyre_wait, entries, 0, 8)
MEMBER(drm_spyre_wait, count, 8, 4)
MEMBER(drm_spyre_wait, flags, 12, 4)
MEMBER(drm_spyre_wait, timeout_ns, 16, 8)
MEMBER(drm_spyre_wait, first, 24, 4)
MEMBER(drm_spyre_wait, eventfd, 28, 4)
MEMBER(drm_spyre_wait, id, 32, 8)

SIZE(drm_spyre_wait_cancel, 8)
MEMBER(drm_spyre_wait_cancel, id, 0, 8)

SIZE(drm_spyre_ras, 120)
MEMBER(drm_spyre_ras, seq, 0, 8)
MEMBER(drm_spyre_ras, time_ns, 8, 8)
MEMBER(drm_spyre_ras, soc_time, 16, 8)
MEMBER(drm_spyre_ras, cookie, 24, 8)
MEMBER(drm_spyre_ras, addr, 32, 8)
MEMBER(drm_spyre_ras, code, 40, 4)
MEMBER(drm_spyre_ras, severity, 44, 2)
MEMBER(drm_spyre_ras, category, 46, 2)
MEMBER(drm_spyre_ras, action, 48, 2)
MEMBER(drm_spyre_ras, status, 50, 2)
MEMBER(drm_spyre_ras, queue, 52, 4)
MEMBER(drm_spyre_ras, entry, 56, 4)
MEMBER(drm_spyre_ras, syndrome, 60, 4)
MEMBER(drm_spyre_ras, mode, 64, 4)
MEMBER(drm_spyre_ras, err_code, 68, 4)
MEMBER(drm_spyre_ras, err_pc, 72, 4)
MEMBER(drm_spyre_ras, err_core, 76, 2)
MEMBER(drm_spyre_ras, err_unit, 78, 2)
MEMBER(drm_spyre_ras, nstuck, 80, 4)
MEMBER(drm_spyre_ras, pad, 84, 4)
MEMBER(drm_spyre_ras, stuck, 88, 32)

SIZE(drm_spyre_ras_read, 32)
MEMBER(drm_spyre_ras_read, records, 0, 8)
MEMBER(drm_spyre_ras_read, count, 8, 4)
MEMBER(drm_spyre_ras_read, flags, 12, 4)
MEMBER(drm_spyre_ras_read, after, 16, 8)
MEMBER(drm_spyre_ras_read, dropped, 24, 8)

SIZE(drm_spyre_sync, 16)
MEMBER(drm_spyre_sync, handle, 0, 4)
MEMBER(drm_spyre_sync, flags, 4, 4)
MEMBER(drm_spyre_sync, point, 8, 8)

SIZE(drm_spyre_submit, 40)
MEMBER(drm_spyre_submit, cbs, 0, 8)
MEMBER(drm_spyre_submit, in_syncs, 8, 8)
MEMBER(drm_spyre_submit, out_syncs, 16, 8)
MEMBER(drm_spyre_submit, cb_count, 24, 4)
MEMBER(drm_spyre_submit, in_count, 28, 4)
MEMBER(drm_spyre_submit, out_count, 32, 4)
MEMBER(drm_spyre_submit, flags, 36, 4)

SIZE(drm_spyre_bo_userptr, 24)
MEMBER(drm_spyre_bo_userptr, addr, 0, 8)
MEMBER(drm_spyre_bo_userptr, size, 8, 8)
MEMBER(drm_spyre_bo_userptr, flags, 16, 4)
MEMBER(drm_spyre_bo_userptr, handle, 20, 4)

NUMBER(DRM_IOCTL_SPYRE_QUERY, 0xc0106440)
NUMBER(DRM_IOCTL_SPYRE_BO_CREATE, 0xc0106441)
NUMBER(DRM_IOCTL_SPYRE_BO_INFO, 0xc0106442)
NUMBER(DRM_IOCTL_SPYRE_BO_MMAP, 0xc0106443)
NUMBER(DRM_IOCTL_SPYRE_VM_BIND, 0xc0306444)
NUMBER(DRM_IOCTL_SPYRE_QUEUE_CREATE, 0xc0486445)
NUMBER(DRM_IOCTL_SPYRE_QUEUE_DESTROY, 0x40086446)
NUMBER(DRM_IOCTL_SPYRE_QUEUE_RESET, 0x40086447)
NUMBER(DRM_IOCTL_SPYRE_QUEUE_KICK, 0x40086448)
NUMBER(DRM_IOCTL_SPYRE_WAIT, 0xc0286449)
NUMBER(DRM_IOCTL_SPYRE_WAIT_CANCEL, 0x4008644a)
NUMBER(DRM_IOCTL_SPYRE_RAS_READ, 0xc020644b)
NUMBER(DRM_IOCTL_SPYRE_SUBMIT, 0x4028644c)
NUMBER(DRM_IOCTL_SPYRE_BO_USERPTR, 0xc018644d)
