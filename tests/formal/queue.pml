/* SPDX-License-Identifier: MIT */
/*
 * The queue protocol: ring, shadow doorbell, event index, parked WAIT, arm word, interrupt, and the sleep of
 * the management core. One queue, and everybody who touches it:
 *
 *	user	submits entries: ct_submit() of tests/unit/cardtest.c, ring_doorbell() of libspyrert,
 *		kctx of the driver
 *	writer	a CPU that stores the words for which WAITs park: wake_parked() of libspyrert
 *	kernel	sleeps until everything is done: spyre_ctx_wait of the driver, sleep_until() of test_fw_stress
 *	card	the firmware's loop
 *
 * Memory. A store goes into a buffer and becomes visible later, in any order with those to other words: weaker
 * than x86 (whose buffer keeps the order) and as weak as a release store or a fence allows, which are the only
 * order there is: a release store becomes visible after every earlier store of its thread, a full fence waits
 * until the thread's buffer is empty. Loads are made in program order (all of them are acquire loads, or
 * follow a fence or a doorbell), and see the thread's own stores. Each word has one writer, so there is one
 * place in the buffers per word.
 *
 * Not here: no timer. FW_WAIT_MIN, FW_SWEEP and the driver's bounded sleeps would rescue a lost wake-up; here
 * it is an invalid end state, which is what spin looks for, with overtaken entries (assertions).
 *
 * Each define of the list below takes one ordering away. The test runs them all: each must be found.
 *
 *	NO_REL_TAIL	the tail may be seen before its entry
 *	NO_FENCE_USER	user: between shadow tail and the look at event_idx (U2 of queue.c)
 *	NO_FENCE_ARM	card: between event_idx and the last look at the tail (C2 of queue.c)
 *	NO_SECOND_LOOK	card: no last look at the tail
 *	NO_FENCE_PARK	card: between parked and the last look at the word (sync_wait)
 *	NO_FENCE_WORD	writer: between the word and the look at parked
 *	NO_FENCE_IRQ	card: between done and the look at the arm word (interrupt_progress)
 *	NO_FENCE_KERNEL	kernel: between the arm word and the last look at done
 *	NO_REL_SEQ	the event ring's seq may be seen before what the entry says
 *	NO_ORDER_MSI	the interrupt may overtake the event ring's entry
 *	NO_FENCE_WFI	model: between "sleeping" and the look at what is pending (mcu_sleep)
 *	NO_FENCE_BELL	model: between pending and the look at "sleeping" (spyre_card_db_write, mcu_wake)
 */
#ifndef ENTRIES
#define ENTRIES	3		/* submitted in all */
#endif
#ifndef RING
#define RING	2		/* slots */
#endif
#ifndef WAITS
#define WAITS	2		/* bit i: entry i is a WAIT for the next word value, else a NOP */
#endif

/* Words of memory, and who writes them. */
#define SLOT	0		/* to RING - 1: user. Entry i is the value i + 1: 0 is garbage */
#define TAIL	RING		/* user: shadow.tail */
#define BELL_U	(RING + 1)	/* user: a doorbell in the FIFO */
#define WORD	(RING + 2)	/* writer: value for which WAITs wait */
#define BELL_W	(RING + 3)	/* writer: a doorbell in the FIFO */
#define ARM	(RING + 4)	/* kernel: arm word */
#define PROGRESS (RING + 5)	/* card: status.fetched * 16 + status.done, one store */
#define EVENT	(RING + 6)	/* card: status.event_idx * 2 + status.parked, one store */
#define EVARM	(RING + 7)	/* card: event ring entry: arm */
#define EVSEQ	(RING + 8)	/* card: event ring entry: seq */
#define SLEEPS	(RING + 9)	/* card: mcu.sleeping */
#define WORDS	(RING + 10)

#define OF_USER	((1 << TAIL) - 1 | 1 << TAIL | 1 << BELL_U)
#define OF_WRITER (1 << WORD | 1 << BELL_W)
#define OF_KERNEL (1 << ARM)
#define OF_CARD	(1 << PROGRESS | 1 << EVENT | 1 << EVARM | 1 << EVSEQ | 1 << SLEEPS)

byte mem[WORDS];		/* what the others see */
byte buf[WORDS];		/* pending store */
short after[WORDS];		/* pending release store: words that come first */
short pending;			/* words with a pending store */

bool in_wfi;			/* the core's thread waits on mcu.cond */
bool raised;			/* the vector, since the kernel last looked */

