/* SPDX-License-Identifier: MIT */
/*
 * A host for the card inside the calling process: real clock, timer thread, vectors that can be waited
 * for, and host memory made of an arena and of any mapped ranges. Unit tests, fuzzers and libspyrert's
 * model backend use it; QEMU does not.
 *
 * All functions may be called from any thread. Nothing here is global: any number of cards can live in
 * one process.
 */
#ifndef SPYRE_INPROC_H
#define SPYRE_INPROC_H

#include "spyre_model.h"

struct spyre_inproc;

/* Bus address of the arena's first byte. Below it nothing answers, so a stray small address faults. */
#define SPYRE_INPROC_BUS	0x100000000ull

/*
 * A card with a host around it. cfg: NULL for the smallest card (1 GB, defaults). arena: bytes of host
 * memory at bus address SPYRE_INPROC_BUS, zero, untouched pages cost nothing; rounded up to 2 MiB.
 * NULL and errno on failure; EINVAL: bad configuration (the sentence goes to stderr).
 */
struct spyre_inproc *spyre_inproc_new(const struct spyre_card_config *cfg, size_t arena);
/* Frees card, host and arena. Waits for the card's threads. NULL is fine. */
void spyre_inproc_free(struct spyre_inproc *ip);

struct spyre_card *spyre_inproc_card(struct spyre_inproc *ip);

/* The arena, 2 MiB aligned on both sides. */
void *spyre_inproc_arena(struct spyre_inproc *ip);
size_t spyre_inproc_arena_size(struct spyre_inproc *ip);

/*
 * A zeroed piece of the arena; align is a power of two up to 2 MiB. Never freed singly: it goes with the
 * host. NULL when the arena is full.
 */
void *spyre_inproc_alloc(struct spyre_inproc *ip, size_t bytes, size_t align);

/* Bus address of a byte of the arena or of a mapped range; 0 when it is in none. */
uint64_t spyre_inproc_bus(struct spyre_inproc *ip, const void *ptr);

/*
 * Gives the process memory [ptr, ptr + bytes) a bus address; ptr and bytes are multiples of 4096. The
 * bus address has the same offset into a 2 MiB page as ptr, so 2 MiB leaves work where ptr allows. 0 and
 * errno on failure. The memory stays the caller's and must live until unmapped.
 */
uint64_t spyre_inproc_map(struct spyre_inproc *ip, void *ptr, size_t bytes, bool writable);
/* Takes it away again; when it returns the card uses no byte of it. May wait for workers. */
void spyre_inproc_unmap(struct spyre_inproc *ip, uint64_t bus);

/* Bus mastering: off makes all host memory unreachable; returns when no worker uses an old pointer. */
void spyre_inproc_bus_master(struct spyre_inproc *ip, bool on);

/*
 * On: host memory is answered as by a host that needs its big lock for it: not while a reset or a
 * spyre_card_dma_sync() waits for workers, whose caller holds that lock.
 */
void spyre_inproc_big_lock(struct spyre_inproc *ip, bool on);

/* Times vector v was raised since the start. */
uint64_t spyre_inproc_raised(struct spyre_inproc *ip, unsigned int v);
/*
 * Waits until vector v was raised more than seen times, at most timeout_ms (negative: for ever). Returns
 * the count, which is still seen after a timeout.
 */
uint64_t spyre_inproc_wait(struct spyre_inproc *ip, unsigned int v, uint64_t seen, int timeout_ms);
/* An eventfd that counts raises of vector v; owned by the host. */
int spyre_inproc_fd(struct spyre_inproc *ip, unsigned int v);

/*
 * Card time by hand: from the call on the clock stands still and only moves by spyre_inproc_advance(),
 * which fires the card's timer whenever it falls due on the way. For tests of announced times. With
 * config.sliced it is by hand from the start, at 0.
 */
void spyre_inproc_manual_clock(struct spyre_inproc *ip);
void spyre_inproc_advance(struct spyre_inproc *ip, int64_t ns);

/* Lines of the card up to this level go to fn (or stderr when fn is NULL); the default is WARN to stderr. */
void spyre_inproc_log(struct spyre_inproc *ip, enum spyre_log_level level,
		      void (*fn)(void *opaque, enum spyre_log_level level, const char *text),
		      void *opaque);
/* Internal inconsistencies the card has reported; a test ends by checking for 0. */
uint64_t spyre_inproc_inconsistencies(struct spyre_inproc *ip);

#endif
