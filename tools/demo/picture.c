// SPDX-License-Identifier: MIT
/* All pictures of the test half on one sheet, framed by what the card said of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "demo.h"

#define SCALE	4
#define CELL	(8 * SCALE + 6)
#define COLUMNS	32

/* 3 x 5 dots, a row each, the left one is 4. */
static const uint8_t font[CLASSES][5] = {
	{ 7, 5, 5, 5, 7 }, { 2, 6, 2, 2, 7 }, { 7, 1, 7, 4, 7 }, { 7, 1, 7, 1, 7 },
	{ 5, 5, 7, 1, 1 }, { 7, 4, 7, 1, 7 }, { 7, 4, 7, 5, 7 }, { 7, 1, 1, 2, 2 },
	{ 7, 5, 7, 5, 7 }, { 7, 5, 7, 1, 7 },
};

static void dot(uint8_t *rgb, size_t width, size_t x, size_t y, uint32_t colour)
{
	uint8_t *p = rgb + (y * width + x) * 3;

	p[0] = (uint8_t)(colour >> 16);
	p[1] = (uint8_t)(colour >> 8);
	p[2] = (uint8_t)colour;
}

void picture_write(const char *path, const struct digits *d, size_t first, size_t count,
		   const uint8_t *said)
{
	size_t rows = (count + COLUMNS - 1) / COLUMNS, w = COLUMNS * CELL, h = rows * CELL, i, x, y;
	uint8_t *rgb = malloc(w * h * 3);
	png_image im;

	if (!rgb)
		die("out of memory");
	memset(rgb, 0x30, w * h * 3);
	for (i = 0; i < count; i++) {
		size_t x0 = i % COLUMNS * CELL + 1, y0 = i / COLUMNS * CELL + 1;
		bool right = said[i] == d->label[first + i];
		uint32_t frame = right ? 0x2e8b57 : 0xe03030;

		for (y = 0; y < CELL - 2; y++)
			for (x = 0; x < CELL - 2; x++)
				dot(rgb, w, x0 + x, y0 + y, frame);
		for (y = 0; y < 8 * SCALE; y++) {
			for (x = 0; x < 8 * SCALE; x++) {
				float v = d->pixel[first + i][y / SCALE * 8 + x / SCALE];
				uint32_t g = 255 - (uint32_t)(v * 255);

				dot(rgb, w, x0 + 2 + x, y0 + 2 + y, g << 16 | g << 8 | g);
			}
		}
		for (y = 0; y < 10; y++)
			for (x = 0; x < 6; x++)
				if (font[said[i] % CLASSES][y / 2] >> (2 - x / 2) & 1)
					dot(rgb, w, x0 + 4 + x, y0 + 4 + y,
					    right ? 0x2060d0 : 0xe03030);
	}
	memset(&im, 0, sizeof(im));
	im.version = PNG_IMAGE_VERSION;
	im.width = (png_uint_32)w;
	im.height = (png_uint_32)h;
	im.format = PNG_FORMAT_RGB;
	if (!png_image_write_to_file(&im, path, 0, rgb, 0, NULL))
		die("cannot write %s: %s", path, im.message);
	free(rgb);
}
