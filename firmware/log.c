// SPDX-License-Identifier: MIT
/*
 * Log ring. It lies in log RAM, which the driver reads even when the core is dead and which survives
 * a firmware restart: the lines before a crash are still there afterwards.
 */
#include <stdarg.h>

#include "firmware.h"

#define LINE	160u

struct spyre_log_ram {
	struct spyre_log head;
	u8 text[SPYRE_LOG_RAM_SIZE - sizeof(struct spyre_log)];
};
SPYRE_SIZE(struct spyre_log_ram, SPYRE_LOG_RAM_SIZE);

/* The linker script places it at SPYRE_MCU_LOG_BASE. */
#ifdef FW_HOST
static struct spyre_log_ram fw_log;
#else
extern struct spyre_log_ram fw_log;
#endif

static u32 told;
static char line[LINE];
static u32 length;

static void put(char c)
{
	if (length < LINE - 1)
		line[length++] = c;
}

static void put_hex(u64 v, u32 digits)
{
	static const char hex[] = "0123456789abcdef";
	u32 i;

	for (i = digits; i--;) {
		if (v >> (4 * i) || !i)
			put(hex[v >> (4 * i) & 15]);
	}
}

static void put_decimal(u32 v)
{
	char digit[10];
	u32 n = 0;

	do {
		digit[n++] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	while (n)
		put(digit[--n]);
}

static void put_text(const char *s)
{
	while (*s)
		put(*s++);
}

void log_init(void)
{
	u32 size = sizeof(fw_log.text);

	/* Host reads while the firmware writes, so a log that is good is continued, not cleared. */
	if (fw_log.head.magic == SPYRE_LOG_MAGIC && fw_log.head.size == size &&
	    fw_log.head.level <= LOG_DEBUG) {
		told = fw_log.head.head;
		return;
	}
	memset(fw_log.text, 0, size);
	fw_log.head.size = size;
	fw_log.head.head = 0;
	fw_log.head.level = LOG_INFO;
	compiler_barrier();
	fw_log.head.magic = SPYRE_LOG_MAGIC;
	told = 0;
}

int log_set_level(u32 level)
{
	if (level > LOG_DEBUG)
		return -1;
	fw_log.head.level = level;
	return 0;
}

void log_line(enum log_level level, const char *format, ...)
{
	static const char *const name[] = { "error: ", "warning: ", "", "debug: " };
	u32 head = fw_log.head.head;
	va_list args;
	u64 now;
	u32 i;

	if ((u32)level > fw_log.head.level)
		return;
	length = 0;
	/* Milliseconds of card time: 64-bit division is a library call, once per line is fine. */
	now = soc_time() / FW_MS;
	put('[');
	put_decimal((u32)(now / 1000));
	put('.');
	put((char)('0' + (u32)(now % 1000) / 100));
	put((char)('0' + (u32)(now % 100) / 10));
	put((char)('0' + (u32)(now % 10)));
	put_text("] ");
	put_text(name[level]);
	va_start(args, format);
	for (; *format; format++) {
		if (*format != '%') {
			put(*format);
			continue;
		}
		switch (*++format) {
		case 'u':
			put_decimal(va_arg(args, u32));
			break;
		case 'x':
			put_hex(va_arg(args, u32), 8);
			break;
		case 'X':
			put_hex(va_arg(args, u64), 16);
			break;
		case 's':
			put_text(va_arg(args, const char *));
			break;
		default:
			put('%');
			format--;
			break;
		}
	}
	va_end(args);
	for (i = 0; i < length; i++)
		fw_log.text[(head + i) % sizeof(fw_log.text)] = (u8)line[i];
	fw_log.text[(head + length) % sizeof(fw_log.text)] = '\n';
	/* The reader takes only what lies before head. */
	compiler_barrier();
	fw_log.head.head = head + length + 1;
}

u32 log_news(void)
{
	u32 n = fw_log.head.head - told;

	told = fw_log.head.head;
	return n;
}
