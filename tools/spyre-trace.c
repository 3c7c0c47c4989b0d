// SPDX-License-Identifier: MIT
/* spyre-trace: runs a SpyreCode directory and writes a timeline. It is spyre-run with other defaults. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"

static void usage(FILE *out)
{
	fputs("usage: spyre-trace [-o FILE] [OPTIONS] DIR [SPYRE-RUN OPTIONS]\n"
	      "Runs a SpyreCode directory on the card and writes a timeline of queues, engines and units\n"
	      "(trace event format: opens in Perfetto, read by acelyzer).\n"
	      "\n"
	      "  -o, --output FILE       the timeline (default trace.json)\n"
	      "  -n, --launches N        launch N times (default 1)\n"
	      "  -h, --help              this text\n"
	      "\n"
	      "What follows DIR goes to spyre-run: tensors, arguments, backend and card. Exit status: that\n"
	      "of spyre-run; 2 wrong usage.\n",
	      out);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "output", required_argument, NULL, 'o' },
						 { "launches", required_argument, NULL, 'n' },
						 { "help", no_argument, NULL, 'h' },
						 { 0 } };
	const char *output = "trace.json", *launches = NULL;
	char path[4200];
	char **args;
	ssize_t len;
	int c, n = 0;

	/* What follows DIR is not this tool's. */
	while ((c = getopt_long(argc, argv, "+o:n:h", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			output = optarg;
			break;
		case 'n':
			args_number("--launches", optarg, 1, 1000000);
			launches = optarg;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind >= argc)
		args_quit(2, "DIR is missing; see --help");
	args = calloc((size_t)argc + 8, sizeof(*args));
	/* The one beside this program. */
	len = readlink("/proc/self/exe", path, sizeof(path) - 16);
	if (!args || len < 0)
		args_quit(3, "cannot find spyre-run: %s", strerror(errno));
	path[len] = 0;
	strcpy(strrchr(path, '/') + 1, "spyre-run");
	args[n++] = (char *)"spyre-run";
	args[n++] = (char *)"--trace";
	args[n++] = (char *)output;
	if (launches) {
		args[n++] = (char *)"--time";
		args[n++] = (char *)launches;
	}
	while (optind < argc)
		args[n++] = argv[optind++];
	execv(path, args);
	args_quit(3, "cannot run %s: %s", path, strerror(errno));
}
