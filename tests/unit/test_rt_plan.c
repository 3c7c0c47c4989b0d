// SPDX-License-Identifier: MIT
/* The SpyreCode reader: both spellings, and every way to get a plan wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rt.h"
#include "plan.h"

#define BASE	"120259084288"		/* 0x1c00000000 */

static enum spyrert_status file(void *opaque, const char *name, uint8_t **data, size_t *bytes)
{
	(void)opaque;
	if (!strcmp(name, "init.bin")) {
		*bytes = 1000;
		*data = malloc(1000);
		memset(*data, 0x5a, 1000);
		return SPYRERT_SUCCESS;
	}
	if (!strcmp(name, "hcm.json")) {
		static const char hcm[] =
			"{\"vdci\": {\"symbols\": [{\"argument\": \"3\", \"offset\": \"128\"}]}}";

		*bytes = sizeof(hcm) - 1;
		*data = malloc(sizeof(hcm));
		memcpy(*data, hcm, sizeof(hcm));
		return SPYRERT_SUCCESS;
	}
	return SPYRERT_ERROR_BAD_SPYRECODE;
}

#define PREP                                                                                  \
	"[{\"command\":\"Allocate\",\"properties\":{\"size\":\"2048\"}},"                     \
	"{\"command\":\"InitTransfer\",\"properties\":{\"init_bin_file\":\"init.bin\",\"dev_" \
	"ptr\":\"" BASE "\",\"size\":\"1024\"}}]"
#define HOST                                                                                    \
	"{\"command\":\"ComputeOnHost\",\"properties\":{\"ohandle\":\"out\",\"size\":\"1024\"," \
	"\"ishape\":[\"64\",\"16\"],\"ihandle\":\"\",\"hcm\":{\"vdci\":{},\"senConstants\":[]}}}"
#define H2D                                                                                 \
	"{\"command\":\"DataTransfer\",\"properties\":{\"dirn\":\"false\",\"host_handle\":" \
	"\"out\","                                                                          \
	"\"dev_ptr\":\"120259085312\",\"size\":\"1024\"}}"
#define RUN "{\"command\":\"ComputeOnDevice\",\"properties\":{\"job_bin_ptr\":\"" BASE "\"}}"
#define PLAN(prep, exec) "{\"JobPreparationPlan\":" prep ",\"JobExecPlan\":" exec "}"

static enum spyrert_status parse(const char *json, struct rt_plan *plan)
{
	return rt_plan_parse(json, strlen(json), file, NULL, plan);
}

/* Refused, with a text that contains what is named. */
static void refused(const char *json, const char *text)
{
	struct rt_plan plan;

	if (parse(json, &plan) != SPYRERT_ERROR_BAD_SPYRECODE)
		fail_msg("accepted: %s", json);
	if (!strstr(spyrert_last_error(), text))
		fail_msg("'%s' lacks '%s'", spyrert_last_error(), text);
}

static void public_example(void **state)
{
	struct rt_plan plan;

	(void)state;
	assert_int_equal(parse(PLAN(PREP, "[" HOST "," H2D "," RUN "]"), &plan), 0);
	assert_int_equal(plan.bytes, 2048);
	assert_int_equal(plan.ninits, 1);
	assert_int_equal(plan.inits[0].offset, 0);
	assert_int_equal(plan.inits[0].bytes, 1024);
	assert_int_equal(plan.inits[0].data[999], 0x5a);
	assert_int_equal(plan.inits[0].data[1000], 0);
	assert_int_equal(plan.nsteps, 3);
	assert_int_equal(plan.steps[0].kind, RT_STEP_HOST);
	assert_int_equal(plan.steps[1].kind, RT_STEP_H2D);
	assert_int_equal(plan.steps[1].offset, 1024);
	assert_int_equal(plan.steps[2].kind, RT_STEP_COMPUTE);
	assert_int_equal(plan.nbuffers, 1);
	assert_int_equal(plan.buffers[0], 1024);
	rt_plan_free(&plan);
}

