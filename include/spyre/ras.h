/* SPDX-License-Identifier: MIT */
/* Names of the RAS codes of fw.h, as the kernel's log and the runtime print them. */
#ifndef SPYRE_RAS_NAMES_H
#define SPYRE_RAS_NAMES_H

#include "fw.h"

/*
 * The public name where the code's name is public (0x1274, 0x1d8c, 0x7b1b, 0xd715; ResponseTimeout of a
 * control block is a public name whose code is not); else ours, in the manner of those.
 */
static inline const char *spyre_ras_name(uint32_t code)
{
	switch (code) {
	case SPYRE_RAS_SOFT_FAIL:
		return "RAS::CBRB::ControlBlockSoftFail";
	case SPYRE_RAS_UNSUPPORTED_MSG:
		return "RAS::VFMSG::UnsupportedMessageType";
	case SPYRE_RAS_COMPUTE_HW:
		return "RAS::RUNTIMESCHEDULER::ComputeHardwareError";
	case SPYRE_RAS_BOOTADDR:
		return "RAS::CBRB::InvalidBootstrapAddress";
	case SPYRE_RAS_MSG_TIMEOUT:
		return "RAS::VFMSG::ResponseTimeout";
	case SPYRE_RAS_BAD_PROGRAM:
		return "RAS::CBRB::BadProgram";
	case SPYRE_RAS_DEADLOCK:
		return "RAS::CBRB::Deadlock";
	case SPYRE_RAS_WATCHDOG:
		return "RAS::CBRB::Watchdog";
	case SPYRE_RAS_QUEUE:
		return "RAS::CBRB::QueueError";
	case SPYRE_RAS_MEM_CE:
		return "RAS::MEM::Corrected";
	case SPYRE_RAS_MEM_UE:
		return "RAS::MEM::Uncorrected";
	case SPYRE_RAS_CORE_UNAVAILABLE:
		return "RAS::SOC::CoreUnavailable";
	case SPYRE_RAS_THERMAL:
		return "RAS::SOC::Thermal";
	case SPYRE_RAS_TIMEOUT:
		return "RAS::CBRB::ResponseTimeout";
	case SPYRE_RAS_FIRMWARE:
		return "RAS::FW::Internal";
	default:
		return "RAS::Unknown";
	}
}

#endif
