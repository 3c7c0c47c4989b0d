/* SPDX-License-Identifier: MIT */
#include "sha256.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t k[64] __attribute__((aligned(16))) = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t ror(uint32_t v, unsigned int n)
{
	return v >> n | v << (32 - n);
}

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static void blocks_c(uint32_t h[8], const uint8_t *p, size_t n)
{
	uint32_t w[64], s[8];
	unsigned int i;

	for (; n; n--, p += 64) {
		for (i = 0; i < 16; i++)
			w[i] = be32(p + 4 * i);
		for (; i < 64; i++) {
			uint32_t a = w[i - 15], b = w[i - 2];

			w[i] = w[i - 16] + w[i - 7] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) +
			       (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
		}
		memcpy(s, h, sizeof(s));
		for (i = 0; i < 64; i++) {
			uint32_t e = s[4], a = s[0];
			uint32_t t1 = s[7] + (ror(e, 6) ^ ror(e, 11) ^ ror(e, 25)) +
				      ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
			uint32_t t2 = (ror(a, 2) ^ ror(a, 13) ^ ror(a, 22)) +
				      ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));

			memmove(s + 1, s, 7 * sizeof(*s));
			s[4] += t1;
			s[0] = t1 + t2;
		}
		for (i = 0; i < 8; i++)
			h[i] += s[i];
	}
}

#if defined(__x86_64__)
/* The SHA extensions keep the state as ABEF and CDGH; two rounds an instruction. */
__attribute__((target("sha,sse4.1,ssse3")))
static void blocks_ni(uint32_t h[8], const uint8_t *p, size_t n)
{
	const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bll, 0x0405060700010203ll);
	__m128i lo = _mm_loadu_si128((const __m128i *)h);
	__m128i hi = _mm_loadu_si128((const __m128i *)(h + 4));
	__m128i t = _mm_shuffle_epi32(lo, 0xb1), abef, cdgh;

	hi = _mm_shuffle_epi32(hi, 0x1b);
	abef = _mm_alignr_epi8(t, hi, 8);
	cdgh = _mm_blend_epi16(hi, t, 0xf0);
	for (; n; n--, p += 64) {
		__m128i a = abef, c = cdgh, w[4];
		unsigned int i;

		for (i = 0; i < 4; i++)
			w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + 16 * i)), swap);
		for (i = 0; i < 16; i++) {
			__m128i x = _mm_add_epi32(w[i & 3],
						  _mm_load_si128((const __m128i *)(k + 4 * i)));

			c = _mm_sha256rnds2_epu32(c, a, x);
			a = _mm_sha256rnds2_epu32(a, c, _mm_shuffle_epi32(x, 0x0e));
			if (i < 12) {
				__m128i m = _mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]);

				m = _mm_add_epi32(m, _mm_alignr_epi8(w[(i + 3) & 3],
								     w[(i + 2) & 3], 4));
				w[i & 3] = _mm_sha256msg2_epu32(m, w[(i + 3) & 3]);
			}
		}
		abef = _mm_add_epi32(abef, a);
		cdgh = _mm_add_epi32(cdgh, c);
	}
	t = _mm_shuffle_epi32(abef, 0x1b);
	cdgh = _mm_shuffle_epi32(cdgh, 0xb1);
	_mm_storeu_si128((__m128i *)h, _mm_blend_epi16(t, cdgh, 0xf0));
	_mm_storeu_si128((__m128i *)(h + 4), _mm_alignr_epi8(cdgh, t, 8));
}

static int has_sha(void)
{
	unsigned int a, b, c, d;

	if (!__builtin_cpu_supports("sse4.1"))
		return 0;
	return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 29 & 1);
}
#endif

static void blocks(uint32_t h[8], const uint8_t *p, size_t n)
{
#if defined(__x86_64__)
	if (has_sha()) {
		blocks_ni(h, p, n);
		return;
	}
#endif
	blocks_c(h, p, n);
}

void sha256_init(struct sha256 *s)
{
	static const uint32_t h0[8] = {
		0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
		0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
	};

	memcpy(s->h, h0, sizeof(s->h));
	s->bytes = 0;
}

void sha256_update(struct sha256 *s, const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t have = s->bytes & 63;

	s->bytes += len;
	if (have) {
		size_t n = 64 - have < len ? 64 - have : len;

		memcpy(s->buf + have, p, n);
		p += n;
		len -= n;
		if (have + n < 64)
			return;
		blocks(s->h, s->buf, 1);
	}
	if (len >= 64) {
		blocks(s->h, p, len / 64);
		p += len & ~(size_t)63;
		len &= 63;
	}
	if (len)
		memcpy(s->buf, p, len);
}

void sha256_final(struct sha256 *s, uint8_t digest[32])
{
	uint64_t bits = s->bytes * 8;
	uint8_t tail[72] = { 0x80 };
	size_t pad = ((s->bytes & 63) < 56 ? 56 : 120) - (s->bytes & 63);
	unsigned int i;

	for (i = 0; i < 8; i++)
		tail[pad + i] = bits >> (56 - 8 * i);
	sha256_update(s, tail, pad + 8);
	for (i = 0; i < 32; i++)
		digest[i] = s->h[i / 4] >> (24 - 8 * (i & 3));
}
