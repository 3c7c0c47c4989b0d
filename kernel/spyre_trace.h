/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM spyre

#if !defined(SPYRE_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define SPYRE_TRACE_H

#include <linux/device.h>
#include <linux/tracepoint.h>

TRACE_EVENT(spyre_boot,
	TP_PROTO(struct device *dev, u64 ns, u32 version),
	TP_ARGS(dev, ns, version),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u64, ns)
		__field(u32, version)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->ns = ns;
		__entry->version = version;
	),
	TP_printk("%s ns=%llu protocol=%u.%u", __get_str(dev), __entry->ns,
		  __entry->version >> 16, __entry->version & 0xffff)
);

TRACE_EVENT(spyre_mbox_call,
	TP_PROTO(struct device *dev, u32 type, u32 tag),
	TP_ARGS(dev, type, tag),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, type)
		__field(u32, tag)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->type = type;
		__entry->tag = tag;
	),
	TP_printk("%s type=%u tag=%u", __get_str(dev), __entry->type, __entry->tag)
);

TRACE_EVENT(spyre_mbox_event,
	TP_PROTO(struct device *dev, u32 type, u32 tag, u32 status),
	TP_ARGS(dev, type, tag, status),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, type)
		__field(u32, tag)
		__field(u32, status)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->type = type;
		__entry->tag = tag;
		__entry->status = status;
	),
	TP_printk("%s type=0x%x tag=%u status=%u", __get_str(dev), __entry->type, __entry->tag,
		  __entry->status)
);

TRACE_EVENT(spyre_queue_event,
	TP_PROTO(struct device *dev, u32 vector, u32 ctx, u32 arm),
	TP_ARGS(dev, vector, ctx, arm),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, vector)
		__field(u32, ctx)
		__field(u32, arm)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->vector = vector;
		__entry->ctx = ctx;
		__entry->arm = arm;
	),
	TP_printk("%s vector=%u ctx=%u arm=%u", __get_str(dev), __entry->vector, __entry->ctx,
		  __entry->arm)
);

DECLARE_EVENT_CLASS(spyre_ctx,
	TP_PROTO(struct device *dev, u32 ctx, int result),
	TP_ARGS(dev, ctx, result),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, ctx)
		__field(int, result)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->ctx = ctx;
		__entry->result = result;
	),
	TP_printk("%s ctx=%u result=%d", __get_str(dev), __entry->ctx, __entry->result)
);

DEFINE_EVENT(spyre_ctx, spyre_ctx_create,
	TP_PROTO(struct device *dev, u32 ctx, int result), TP_ARGS(dev, ctx, result));
DEFINE_EVENT(spyre_ctx, spyre_ctx_close,
	TP_PROTO(struct device *dev, u32 ctx, int result), TP_ARGS(dev, ctx, result));

DECLARE_EVENT_CLASS(spyre_bind,
	TP_PROTO(struct device *dev, u32 ctx, bool host, u64 addr, u32 pages),
	TP_ARGS(dev, ctx, host, addr, pages),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, ctx)
		__field(bool, host)
		__field(u64, addr)
		__field(u32, pages)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->ctx = ctx;
		__entry->host = host;
		__entry->addr = addr;
		__entry->pages = pages;
	),
	TP_printk("%s ctx=%u space=%s addr=0x%llx pages=%u", __get_str(dev), __entry->ctx,
		  __entry->host ? "HMVA" : "DMVA", __entry->addr, __entry->pages)
);

DEFINE_EVENT(spyre_bind, spyre_bind,
	TP_PROTO(struct device *dev, u32 ctx, bool host, u64 addr, u32 pages),
	TP_ARGS(dev, ctx, host, addr, pages));
DEFINE_EVENT(spyre_bind, spyre_unbind,
	TP_PROTO(struct device *dev, u32 ctx, bool host, u64 addr, u32 pages),
	TP_ARGS(dev, ctx, host, addr, pages));

TRACE_EVENT(spyre_queue_create,
	TP_PROTO(struct device *dev, u32 ctx, u32 page, u32 entries, int result),
	TP_ARGS(dev, ctx, page, entries, result),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, ctx)
		__field(u32, page)
		__field(u32, entries)
		__field(int, result)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->ctx = ctx;
		__entry->page = page;
		__entry->entries = entries;
		__entry->result = result;
	),
	TP_printk("%s ctx=%u page=%u entries=%u result=%d", __get_str(dev), __entry->ctx,
		  __entry->page, __entry->entries, __entry->result)
);