static void other_spelling(void **state)
{
	struct rt_plan plan;

	(void)state;
	assert_int_equal(parse("{\"JobPreparationPlan\":[{\"command\":\"Allocate\",\"properties\":{"
			       "\"size\":2048}},"
			       "{\"command\":\"InitTransfer\",\"properties\":{\"file_path\":\"init."
			       "bin\",\"dev_ptr\":"
			       "\"0x1C00000080\",\"size\":1024}}],\"JobExecPlan\":["
			       "{\"command\":\"ComputeOnHost\",\"properties\":{\"ohandle\":\"o\","
			       "\"size\":\"128\",\"ishape\":[],"
			       "\"oshape\":[\"16\"],\"ihandle\":\"\",\"hcm\":\"hcm.json\"}},"
			       "{\"command\":\"DataTransfer\",\"properties\":{\"direction\":\"0\","
			       "\"host_handle\":\"o\",\"dev_ptr\":"
			       "\"0x1c00000480\",\"size\":\"128\"}},"
			       "{\"command\":\"ComputeOnDevice\",\"properties\":{\"job_bin_ptr\":"
			       "\"0x1C00000080\"}},"
			       "{\"command\":\"DataTransfer\",\"properties\":{\"direction\":\"1\","
			       "\"host_handle\":\"back\","
			       "\"dev_ptr\":\"0x1c00000480\",\"size\":\"128\"}}]}",
			       &plan),
			 0);
	assert_int_equal(plan.inits[0].offset, 128);
	assert_int_equal(plan.steps[0].nsymbols, 1);
	assert_int_equal(plan.steps[0].symbols[0].argument, 3);
	assert_int_equal(plan.steps[0].symbols[0].offset, 128);
	assert_int_equal(plan.arguments, 4);
	assert_int_equal(plan.steps[3].kind, RT_STEP_D2H);
	assert_int_equal(plan.nbuffers, 2);
	rt_plan_free(&plan);
}

static void malformed_top(void **state)
{
	(void)state;
	refused("", "spyrecode.json");
	refused("{", "spyrecode.json line");
	refused("[]", "not an object");
	refused("{\"JobExecPlan\":[]}", "JobPreparationPlan");
	refused("{\"JobPreparationPlan\":[]}", "JobExecPlan");
	refused(PLAN("[]", "[]"), "at least two commands");
	refused(PLAN("{}", "[]"), "at least two commands");
	refused(PLAN(PREP, "{}"), "JobExecPlan must be an array");
	refused(PLAN(PREP, "[]"), "no ComputeOnDevice");
	refused(PLAN(PREP, "[{}]"), "'command' is missing");
	refused(PLAN(PREP, "[{\"command\":\"Jump\"}]"), "JobExecPlan[0] Jump: unknown command");
	refused(PLAN(PREP, "[" RUN ",{\"command\":\"Allocate\"}]"),
		"JobExecPlan[1] Allocate: unknown");
}

#define ALLOC(size) "{\"command\":\"Allocate\",\"properties\":{\"size\":" size "}}"
#define INIT(props) "{\"command\":\"InitTransfer\",\"properties\":{" props "}}"

