// SPDX-License-Identifier: MIT
// The public headers from C++: they compile as strict C++11 and their functions link.
#include <cstdio>
#include <cstring>

#include "spyrecode.h"
#include "spyregen.h"
#include "spyreprog.h"
#include "spyrert.h"

int main()
{
	spyrert *lib = nullptr;
	bool ok = spyrert_version() >> 16 == SPYRERT_VERSION_MAJOR;

	ok = ok && spyrert_init("no such backend", &lib) == SPYRERT_ERROR_INVALID_ARGUMENT;
	ok = ok && std::strstr(spyrert_last_error(), "no such backend") != nullptr;
	std::printf("1..2\n%sok 1 spyrert.h and its library from C++\n", ok ? "" : "not ");

	spyreprog_err err;
	bool prog = !std::strcmp(spyreprog_format_name(SPYRE_SEN169_FP16), "SEN169_FP16");

	prog = prog && spyregen_bytes(SPYRE_SEN169_FP16, 1, 64) == 128;
	prog = prog && spyreprog_write_spyrecode("/nonexistent/x", "", 0, nullptr, &err) != 0;
	std::printf("%sok 2 spyreprog.h, spyregen.h, spyrecode.h and their library from C++\n",
		    prog ? "" : "not ");
	return ok && prog ? 0 : 1;
}