/* A pending store to the same word must be out first: coalescing would hide values. */
#define STORE(w, v, first) \
	atomic { \
		(pending & 1 << (w)) == 0 -> \
		buf[w] = v; \
		after[w] = first; \
		pending = pending | 1 << (w) \
	}
#define PLAIN(w, v)		STORE(w, v, 0)
#define RELEASE(w, v, mine)	STORE(w, v, pending & (mine) & ~(1 << (w)))
#define FENCE(mine)		(pending & (mine)) == 0
/* A thread sees its own stores, as those with a pending one do; others see memory. */
#define MINE(w)			(pending & 1 << (w) -> buf[w] : mem[w])

/* One process for all buffers: any pending store, once what it must follow is out. */
#define OUT(w) \
	:: atomic { \
		(pending & 1 << (w)) && (pending & after[w]) == 0 -> \
		mem[w] = buf[w]; \
		buf[w] = 0; \
		after[w] = 0; \
		pending = pending & ~(1 << (w)) \
	}

active proctype memory()
{
end:	do
	OUT(SLOT)
#if RING > 1
	OUT(SLOT + 1)
#endif
#if RING > 2
	OUT(SLOT + 2)
	OUT(SLOT + 3)
#endif
	OUT(TAIL)
	OUT(BELL_U)
	OUT(WORD)
	OUT(BELL_W)
	OUT(ARM)
	OUT(PROGRESS)
	OUT(EVENT)
	OUT(EVARM)
	OUT(EVSEQ)
	OUT(SLEEPS)
	od
}

/* spyre_card_db_write(): the FIFO and pend with a sequentially consistent or; then mcu_wake(). */
inline ring(bell, mine)
{
	PLAIN(bell, 1);
#ifndef NO_FENCE_BELL
	FENCE(mine);
#endif
	/* The signal is given under mcu.lock, which the core gives up only by waiting. */
	if
	:: atomic { mem[SLEEPS] == 1 -> in_wfi = false }
	:: mem[SLEEPS] == 0
	fi
}

active proctype user()
{
	byte tail = 0;
	byte old = 0;
	byte ev;

	do
	/* ct_put(): room in the ring. */
	:: tail < ENTRIES && mem[PROGRESS] / 16 + RING > tail ->
		PLAIN(SLOT + tail % RING, tail + 1);
		tail++
	:: old < tail ->
#ifdef NO_REL_TAIL
		PLAIN(TAIL, tail);
#else
		RELEASE(TAIL, tail, OF_USER);
#endif
#ifndef NO_FENCE_USER
		FENCE(OF_USER);
#endif
		/* event_idx is kept one up: the queue starts with it behind the first tail. */
		ev = mem[EVENT] / 2;
		if
		:: old < ev && ev <= tail -> ring(BELL_U, OF_USER)
		:: else
		fi;
		old = tail
	:: old == ENTRIES -> break
	od
}

active proctype writer()
{
	byte value = 0;
	byte n = 0;

	do
	:: n < ENTRIES ->
		if
		:: WAITS & 1 << n ->
			value++;
			RELEASE(WORD, value, OF_WRITER);
#ifndef NO_FENCE_WORD
			FENCE(OF_WRITER);
#endif
			if
			:: mem[EVENT] % 2 == 1 -> ring(BELL_W, OF_WRITER)
			:: mem[EVENT] % 2 == 0
			fi
		:: else
		fi;
		n++
	:: else -> break
	od
}

active proctype kernel()
{
	byte arm = 0;
	byte seen = 0;
	byte strays = 1;

	/* spyre_ctx_wait: new arm value, full fence, look again, sleep on the vector. */
	do
	:: mem[PROGRESS] % 16 == ENTRIES -> break
	:: mem[PROGRESS] % 16 != ENTRIES ->
		arm++;
		RELEASE(ARM, arm, OF_KERNEL);
#ifndef NO_FENCE_KERNEL
		FENCE(OF_KERNEL);
#endif
		if
		:: mem[PROGRESS] % 16 == ENTRIES -> break
		:: mem[PROGRESS] % 16 != ENTRIES
		fi;
		/* spyre_irq: what lies in the event ring wakes its context; an interrupt without does nothing. */
		do
		:: if
		   :: raised -> raised = false
		   /* The vector is shared: one for another context makes it look too, but comes when it likes. */
		   :: strays > 0 -> strays--
		   fi;
		   if
		   :: mem[EVSEQ] != seen ->
			seen = mem[EVSEQ];
			assert(mem[EVARM] == arm);
			break
		   :: mem[EVSEQ] == seen
		   fi
		od
	od
}