DECLARE_EVENT_CLASS(spyre_queue,
	TP_PROTO(struct device *dev, u32 ctx, u32 page, int result),
	TP_ARGS(dev, ctx, page, result),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, ctx)
		__field(u32, page)
		__field(int, result)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->ctx = ctx;
		__entry->page = page;
		__entry->result = result;
	),
	TP_printk("%s ctx=%u page=%u result=%d", __get_str(dev), __entry->ctx, __entry->page,
		  __entry->result)
);

DEFINE_EVENT(spyre_queue, spyre_queue_destroy,
	TP_PROTO(struct device *dev, u32 ctx, u32 page, int result),
	TP_ARGS(dev, ctx, page, result));
DEFINE_EVENT(spyre_queue, spyre_queue_reset,
	TP_PROTO(struct device *dev, u32 ctx, u32 page, int result),
	TP_ARGS(dev, ctx, page, result));

TRACE_EVENT(spyre_wait_begin,
	TP_PROTO(struct device *dev, u32 count, s64 timeout),
	TP_ARGS(dev, count, timeout),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, count)
		__field(s64, timeout)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->count = count;
		__entry->timeout = timeout;
	),
	TP_printk("%s count=%u timeout=%lld", __get_str(dev), __entry->count, __entry->timeout)
);

TRACE_EVENT(spyre_wait_end,
	TP_PROTO(struct device *dev, int result),
	TP_ARGS(dev, result),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(int, result)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->result = result;
	),
	TP_printk("%s result=%d", __get_str(dev), __entry->result)
);

TRACE_EVENT(spyre_ras,
	TP_PROTO(struct device *dev, u32 code, u32 severity, u32 ctx, u32 queue, u64 addr),
	TP_ARGS(dev, code, severity, ctx, queue, addr),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, code)
		__field(u32, severity)
		__field(u32, ctx)
		__field(u32, queue)
		__field(u64, addr)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->code = code;
		__entry->severity = severity;
		__entry->ctx = ctx;
		__entry->queue = queue;
		__entry->addr = addr;
	),
	TP_printk("%s code=0x%x severity=%u ctx=%u queue=%d addr=0x%llx", __get_str(dev),
		  __entry->code, __entry->severity, __entry->ctx, (int)__entry->queue,
		  __entry->addr)
);

TRACE_EVENT(spyre_submit,
	TP_PROTO(struct device *dev, u64 context, u64 seqno, u32 count),
	TP_ARGS(dev, context, seqno, count),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u64, context)
		__field(u64, seqno)
		__field(u32, count)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->context = context;
		__entry->seqno = seqno;
		__entry->count = count;
	),
	TP_printk("%s fence=%llu:%llu count=%u", __get_str(dev), __entry->context,
		  __entry->seqno, __entry->count)
);

TRACE_EVENT(spyre_submit_done,
	TP_PROTO(struct device *dev, u64 context, u64 seqno, int error),
	TP_ARGS(dev, context, seqno, error),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u64, context)
		__field(u64, seqno)
		__field(int, error)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->context = context;
		__entry->seqno = seqno;
		__entry->error = error;
	),
	TP_printk("%s fence=%llu:%llu error=%d", __get_str(dev), __entry->context,
		  __entry->seqno, __entry->error)
);

TRACE_EVENT(spyre_submit_blame,
	TP_PROTO(struct device *dev, u32 ctx, u32 kind, u32 ms),
	TP_ARGS(dev, ctx, kind, ms),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, ctx)
		__field(u32, kind)
		__field(u32, ms)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->ctx = ctx;
		__entry->kind = kind;
		__entry->ms = ms;
	),
	TP_printk("%s ctx=%u kind=%u ms=%u", __get_str(dev), __entry->ctx, __entry->kind,
		  __entry->ms)
);

TRACE_EVENT(spyre_reset,
	TP_PROTO(struct device *dev, u32 rung, const char *reason),
	TP_ARGS(dev, rung, reason),
	TP_STRUCT__entry(
		__string(dev, dev_name(dev))
		__field(u32, rung)
		__string(reason, reason)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->rung = rung;
		__assign_str(reason);
	),
	TP_printk("%s rung=%u reason=%s", __get_str(dev), __entry->rung, __get_str(reason))
);

#endif

#undef TRACE_INCLUDE_PATH
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_PATH .
#define TRACE_INCLUDE_FILE spyre_trace
#include <trace/define_trace.h>
