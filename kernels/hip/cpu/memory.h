// SPDX-License-Identifier: Apache-2.0
#pragma once

// Device memory on the CPU: host memory between two guards, filled with a
// pattern that depends on the fill seed.
//
// Guards are compared after every launch and when memory is freed; the report
// names the allocation, its size and the first overwritten byte. In
// AddressSanitizer builds guards are poisoned instead, so that reads are caught
// as well, at the very access.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace exact_topk::hip::cpu {

/// Bytes of a guard; also the alignment of allocations.
inline constexpr std::size_t kGuardBytes = 256;

/// Fills with a pattern of 32-bit words in which neighbours and seeds differ.
void fill_pattern(std::span<std::byte> bytes, std::uint64_t seed);

/// Arms the guards on both sides of `bytes`, kGuardBytes each, which must be
/// the caller's memory.
void arm_guards(std::span<std::byte> bytes);
/// Makes the guards ordinary memory again.
void disarm_guards(std::span<std::byte> bytes);
/// Offset from the start of `bytes` of the first overwritten guard byte (below
/// 0: before the start), if any.
std::optional<std::ptrdiff_t> damaged_guard(std::span<const std::byte> bytes);

/// New device memory of at least one byte, or nullptr where there is none left.
void* allocate(std::size_t bytes);

/// What deallocate() found.
enum class Freed { success, unknown_pointer, guard_damaged };
/// Frees what allocate() gave; a damaged guard leaves a report.
Freed deallocate(void* pointer);

/// Gives an allocation the name by which reports call it (default: "allocation
/// 7", counted from 1).
void name_allocation(const void* pointer, std::string name);

/// Whether [pointer, pointer + bytes) runs out of the allocation that it starts
/// in; host memory never does.
bool overruns_allocation(const void* pointer, std::size_t bytes);

/// The sentence about the first allocation with a damaged guard, if any;
/// repairs every damaged guard.
std::optional<std::string> check_allocations();

}  // namespace exact_topk::hip::cpu