/* doorbells(): the FIFO is emptied under db.lock. */
inline doorbells()
{
	atomic {
		rung = mem[BELL_U];
		mem[BELL_U] = 0;
		mem[BELL_W] = 0
	}
}

/* queue_show() and interrupt_progress(): data, status, full fence, arm word, event ring, vector. */
inline publish()
{
	if
	:: shown != fetch * 16 + done ->
		shown = fetch * 16 + done;
		RELEASE(PROGRESS, shown, OF_CARD);
#ifndef NO_FENCE_IRQ
		FENCE(OF_CARD);
#endif
		if
		:: mem[ARM] != last_arm ->
			last_arm = mem[ARM];
			PLAIN(EVARM, last_arm);
			events++;
#ifdef NO_REL_SEQ
			PLAIN(EVSEQ, events);
#else
			RELEASE(EVSEQ, events, OF_CARD);
#endif
#ifndef NO_ORDER_MSI
			/* Posted writes stay in order: an MSI follows the stores before it. */
			FENCE(OF_CARD);
#endif
			raised = true
		:: else
		fi
	:: else
	fi
}

/* idle() and mcu_sleep(): WFI does not sleep while a doorbell is pending. */
inline wfi()
{
	PLAIN(SLEEPS, 1);
#ifndef NO_FENCE_WFI
	FENCE(OF_CARD);
#endif
	/* mcu.lock is held from here to the wait, which gives it up. */
	do
	:: atomic { mem[BELL_U] + mem[BELL_W] == 0 -> in_wfi = true };
end_asleep:	!in_wfi
	:: mem[BELL_U] + mem[BELL_W] != 0 -> break
	od;
	RELEASE(SLEEPS, 0, OF_CARD);
	FENCE(OF_CARD)
}

active proctype card()
{
	byte tail, fetch, done, shown, event, last_arm, events, want, entry;
	bool parked, rung;

serve:	/* queue_run(): fetch() and step(), one entry at a time. */
	if
	:: fetch != done		/* the WAIT at .issue, copied before */
	:: fetch == done ->
		tail = mem[TAIL];
		assert(tail - fetch <= RING);
		if
		:: tail == fetch -> publish(); goto poll
		:: else
		fi;
		entry = mem[SLOT + fetch % RING];
		assert(entry == fetch + 1);
		fetch++;
		if
		:: WAITS & 1 << (entry - 1) -> want++
		:: else -> done++; goto turn
		fi
	fi;
	/* sync_wait(): look, park, full fence, look again. */
	if
	:: mem[WORD] >= want -> goto satisfied
	:: mem[WORD] < want
	fi;
	if
	:: parked
	:: else ->
		parked = true;
		RELEASE(EVENT, event * 2 + 1, OF_CARD);
#ifndef NO_FENCE_PARK
		FENCE(OF_CARD);
#endif
		if
		:: mem[WORD] >= want -> goto satisfied
		:: mem[WORD] < want
		fi
	fi;
	/* sync_park(): a doorbell of its context makes it look again, sync_wake_context(). */
	publish();
	wfi();
	doorbells();
	goto serve;

satisfied:
	done++;
	if
	:: parked -> parked = false; RELEASE(EVENT, event * 2, OF_CARD)
	:: else
	fi;
turn:	/* A batch ends anywhere. */
	if
	:: publish()
	:: skip
	fi;
	goto serve;

poll:	/* queue_idle() and queue_poll(): looks at the tail until the time is up, then queue_arm(). */
	if
	:: mem[TAIL] != fetch -> goto serve
	:: skip
	fi;
	/* One up, see user(): rings whoever moves the tail from what was seen here. */
	event = fetch + 1;
	RELEASE(EVENT, event * 2, OF_CARD);
#ifndef NO_FENCE_ARM
	FENCE(OF_CARD);
#endif
#ifndef NO_SECOND_LOOK
	if
	:: mem[TAIL] != fetch -> goto serve
	:: mem[TAIL] == fetch
	fi;
#endif
armed:	/* doorbell(): only one of the queue's own page wakes it now. */
	wfi();
	doorbells();
	if
	:: rung -> goto serve
	:: else -> goto armed
	fi
}
