// SPDX-License-Identifier: MIT
// libspyrert from C++: the header compiles as strict C++11 and its functions link.
#include <cstdio>
#include <cstring>

#include "spyrert.h"

int main()
{
	spyrert *lib = nullptr;
	bool ok = spyrert_version() >> 16 == SPYRERT_VERSION_MAJOR;

	ok = ok && spyrert_init("no such backend", &lib) == SPYRERT_ERROR_INVALID_ARGUMENT;
	ok = ok && std::strstr(spyrert_last_error(), "no such backend") != nullptr;
	std::printf("1..1\n%sok 1 header and library from C++\n", ok ? "" : "not ");
	return ok ? 0 : 1;
}
