// SPDX-License-Identifier: MIT
/*
 * Reading SpyreCode. Two spellings of some properties are in circulation, and numbers are JSON
 * strings or JSON numbers; both are accepted. Whatever is wrong is said with the command's place
 * and name.
 */
#include "rt.h"
#include "plan.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_JOB_BYTES	SPYRE_SEGMENT_SIZE
#define MAX_BUFFER	(64u << 20)

struct parser {
	struct rt_plan *plan;
	rt_file_fn file;
	void *opaque;
	const char *plan_name;
	size_t index;			/* of the command in its plan */
	const char *command;
	json_t *props;
	char **names;			/* of the host buffers */
};

#define BAD(p, fmt, ...)								\
	rt_fail(SPYRERT_ERROR_BAD_SPYRECODE, "%s[%zu] %s: " fmt, (p)->plan_name, (p)->index,	\
		(p)->command, ##__VA_ARGS__)

static enum spyrert_status bad_number(struct parser *p, const char *name, const char *text)
{
	return BAD(p, "'%s' is '%s', which is not a number from 0 to 2^64 - 1", name, text);
}

/* The property under its name or its other spelling (NULL: it has none). */
static json_t *property(struct parser *p, const char *name, const char *other)
{
	json_t *v = json_object_get(p->props, name);

	return v || !other ? v : json_object_get(p->props, other);
}

static enum spyrert_status number(struct parser *p, const char *name, json_t *v, uint64_t *out)
{
	const char *s;
	char *end;

	if (!v)
		return BAD(p, "property '%s' is missing", name);
	if (json_is_integer(v)) {
		if (json_integer_value(v) < 0)
			return BAD(p, "'%s' is %" JSON_INTEGER_FORMAT "; it must not be negative",
				   name, json_integer_value(v));
		*out = (uint64_t)json_integer_value(v);
		return SPYRERT_SUCCESS;
	}
	if (!json_is_string(v))
		return BAD(p, "'%s' must be a number in a string", name);
	s = json_string_value(v);
	errno = 0;
	*out = strtoull(s, &end, !strncmp(s, "0x", 2) || !strncmp(s, "0X", 2) ? 16 : 10);
	if (!isdigit((unsigned char)*s) || *end || errno)
		return bad_number(p, name, s);
	return SPYRERT_SUCCESS;
}

static enum spyrert_status string(struct parser *p, const char *name, json_t *v, const char **out)
{
	if (!v)
		return BAD(p, "property '%s' is missing", name);
	if (!json_is_string(v))
		return BAD(p, "'%s' must be a string", name);
	*out = json_string_value(v);
	return SPYRERT_SUCCESS;
}

/* A device address of the program segment, as the distance from its base. */
static enum spyrert_status device_address(struct parser *p, const char *name, json_t *v,
					  uint64_t *offset)
{
	enum spyrert_status status;
	uint64_t addr;

	status = number(p, name, v, &addr);
	if (status)
		return status;
	if (addr < SPYRE_PROGRAM_BASE || addr >= SPYRE_PROGRAM_BASE + SPYRE_SEGMENT_SIZE)
		return BAD(p,
			   "'%s' 0x%" PRIx64 " is out of program segment bounds [0x%llx, 0x%llx)",
			   name, addr, SPYRE_PROGRAM_BASE, SPYRE_PROGRAM_BASE + SPYRE_SEGMENT_SIZE);
	if (addr % SPYRERT_STICK)
		return BAD(p, "'%s' 0x%" PRIx64 " is not a multiple of 128", name, addr);
	if (addr - SPYRE_PROGRAM_BASE >= p->plan->bytes)
		return BAD(p,
			   "'%s' 0x%" PRIx64 " lies behind the %" PRIu64
			   " bytes that Allocate asked for",
			   name, addr, p->plan->bytes);
	*offset = addr - SPYRE_PROGRAM_BASE;
	return SPYRERT_SUCCESS;
}

static enum spyrert_status check_range(struct parser *p, uint64_t offset, uint64_t size)
{
	if (size > p->plan->bytes || offset > p->plan->bytes - size)
		return BAD(p, "%" PRIu64 " bytes at offset %" PRIu64 " do not fit the %" PRIu64
			   " bytes that Allocate asked for", size, offset, p->plan->bytes);
	return SPYRERT_SUCCESS;
}

/* Index of a host buffer, or -1. */
static int64_t find_buffer(struct parser *p, const char *name)
{
	uint32_t i;

	for (i = 0; i < p->plan->nbuffers; i++)
		if (!strcmp(p->names[i], name))
			return i;
	return -1;
}

static enum spyrert_status add_buffer(struct parser *p, const char *what, const char *name,
				      uint64_t size, uint32_t *index)
{
	struct rt_plan *plan = p->plan;
	uint64_t *sizes;
	char **names;

	if (!*name)
		return BAD(p, "'%s' is empty", what);
	if (find_buffer(p, name) >= 0)
		return BAD(p, "%s '%s' already exists", what, name);
	if (!size || size > MAX_BUFFER)
		return BAD(p, "size %" PRIu64 " of buffer '%s' is not from 1 to %u", size, name,
			   MAX_BUFFER);
	sizes = realloc(plan->buffers, (plan->nbuffers + 1) * sizeof(*sizes));
	if (sizes)
		plan->buffers = sizes;
	names = realloc(p->names, (plan->nbuffers + 1) * sizeof(*names));
	if (names)
		p->names = names;
	if (!sizes || !names || !(names[plan->nbuffers] = strdup(name)))
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	sizes[plan->nbuffers] = size;
	*index = plan->nbuffers++;
	return SPYRERT_SUCCESS;
}

static enum spyrert_status parse_allocate(struct parser *p)
{
	enum spyrert_status status;

	status = number(p, "size", property(p, "size", NULL), &p->plan->bytes);
	if (status)
		return status;
	if (!p->plan->bytes || p->plan->bytes > MAX_JOB_BYTES)
		return BAD(p, "size %" PRIu64 " is not from 1 to %llu, the program segment",
			   p->plan->bytes, MAX_JOB_BYTES);
	if (p->plan->bytes % SPYRERT_STICK)
		return BAD(p, "size %" PRIu64 " is not a multiple of 128", p->plan->bytes);
	return SPYRERT_SUCCESS;
}

static enum spyrert_status parse_init(struct parser *p)
{
	struct rt_init *init = &p->plan->inits[p->plan->ninits];
	enum spyrert_status status;
	const char *name;
	uint8_t *data, *padded;
	size_t bytes;

	status = string(p, "init_bin_file", property(p, "init_bin_file", "file_path"), &name);
	if (!status)
		status = device_address(p, "dev_ptr", property(p, "dev_ptr", NULL), &init->offset);
	if (!status)
		status = number(p, "size", property(p, "size", NULL), &init->bytes);
	if (status)
		return status;
	if (!init->bytes || init->bytes % SPYRERT_STICK)
		return BAD(p, "size %" PRIu64 " is not a multiple of 128 above 0", init->bytes);
	status = check_range(p, init->offset, init->bytes);
	if (status)
		return status;
	status = p->file(p->opaque, name, &data, &bytes);
	if (status)
		return status == SPYRERT_ERROR_BAD_SPYRECODE
			       ? BAD(p, "file '%s' cannot be read", name)
			       : status;
	/* A file may be shorter by less than a stick: its padding is not stored. */
	if ((bytes + SPYRERT_STICK - 1) / SPYRERT_STICK * SPYRERT_STICK < init->bytes) {
		free(data);
		return BAD(p, "file '%s' has %zu bytes, less than size %" PRIu64, name, bytes,
			   init->bytes);
	}
	padded = realloc(data, init->bytes);
	if (!padded) {
		free(data);
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	}
	if (bytes < init->bytes)
		memset(padded + bytes, 0, init->bytes - bytes);
	init->data = padded;
	p->plan->ninits++;
	return SPYRERT_SUCCESS;
}

static enum spyrert_status parse_symbols(struct parser *p, json_t *hcm, struct rt_step *step)
{
	json_t *list = json_object_get(json_object_get(hcm, "vdci"), "symbols"), *v;
	enum spyrert_status status;
	uint64_t value;
	size_t i;

	if (!list)
		return SPYRERT_SUCCESS;
	if (!json_is_array(list))
		return BAD(p, "hcm: vdci.symbols must be an array");
	if (json_array_size(list) > SPYRE_JOB_SYMBOLS)
		return BAD(p, "hcm: %zu symbols; at most %u are possible", json_array_size(list),
			   SPYRE_JOB_SYMBOLS);
	if (json_array_size(list) * 8 > step->bytes)
		return BAD(p, "hcm: %zu symbols do not fit 'size' %" PRIu64, json_array_size(list),
			   step->bytes);
	step->symbols = calloc(json_array_size(list) + 1, sizeof(*step->symbols));
	if (!step->symbols)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	json_array_foreach(list, i, v) {
		struct rt_symbol *sym = &step->symbols[i];

		if (!json_is_object(v))
			return BAD(p, "hcm: symbol %zu is not an object", i);
		sym->argument = -1;
		if (json_object_get(v, "argument")) {
			status = number(p, "argument", json_object_get(v, "argument"), &value);
			if (status)
				return status;
			if (value >= SPYRE_JOB_SYMBOLS)
				return BAD(p, "hcm: argument %" PRIu64 " of symbol %zu is above %u",
					   value, i, SPYRE_JOB_SYMBOLS - 1);
			sym->argument = (int32_t)value;
			if (value + 1 > p->plan->arguments)
				p->plan->arguments = (uint32_t)value + 1;
		}
		if (json_object_get(v, "offset")) {
			json_t *o = json_object_get(v, "offset");

			/* Also negative: it is added modulo 2^64. */
			if (json_is_integer(o)) {
				sym->offset = (uint64_t)json_integer_value(o);
			} else if (json_is_string(o) && json_string_value(o)[0] == '-') {
				char *end;

				sym->offset = (uint64_t)strtoll(json_string_value(o), &end, 10);
				if (*end)
					return bad_number(p, "offset", json_string_value(o));
			} else {
				status = number(p, "offset", o, &sym->offset);
				if (status)
					return status;
			}
		}
	}
	step->nsymbols = (uint32_t)json_array_size(list);
	return SPYRERT_SUCCESS;
}

static enum spyrert_status parse_host(struct parser *p, struct rt_step *step)
{
	json_t *ishape, *dim, *hcm, *own = NULL, *oshape;
	const char *ohandle, *ihandle;
	enum spyrert_status status;
	size_t i;

	step->kind = RT_STEP_HOST;
	status = string(p, "ohandle", property(p, "ohandle", NULL), &ohandle);
	if (!status)
		status = number(p, "size", property(p, "size", NULL), &step->bytes);
	if (status)
		return status;
	ishape = property(p, "ishape", NULL);
	if (!ishape)
		return BAD(p, "property 'ishape' is missing");
	if (!json_is_array(ishape))
		return BAD(p, "'ishape' must be an array");
	json_array_foreach(ishape, i, dim) {
		const char *s = json_string_value(dim);
		char *end;

		if (json_is_integer(dim))
			continue;
		if (!s)
			return BAD(p, "element %zu of 'ishape' is not a number in a string", i);
		errno = 0;
		strtoll(s, &end, 10);
		if (!*s || *end || errno)
			return BAD(p, "element %zu of 'ishape' is '%s', which is not a number", i,
				   s);
	}
	oshape = property(p, "oshape", NULL);
	if (oshape && !json_is_array(oshape))
		return BAD(p, "'oshape' must be an array");
	status = string(p, "ihandle", property(p, "ihandle", NULL), &ihandle);
	if (status)
		return status;
	if (*ihandle && find_buffer(p, ihandle) < 0)
		return BAD(p, "ihandle '%s' names no buffer", ihandle);
	hcm = property(p, "hcm", NULL);
	if (!hcm)
		return BAD(p, "property 'hcm' is missing");
	if (json_is_string(hcm)) {
		json_error_t err;
		uint8_t *data;
		size_t bytes;

		status = p->file(p->opaque, json_string_value(hcm), &data, &bytes);
		if (status)
			return status == SPYRERT_ERROR_BAD_SPYRECODE ?
			       BAD(p, "file '%s' cannot be read", json_string_value(hcm)) : status;
		own = json_loadb((const char *)data, bytes, JSON_REJECT_DUPLICATES, &err);
		free(data);
		if (!own)
			return BAD(p, "'%s' line %d: %s", json_string_value(hcm), err.line,
				   err.text);
		hcm = own;
	}
	if (!json_is_object(hcm))
		status = BAD(p, "'hcm' must be an object");
	if (!status)
		status = add_buffer(p, "ohandle", ohandle, step->bytes, &step->buffer);
	if (!status)
		status = parse_symbols(p, hcm, step);
	json_decref(own);
	return status;
}

static enum spyrert_status parse_transfer(struct parser *p, struct rt_step *step)
{
	json_t *dir = property(p, "dirn", "direction");
	enum spyrert_status status;
	const char *handle, *d;
	int64_t buffer;

	if (!dir)
		return BAD(p, "property 'dirn' (or 'direction') is missing");
	if (json_is_boolean(dir))
		d = json_is_true(dir) ? "true" : "false";
	else if (json_is_integer(dir))
		d = json_integer_value(dir) == 0 ? "0" : json_integer_value(dir) == 1 ? "1" : "?";
	else
		d = json_string_value(dir);
	if (d && (!strcmp(d, "false") || !strcmp(d, "0")))
		step->kind = RT_STEP_H2D;
	else if (d && (!strcmp(d, "true") || !strcmp(d, "1")))
		step->kind = RT_STEP_D2H;
	else
		return BAD(p, "direction '%s' is none of false, true, 0, 1", d ? d : "");
	status = device_address(p, "dev_ptr", property(p, "dev_ptr", NULL), &step->offset);
	if (!status)
		status = number(p, "size", property(p, "size", NULL), &step->bytes);
	if (!status)
		status = string(p, "host_handle", property(p, "host_handle", NULL), &handle);
	if (status)
		return status;
	if (!step->bytes)
		return BAD(p, "size is 0");
	status = check_range(p, step->offset, step->bytes);
	if (status)
		return status;
	if (step->kind == RT_STEP_D2H)
		return add_buffer(p, "host_handle", handle, step->bytes, &step->buffer);
	buffer = find_buffer(p, handle);
	if (buffer < 0)
		return BAD(p, "host_handle '%s' names no buffer", handle);
	step->buffer = (uint32_t)buffer;
	if (step->bytes > p->plan->buffers[buffer])
		return BAD(p, "size %" PRIu64 " is more than the %" PRIu64 " bytes of buffer '%s'",
			   step->bytes, p->plan->buffers[buffer], handle);
	return SPYRERT_SUCCESS;
}

static enum spyrert_status parse_compute(struct parser *p, struct rt_step *step)
{
	step->kind = RT_STEP_COMPUTE;
	return device_address(p, "job_bin_ptr", property(p, "job_bin_ptr", NULL), &step->offset);
}

static enum spyrert_status enter(struct parser *p, json_t *cmd, size_t i)
{
	p->index = i;
	p->command = "?";
	if (!json_is_object(cmd) || !json_is_string(json_object_get(cmd, "command")))
		return BAD(p, "'command' is missing");
	p->command = json_string_value(json_object_get(cmd, "command"));
	p->props = json_object_get(cmd, "properties");
	if (p->props && !json_is_object(p->props))
		return BAD(p, "'properties' must be an object");
	return SPYRERT_SUCCESS;
}

static enum spyrert_status parse_prep(struct parser *p, json_t *prep)
{
	enum spyrert_status status;
	json_t *cmd;
	size_t i;

	p->plan_name = "JobPreparationPlan";
	if (!json_is_array(prep) || json_array_size(prep) < 2)
		return rt_fail(SPYRERT_ERROR_BAD_SPYRECODE,
			       "JobPreparationPlan must be an array of at least two commands: "
			       "Allocate, then "
			       "InitTransfer");
	p->plan->inits = calloc(json_array_size(prep), sizeof(*p->plan->inits));
	if (!p->plan->inits)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	json_array_foreach(prep, i, cmd) {
		status = enter(p, cmd, i);
		if (status)
			return status;
		if (strcmp(p->command, i ? "InitTransfer" : "Allocate"))
			return BAD(p, "expected %s here", i ? "InitTransfer" : "Allocate");
		status = i ? parse_init(p) : parse_allocate(p);
		if (status)
			return status;
	}
	return SPYRERT_SUCCESS;
}

static enum spyrert_status parse_exec(struct parser *p, json_t *exec)
{
	enum spyrert_status status;
	struct rt_step *steps;
	json_t *cmd;
	size_t i, n;

	p->plan_name = "JobExecPlan";
	if (!json_is_array(exec))
		return rt_fail(SPYRERT_ERROR_BAD_SPYRECODE, "JobExecPlan must be an array");
	n = json_array_size(exec);
	p->plan->steps = calloc(n ? n : 1, sizeof(*p->plan->steps));
	if (!p->plan->steps)
		return rt_fail(SPYRERT_ERROR_HOST_MEMORY, "out of memory");
	steps = p->plan->steps;
	p->plan->nsteps = n;
	json_array_foreach(exec, i, cmd) {
		status = enter(p, cmd, i);
		if (status)
			return status;
		if (!strcmp(p->command, "ComputeOnHost"))
			status = parse_host(p, &steps[i]);
		else if (!strcmp(p->command, "DataTransfer"))
			status = parse_transfer(p, &steps[i]);
		else if (!strcmp(p->command, "ComputeOnDevice"))
			status = parse_compute(p, &steps[i]);
		else
			status = BAD(p, "unknown command");
		if (status)
			return status;
	}
	for (i = 0; i < n; i++) {
		if (steps[i].kind != RT_STEP_HOST)
			continue;
		p->index = i;
		p->command = "ComputeOnHost";
		if (i + 2 >= n || steps[i + 1].kind != RT_STEP_H2D ||
		    steps[i + 1].buffer != steps[i].buffer || steps[i + 2].kind != RT_STEP_COMPUTE)
			return BAD(p, "step ordering violation: a host compute is followed by "
				      "exactly one "
				      "transfer of its buffer to the card and one ComputeOnDevice");
	}
	for (i = 0; i < n; i++)
		if (steps[i].kind == RT_STEP_COMPUTE)
			return SPYRERT_SUCCESS;
	return rt_fail(SPYRERT_ERROR_BAD_SPYRECODE, "JobExecPlan has no ComputeOnDevice");
}

enum spyrert_status rt_plan_parse(const char *json, size_t bytes, rt_file_fn file, void *opaque,
				  struct rt_plan *plan)
{
	struct parser p = { .plan = plan, .file = file, .opaque = opaque };
	enum spyrert_status status;
	json_error_t err;
	json_t *root;
	uint32_t i;

	memset(plan, 0, sizeof(*plan));
	root = json_loadb(json, bytes, JSON_REJECT_DUPLICATES, &err);
	if (!root)
		return rt_fail(SPYRERT_ERROR_BAD_SPYRECODE, "spyrecode.json line %d column %d: %s",
			       err.line, err.column, err.text);
	if (!json_is_object(root))
		status = rt_fail(SPYRERT_ERROR_BAD_SPYRECODE, "spyrecode.json is not an object");
	else if (!json_object_get(root, "JobPreparationPlan"))
		status = rt_fail(SPYRERT_ERROR_BAD_SPYRECODE,
				 "spyrecode.json lacks 'JobPreparationPlan'");
	else if (!json_object_get(root, "JobExecPlan"))
		status = rt_fail(SPYRERT_ERROR_BAD_SPYRECODE, "spyrecode.json lacks 'JobExecPlan'");
	else
		status = parse_prep(&p, json_object_get(root, "JobPreparationPlan"));
	if (!status)
		status = parse_exec(&p, json_object_get(root, "JobExecPlan"));
	for (i = 0; i < plan->nbuffers && p.names; i++)
		free(p.names[i]);
	free(p.names);
	json_decref(root);
	if (status)
		rt_plan_free(plan);
	return status;
}

void rt_plan_free(struct rt_plan *plan)
{
	size_t i;

	for (i = 0; i < plan->ninits; i++)
		free(plan->inits[i].data);
	for (i = 0; plan->steps && i < plan->nsteps; i++)
		free(plan->steps[i].symbols);
	free(plan->inits);
	free(plan->steps);
	free(plan->buffers);
	memset(plan, 0, sizeof(*plan));
}
