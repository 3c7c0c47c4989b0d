// SPDX-License-Identifier: MIT
/*
 * Who is served next, by the core and by each kind of engine.
 *
 * Between the four classes service is shared by weight 1:2:4:8. Each class has a virtual time that
 * grows with the service it had, divided by its weight; the class with the smallest is next. A class
 * that had nothing to do joins at the present, so it can neither save up service nor be starved.
 * Inside a class contexts take turns, inside a context its queues do.
 *
 * Service is counted in modelled SoC cycles of the engine, or in control blocks for the core: a class
 * with long jobs gets fewer of them.
 *
 * Kernel queues are in no class. Those that wait get every other turn, one after the other: what they run
 * is waited for by others in the kernel, so no number or priority of user queues may hold it up for longer
 * than a job each time.
 */
#include "firmware.h"

#define TURNS_OF_QUEUES	4	/* per turn of the loop */

/* The queues of one context that wait, in one class, for one kind of service. */
struct turn_taker {
	struct node queues;
	struct node link;	/* in the class, while there are queues */
};

struct service_class {
	struct node takers;
	u64 time;
};

struct service {
	struct service_class class[SPYRE_PRIORITIES];
	struct node kernel;	/* kernel queues that wait */
	u8 kernel_last;		/* one of them was served last */
	u64 now;		/* virtual time of the class served last */
	u32 waiting;		/* queues */
};

static struct service service[FW_KINDS];
static struct turn_taker taker[FW_KINDS][SPYRE_PRIORITIES][FW_CONTEXTS];

void dispatch_init(void)
{
	u32 kind, class, context;

	for (kind = 0; kind < FW_KINDS; kind++) {
		service[kind].now = 0;
		service[kind].waiting = 0;
		service[kind].kernel_last = 0;
		list_init(&service[kind].kernel);
		for (class = 0; class < SPYRE_PRIORITIES; class++) {
			service[kind].class[class].time = 0;
			list_init(&service[kind].class[class].takers);
			for (context = 0; context < FW_CONTEXTS; context++) {
				list_init(&taker[kind][class][context].queues);
				list_init(&taker[kind][class][context].link);
			}
		}
	}
}

void dispatch_push(struct queue *q, u32 kind)
{
	struct service *s = &service[kind];
	struct service_class *class = &s->class[q->priority];
	struct turn_taker *t = &taker[kind][q->priority][q->context];

	q->where = (u8)kind;
	s->waiting++;
	if (q->kernel) {
		list_add_tail(&s->kernel, &q->link);
		return;
	}
	if (list_empty(&class->takers) && class->time < s->now)
		class->time = s->now;
	if (list_empty(&t->queues))
		list_add_tail(&class->takers, &t->link);
	list_add_tail(&t->queues, &q->link);
}

void dispatch_remove(struct queue *q)
{
	u32 kind = q->where;
	struct turn_taker *t = &taker[kind][q->priority][q->context];

	list_del(&q->link);
	if (!q->kernel && list_empty(&t->queues))
		list_del(&t->link);
	service[kind].waiting--;
}

struct queue *dispatch_pop(u32 kind)
{
	struct service *s = &service[kind];
	struct service_class *class = NULL;
	struct turn_taker *t;
	struct queue *q;
	u32 i;

	if (!s->waiting)
		return NULL;
	for (i = SPYRE_PRIORITIES; i--;) {
		struct service_class *c = &s->class[i];

		if (!list_empty(&c->takers) && (!class || c->time < class->time))
			class = c;
	}
	s->kernel_last = !list_empty(&s->kernel) && (!s->kernel_last || !class);
	if (s->kernel_last) {
		q = list_entry(s->kernel.next, struct queue, link);
		dispatch_remove(q);
		q->where = WHERE_TURN;
		return q;
	}
	if (!class)
		return NULL;
	t = list_entry(class->takers.next, struct turn_taker, link);
	q = list_entry(t->queues.next, struct queue, link);
	s->now = class->time;
	dispatch_remove(q);
	if (!list_empty(&t->queues)) {
		list_del(&t->link);
		list_add_tail(&class->takers, &t->link);
	}
	q->where = WHERE_TURN;
	return q;
}

void dispatch_direct(u32 kind, const struct queue *q)
{
	struct service *s = &service[kind];
	struct service_class *class = &s->class[q->priority];

	if (q->kernel)
		return;
	if (class->time < s->now)
		class->time = s->now;
	s->now = class->time;
}

void dispatch_charge(u32 kind, const struct queue *q, u32 cost)
{
	if (!q->kernel)
		service[kind].class[q->priority].time +=
			(u64)cost << (SPYRE_PRIORITIES - 1 - q->priority);
}

int dispatch_waiting(u32 kind)
{
	return service[kind].waiting != 0;
}

int dispatch_wanted(u32 kind, u32 context)
{
	struct service *s = &service[kind];
	const struct node *n;
	u32 class;

	/* A context has one kernel queue at most, and is in a class once. */
	n = s->kernel.next;
	if (n != &s->kernel && (list_entry(n, struct queue, link)->context != context || n->next != &s->kernel))
		return 1;
	for (class = 0; class < SPYRE_PRIORITIES; class++) {
		const struct node *all = &s->class[class].takers;

		n = all->next;
		if (n != all && (n != &taker[kind][class][context].link || n->next != all))
			return 1;
	}
	return 0;
}

int dispatch_turn(u64 now)
{
	struct queue *q;
	u32 kind, e, i;

	for (kind = MCU_ENGINE_DMI; kind < FW_KINDS; kind++) {
		if (kind == MCU_ENGINE_COMPUTE && now < engine_hold())
			continue;
		/* Bounded: each turn of this loop makes an engine busy. */
		while (dispatch_waiting(kind) && (e = engine_idle(kind)) != FW_NONE) {
			q = dispatch_pop(kind);
			if (!q)
				break;
			if (engine_start(e, q, queue_cb(q, q->issue)))
				q->where = WHERE_BLOCKED;
			else
				dispatch_push(q, FW_KIND_CORE);
		}
	}
	for (i = 0; i < TURNS_OF_QUEUES && (q = dispatch_pop(FW_KIND_CORE)); i++)
		queue_run(q, now);
	return dispatch_waiting(FW_KIND_CORE);
}