static void malformed_prep(void **state)
{
	static const char good[] =
		"\"init_bin_file\":\"init.bin\",\"dev_ptr\":\"" BASE "\",\"size\":\"1024\"";
	char json[2000];

	(void)state;
	refused(PLAN("[" INIT("") "," INIT("") "]", "[]"), "expected Allocate");
	refused(PLAN("[" ALLOC("\"2048\"") "," ALLOC("\"2048\"") "]", "[]"),
		"expected InitTransfer");
	refused(PLAN("[{\"command\":\"Allocate\"},{}]", "[]"), "'size' is missing");
	refused(PLAN("[" ALLOC("\"many\"") ",{}]", "[]"), "'many'");
	refused(PLAN("[" ALLOC("\"-128\"") ",{}]", "[]"), "'-128'");
	refused(PLAN("[" ALLOC("-128") ",{}]", "[]"), "negative");
	refused(PLAN("[" ALLOC("\"99999999999999999999999\"") ",{}]", "[]"), "not a number from 0");
	refused(PLAN("[" ALLOC("\"0\"") ",{}]", "[]"), "size 0");
	refused(PLAN("[" ALLOC("\"1000\"") ",{}]", "[]"), "1000 is not a multiple of 128");
	refused(PLAN("[" ALLOC("true") ",{}]", "[]"), "number in a string");
	refused(PLAN("[" ALLOC("\"2048\"") "," INIT("\"dev_ptr\":\"0\"") "]", "[]"),
		"init_bin_file");
	refused(PLAN("[" ALLOC("\"2048\"") "," INIT("\"init_bin_file\":\"init.bin\"") "]", "[]"),
		"dev_ptr");
	refused(PLAN("[" ALLOC("\"2048\"") "," INIT(
			     "\"init_bin_file\":\"no.bin\",\"dev_ptr\":\"" BASE
			     "\",\"size\":\"1024\"") "]",
		     "[]"),
		"file 'no.bin' cannot be read");
	refused(PLAN("[" ALLOC("\"2048\"") "," INIT(
			     "\"init_bin_file\":\"init.bin\",\"dev_ptr\":\"4096\","
			     "\"size\":\"1024\"") "]",
		     "[]"),
		"0x1000 is out of program segment bounds");
	/* The specification's own second example breaks its rule of 128. */
	refused(PLAN("[" ALLOC("\"2048\"") "," INIT(
			     "\"init_bin_file\":\"init.bin\",\"dev_ptr\":\"0x1C00000090\","
			     "\"size\":\"1024\"") "]",
		     "[]"),
		"0x1c00000090 is not a multiple of 128");
	refused(PLAN("[" ALLOC("\"2048\"") "," INIT(
			     "\"init_bin_file\":\"init.bin\",\"dev_ptr\":\"" BASE "\","
			     "\"size\":\"1000\"") "]",
		     "[]"),
		"size 1000 is not a multiple of 128");
	refused(PLAN("[" ALLOC("\"512\"") "," INIT(
			     "\"init_bin_file\":\"init.bin\",\"dev_ptr\":\"" BASE "\","
			     "\"size\":\"1024\"") "]",
		     "[]"),
		"do not fit");
	refused(PLAN("[" ALLOC("\"4096\"") "," INIT(
			     "\"init_bin_file\":\"init.bin\",\"dev_ptr\":\"" BASE "\","
			     "\"size\":\"2048\"") "]",
		     "[]"),
		"less than size 2048");
	snprintf(json, sizeof(json), PLAN("[" ALLOC("\"2048\"") "," INIT("%s") "]", "[" RUN "]"),
		 good);
	struct rt_plan plan;
	assert_int_equal(parse(json, &plan), 0);
	rt_plan_free(&plan);
}

