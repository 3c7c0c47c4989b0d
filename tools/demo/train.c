// SPDX-License-Identifier: MIT
/*
 * spyre-train: trains the demo's network on the first half of the digits, on the host, in fp32. The
 * same seed gives the same network on the same machine type. What it saves are fp32 weights; the
 * demo rounds them to DL16 when it packs them for the card.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../args.h"
#include "digits.h"

static uint64_t rng_state;

static uint32_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return (uint32_t)(rng_state >> 32);
}

static float uniform(void)
{
	return (float)(rng() >> 8) * 0x1p-24f;
}

static void init(struct net *n)
{
	unsigned int l;
	size_t i;

	for (l = 0; l < LAYERS; l++) {
		float scale = sqrtf(6.0f / (float)n->in[l]);

		for (i = 0; i < (size_t)n->in[l] * n->out[l]; i++)
			n->weight[l][i] = (2 * uniform() - 1) * scale;
	}
}

/* One picture's gradient onto g; returns its loss. */
static float backward(const struct net *n, struct net *g, const float *pixel, unsigned int label)
{
	float act[LAYERS * NET_MAX_WIDTH], delta[2][NET_MAX_WIDTH], scores[CLASSES], max, sum = 0;
	float *d = delta[0], *e = delta[1], *t;
	uint32_t i, j;
	int l;

	net_scores(n, pixel, scores, act);
	max = scores[0];
	for (i = 1; i < CLASSES; i++)
		max = fmaxf(max, scores[i]);
	for (i = 0; i < CLASSES; i++)
		sum += d[i] = expf(scores[i] - max);
	for (i = 0; i < CLASSES; i++)
		d[i] = d[i] / sum - (i == label);
	for (l = LAYERS - 1; l >= 0; l--) {
		const float *x = l ? act + (l - 1) * NET_MAX_WIDTH : pixel;

		for (j = 0; j < n->out[l]; j++)
			g->bias[l][j] += d[j];
		for (i = 0; i < n->in[l]; i++) {
			const float *w = n->weight[l] + (size_t)i * n->out[l];
			float *gw = g->weight[l] + (size_t)i * n->out[l], s = 0;

			if (x[i] == 0.0f) {
				e[i] = 0;	/* ReLU was off, or no ink */
				continue;
			}
			for (j = 0; j < n->out[l]; j++) {
				gw[j] += x[i] * d[j];
				s += w[j] * d[j];
			}
			e[i] = s;
		}
		t = d;
		d = e;
		e = t;
	}
	return logf(sum) + max - scores[label];
}

static size_t right(const struct net *n, const struct digits *d, size_t from, size_t to)
{
	float s[CLASSES];
	size_t i, ok = 0;
	unsigned int j, best;

	for (i = from; i < to; i++) {
		net_scores(n, d->pixel[i], s, NULL);
		for (j = 1, best = 0; j < CLASSES; j++)
			if (s[j] > s[best])
				best = j;
		ok += best == d->label[i];
	}
	return ok;
}

static void train(struct net *n, const struct digits *d, size_t count, unsigned int epochs,
		  int quiet)
{
	const size_t batch = 32;
	struct net g, v;
	size_t *order = malloc(count * sizeof(*order)), i, b, k;
	unsigned int e, l;
	float rate, loss;

	if (!order)
		die("out of memory");
	net_new(&g);
	net_new(&v);
	for (i = 0; i < count; i++)
		order[i] = i;
	for (e = 0; e < epochs; e++) {
		/* Falls to zero, so that the last steps settle. */
		rate = 0.08f * (1.0f - (float)e / (float)epochs);
		for (i = count - 1; i > 0; i--) {
			size_t j = rng() % (i + 1), t = order[i];

			order[i] = order[j];
			order[j] = t;
		}
		loss = 0;
		for (b = 0; b < count; b += batch) {
			size_t m = count - b < batch ? count - b : batch;

			for (l = 0; l < LAYERS; l++) {
				memset(g.weight[l], 0,
				       (size_t)n->in[l] * n->out[l] * sizeof(float));
				memset(g.bias[l], 0, n->out[l] * sizeof(float));
			}
			for (i = 0; i < m; i++)
				loss += backward(n, &g, d->pixel[order[b + i]],
						 d->label[order[b + i]]);
			for (l = 0; l < LAYERS; l++) {
				for (k = 0; k < (size_t)n->in[l] * n->out[l]; k++) {
					float *w = &n->weight[l][k];

					v.weight[l][k] = 0.9f * v.weight[l][k] -
						rate * (g.weight[l][k] / (float)m + 2e-4f * *w);
					*w += v.weight[l][k];
				}
				for (k = 0; k < n->out[l]; k++) {
					v.bias[l][k] = 0.9f * v.bias[l][k] -
						       rate * g.bias[l][k] / (float)m;
					n->bias[l][k] += v.bias[l][k];
				}
			}
		}
		if (!quiet && (e % 10 == 9 || e == epochs - 1))
			printf("epoch %3u: loss %.4f, %.2f %% of the training half\n", e + 1,
			       (double)(loss / (float)count),
			       100.0 * (double)right(n, d, 0, count) / (double)count);
	}
	net_free(&g);
	net_free(&v);
	free(order);
}

static void usage(FILE *f)
{
	fputs("usage: spyre-train [-q] [-s SEED] [-e EPOCHS] DIGITS.csv.gz OUTPUT\n"
	      "Trains a 64-128-64-10 network on the first half of the digits set.\n\n"
	      "  -s, --seed N    start of the random numbers (default 1)\n"
	      "  -e, --epochs N  passes over the data (default 60)\n"
	      "  -q, --quiet     print nothing\n"
	      "  -h, --help      this text\n\n"
	      "Exit status: 0 written, 1 a file cannot be read or written, 2 wrong usage.\n", f);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "seed", required_argument, NULL, 's' },
		{ "epochs", required_argument, NULL, 'e' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 }
	};
	unsigned int epochs = 60;
	uint64_t seed = 1;
	struct digits d;
	struct net n;
	int c, quiet = 0;
	size_t half;

	program_name = "spyre-train";
	while ((c = getopt_long(argc, argv, "s:e:qh", options, NULL)) != -1) {
		switch (c) {
		case 's':
			seed = args_number("--seed", optarg, 0, UINT64_MAX);
			break;
		case 'e':
			epochs = (unsigned int)args_number("--epochs", optarg, 1, 1000000);
			break;
		case 'q':
			quiet = 1;
			break;
		case 'h':
			usage(stdout);
			return 0;
		default:
			usage(stderr);
			return 2;
		}
	}
	if (optind + 2 != argc)
		args_quit(2, "%s; see --help",
			  optind == argc     ? "DIGITS.csv.gz and OUTPUT are missing" :
			  optind + 1 == argc ? "OUTPUT, the file to write, is missing" :
					       "only DIGITS.csv.gz and OUTPUT can be given");
	rng_state = seed * 0x9e3779b97f4a7c15ull + 1;
	digits_load(&d, argv[optind]);
	half = d.count / 2;
	if (!half)
		die("%s: too few pictures to split in halves", argv[optind]);
	net_new(&n);
	init(&n);
	train(&n, &d, half, epochs, quiet);
	if (!quiet)
		printf("test half: %.2f %%\n",
		       100.0 * (double)right(&n, &d, half, d.count) / (double)(d.count - half));
	net_save(&n, argv[optind + 1]);
	net_free(&n);
	digits_free(&d);
	return 0;
}
