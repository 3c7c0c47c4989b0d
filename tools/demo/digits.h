/* SPDX-License-Identifier: MIT */
/* Handwritten digits and a small network that tells them apart. */
#ifndef DEMO_DIGITS_H
#define DEMO_DIGITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PIXELS	64		/* 8 x 8, values 0 to 16 */
#define CLASSES	10
#define LAYERS	3

struct digits {
	size_t count;
	float (*pixel)[PIXELS];	/* scaled to 0..1 */
	uint8_t *label;
};

/* Reads digits.csv(.gz): 64 pixels and the digit, a line each. Ends the program with a message on
 * error. */
void digits_load(struct digits *d, const char *path);
void digits_free(struct digits *d);

/* Fully connected, ReLU between layers. weight[l] is in x out, row-major. */
struct net {
	uint32_t in[LAYERS], out[LAYERS];
	float *weight[LAYERS], *bias[LAYERS];
};

void net_new(struct net *n);
void net_free(struct net *n);
/* The file holds fp32 weights and biases, little-endian, behind a header. */
void net_save(const struct net *n, const char *path);
void net_load(struct net *n, const char *path);
/* Scores of one picture in plain fp32. act: room for all layers' outputs, or NULL. */
void net_scores(const struct net *n, const float *pixel, float *scores, float *act);

#define NET_MAX_WIDTH 128

void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
extern const char *program_name;

#endif