/* A host compute without one of its properties, or with a bad one. */
static void malformed_host(void **state)
{
	static const struct {
		const char *props, *text;
	} cases[] = {
		{ "\"size\":\"1024\",\"ishape\":[],\"ihandle\":\"\",\"hcm\":{}",
		  "'ohandle' is missing" },
		{ "\"ohandle\":\"o\",\"ishape\":[],\"ihandle\":\"\",\"hcm\":{}",
		  "'size' is missing" },
		{ "\"ohandle\":\"o\",\"size\":\"1024\",\"ihandle\":\"\",\"hcm\":{}",
		  "'ishape' is missing" },
		{ "\"ohandle\":\"o\",\"size\":\"1024\",\"ishape\":[],\"hcm\":{}",
		  "'ihandle' is missing" },
		{ "\"ohandle\":\"o\",\"size\":\"1024\",\"ishape\":[],\"ihandle\":\"\"",
		  "'hcm' is missing" },
		{ "\"ohandle\":\"o\",\"size\":\"1024\",\"ishape\":\"64\",\"ihandle\":\"\",\"hcm\":{"
		  "}",
		  "'ishape' must be an array" },
		{ "\"ohandle\":\"o\",\"size\":\"1024\",\"ishape\":[{}],\"ihandle\":\"\",\"hcm\":{}",
		  "element 0" },
		{ "\"ohandle\":\"o\",\"size\":\"1024\",\"ishape\":[\"six\"],\"ihandle\":\"\","
		  "\"hcm\":{}",
		  "'six'" },
		{ "\"ohandle\":\"o\",\"size\":\"1024\",\"ishape\":[],\"ihandle\":\"ghost\",\"hcm\":"
		  "{}",
		  "ghost" },
		{ "\"ohandle\":\"\",\"size\":\"1024\",\"ishape\":[],\"ihandle\":\"\",\"hcm\":{}",
		  "empty" },
		{ "\"ohandle\":\"o\",\"size\":\"0\",\"ishape\":[],\"ihandle\":\"\",\"hcm\":{}",
		  "size 0" },
		{ "\"ohandle\":\"o\",\"size\":\"1024\",\"ishape\":[],\"ihandle\":\"\",\"hcm\":7",
		  "an object" },
		{ "\"ohandle\":\"o\",\"size\":\"1024\",\"ishape\":[],\"ihandle\":\"\",\"hcm\":\"x."
		  "json\"",
		  "file 'x.json'" },
		{ "\"ohandle\":\"o\",\"size\":\"8\",\"ishape\":[],\"ihandle\":\"\",\"hcm\":{"
		  "\"vdci\":{\"symbols\":"
		  "[{},{}]}}",
		  "do not fit" },
		{ "\"ohandle\":\"o\",\"size\":\"8\",\"ishape\":[],\"ihandle\":\"\",\"hcm\":{"
		  "\"vdci\":{\"symbols\":"
		  "[{\"argument\":\"256\"}]}}",
		  "argument 256" },
		{ "\"ohandle\":\"o\",\"size\":\"8\",\"ishape\":[],\"ihandle\":\"\",\"hcm\":{"
		  "\"vdci\":{\"symbols\":"
		  "{}}}",
		  "must be an array" },
	};
	char json[2000];
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(json, sizeof(json),
			 PLAN(PREP, "[{\"command\":\"ComputeOnHost\",\"properties\":{%s}}," H2D
				    "," RUN "]"),
			 cases[i].props);
		refused(json, cases[i].text);
	}
	refused(PLAN(PREP, "[" HOST "," HOST "," RUN "]"), "already exists");
}

static void malformed_order(void **state)
{
	(void)state;
	refused(PLAN(PREP, "[" HOST "," RUN "," H2D "]"), "step ordering violation");
	refused(PLAN(PREP, "[" HOST "]"), "step ordering violation");
	refused(PLAN(PREP, "[" HOST "," H2D "," H2D "," RUN "]"), "step ordering violation");
	refused(PLAN(PREP, "[" H2D "," RUN "]"), "host_handle 'out' names no buffer");
	refused(PLAN(PREP,
		     "[" HOST
		     ",{\"command\":\"DataTransfer\",\"properties\":{\"dirn\":\"maybe\"}}," RUN
		     "]"),
		"'maybe'");
	refused(PLAN(PREP,
		     "[" HOST
		     ",{\"command\":\"DataTransfer\",\"properties\":{\"host_handle\":\"out\"}}," RUN
		     "]"),
		"'dirn'");
	refused(PLAN(PREP,
		     "[" HOST ",{\"command\":\"DataTransfer\",\"properties\":{\"dirn\":\"false\","
		     "\"host_handle\":\"out\",\"dev_ptr\":\"" BASE "\",\"size\":\"2048\"}}," RUN
		     "]"),
		"more than the 1024 bytes");
	refused(PLAN(PREP,
		     "[" HOST ",{\"command\":\"DataTransfer\",\"properties\":{\"dirn\":\"false\","
		     "\"host_handle\":\"out\",\"dev_ptr\":\"120259085312\",\"size\":\"1152\"}}," RUN
		     "]"),
		"do not fit");
	refused(PLAN(PREP, "[{\"command\":\"ComputeOnDevice\",\"properties\":{}}]"), "job_bin_ptr");
	refused(PLAN(PREP, "[{\"command\":\"ComputeOnDevice\",\"properties\":{\"job_bin_ptr\":"
			   "\"137438953472\"}}]"),
		"out of program segment bounds");
	refused(PLAN(PREP, "[{\"command\":\"ComputeOnDevice\",\"properties\":{\"job_bin_ptr\":"
			   "\"0x1c00010000\"}}]"),
		"lies behind");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(public_example),
		cmocka_unit_test(other_spelling),
		cmocka_unit_test(malformed_top),
		cmocka_unit_test(malformed_prep),
		cmocka_unit_test(malformed_host),
		cmocka_unit_test(malformed_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
