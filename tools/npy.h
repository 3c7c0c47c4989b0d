/* SPDX-License-Identifier: MIT */
/* NumPy's .npy files: one array, row-major, little-endian. */
#ifndef TOOLS_NPY_H
#define TOOLS_NPY_H

#include <stddef.h>
#include <stdint.h>

struct npy {
	char type;		/* 'f', 'i' or 'u' */
	unsigned int bytes;	/* of an element */
	unsigned int dims;
	uint64_t shape[8];
	uint64_t count;
	void *data;		/* malloc()ed */
};

/* 0, or -1 with a message in err. */
int npy_read(const char *path, struct npy *a, char *err, size_t errlen);
int npy_write(const char *path, const struct npy *a, char *err, size_t errlen);
/* Elements as fp32, malloc()ed; NULL when the type is not one of f2, f4, f8, i1, i4, u1. */
float *npy_float(const struct npy *a);

#endif
