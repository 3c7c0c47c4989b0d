/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties of a running card: its state, its counters and sensors to read (qom-get), its faults
 * to set (qom-set). The names of counters and of the model's faults are the model's.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"

#include "spyre.h"

#define COUNTERS_MAX 1024

const char *spyre_state_name(uint64_t state)
{
	static const char *const names[] = {
		[SPYRE_STATE_UNSPECIFIED] = "UNSPECIFIED",
		[SPYRE_STATE_OFFLINE] = "OFFLINE",
		[SPYRE_STATE_BOOTING] = "BOOTING",
		[SPYRE_STATE_SHUTTING_DOWN] = "SHUTTING_DOWN",
		[SPYRE_STATE_ONLINE] = "ONLINE",
		[SPYRE_STATE_RUNNING_DIAGNOSTICS] = "RUNNING_DIAGNOSTICS",
		[SPYRE_STATE_IN_ERROR] = "IN_ERROR",
		[SPYRE_STATE_REMOVED] = "REMOVED",
	};

	return state < ARRAY_SIZE(names) ? names[state] : "UNSPECIFIED";
}

static bool spyre_is_live(SpyreState *s, Error **errp)
{
	if (s->card && !qatomic_read(&s->dead))
		return true;
	error_setg(errp, "the card is not there: it is not realized yet, or unplugged");
	return false;
}

static char *spyre_get_state(Object *obj, Error **errp)
{
	SpyreState *s = SPYRE(obj);

	if (!spyre_is_live(s, errp))
		return NULL;
	if (s->removed)
		return g_strdup(spyre_state_name(SPYRE_STATE_REMOVED));
	return g_strdup(spyre_state_name(spyre_card_mmio_read(s->card, SPYRE_REG_STATE, 4)));
}

/* opaque: the counter's index, which the model keeps for a card's life. */
static void spyre_get_counter(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
	SpyreState *s = SPYRE(obj);
	g_autofree struct spyre_counter *all = NULL;
	size_t i = (uintptr_t)opaque;
	uint64_t value;

	if (!spyre_is_live(s, errp))
		return;
	all = g_new0(struct spyre_counter, COUNTERS_MAX);
	if (i >= MIN(spyre_card_counters(s->card, all, COUNTERS_MAX), COUNTERS_MAX)) {
		error_setg(errp, "the card has no counter %s", name);
		return;
	}
	value = all[i].value;
	visit_type_uint64(v, name, &value, errp);
}

bool spyre_add_counters(SpyreState *s, Error **errp)
{
	g_autofree struct spyre_counter *all = g_new0(struct spyre_counter, COUNTERS_MAX);
	size_t i, n = spyre_card_counters(s->card, all, COUNTERS_MAX);

	for (i = 0; i < MIN(n, COUNTERS_MAX); i++) {
		/* What was configured (cores) and what is now are two properties. */
		bool taken = object_property_find(OBJECT(s), all[i].name);
		g_autofree char *name = g_strconcat(taken ? "current-" : "", all[i].name, NULL);

		if (!object_property_try_add(OBJECT(s), name, "uint64", spyre_get_counter, NULL,
					     NULL, (void *)(uintptr_t)i, errp))
			return false;
	}
	return true;
}

/* opaque: enum spyre_fault */
static void spyre_set_fault(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
	SpyreState *s = SPYRE(obj);
	enum spyre_fault fault = (uintptr_t)opaque;
	uint64_t arg;
	int ret;

	if (!visit_type_uint64(v, name, &arg, errp) || !spyre_is_live(s, errp))
		return;
	ret = spyre_card_inject(s->card, fault, arg);
	if (ret < 0)
		error_setg_errno(errp, -ret, "%s: the card refuses the value %" PRIu64, name, arg);
}

static void spyre_set_link(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
	SpyreState *s = SPYRE(obj);
	uint64_t arg;

	if (!visit_type_uint64(v, name, &arg, errp) || !spyre_is_live(s, errp))
		return;
	spyre_train_link(s, MIN(arg >> 8, UINT_MAX), arg & 0xff, errp);
}

static void spyre_set_delay(Object *obj, Visitor *v, const char *name, void *opaque, Error **errp)
{
	SpyreState *s = SPYRE(obj);
	uint64_t arg;

	if (!visit_type_uint64(v, name, &arg, errp) || !spyre_is_live(s, errp))
		return;
	if (arg > 60 * NANOSECONDS_PER_SECOND) {
		error_setg(errp, "%s: %" PRIu64 " ns is more than 60 seconds", name, arg);
		return;
	}
	spyre_delay_irq(s, arg);
}

static void spyre_set_aer(Object *obj, const char *value, Error **errp)
{
	SpyreState *s = SPYRE(obj);

	if (spyre_is_live(s, errp))
		spyre_inject_aer(s, value, errp);
}

static void spyre_set_removal(Object *obj, bool value, Error **errp)
{
	SpyreState *s = SPYRE(obj);

	if (!spyre_is_live(s, errp))
		return;
	if (!value) {
		error_setg(errp, "a card that was pulled out does not come back; use device_del "
				 "and device_add");
		return;
	}
	spyre_surprise_removal(s);
}

void spyre_class_add_properties(ObjectClass *oc)
{
	unsigned int f;

	object_class_property_add_str(oc, "state", spyre_get_state, NULL);
	object_class_property_set_description(oc, "state", "Device state, read-only");
	for (f = 0; f < SPYRE_FAULTS; f++) {
		g_autofree char *name = g_strdup_printf("inject-%s", spyre_fault_name(f));

		object_class_property_add(oc, name, "uint64", NULL, spyre_set_fault, NULL,
					  (void *)(uintptr_t)f);
		object_class_property_set_description(oc, name,
						      "Fault to inject (qom-set), its argument");
	}
	object_class_property_add(oc, "inject-delayed-irq", "uint64", NULL, spyre_set_delay, NULL,
				  NULL);
	object_class_property_set_description(
		oc, "inject-delayed-irq",
		"Nanoseconds of card time that the next interrupt is late");
	object_class_property_add(oc, "inject-link-train", "uint64", NULL, spyre_set_link, NULL,
				  NULL);
	object_class_property_set_description(
		oc, "inject-link-train",
		"Trained link: speed code (1 to 5) << 8 | lanes; a reset restores it");
	object_class_property_add_str(oc, "inject-aer", NULL, spyre_set_aer);
	object_class_property_set_description(oc, "inject-aer", "correctable, non-fatal or fatal");
	object_class_property_add_bool(oc, "inject-surprise-removal", NULL, spyre_set_removal);
	object_class_property_set_description(oc, "inject-surprise-removal",
					      "on: pulled out, without a word to the guest");
}
