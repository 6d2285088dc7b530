/* sanitize.h: what sanitizer builds need to be told. Nothing in other builds. */
#pragma once

#include <stddef.h>

/* KILN_ASAN: AddressSanitizer. KILN_MSAN: MemorySanitizer. KILN_TSAN: ThreadSanitizer.
 * KILN_SANITIZED: any of them: memory must come from malloc one block at a time. */
#if defined(__SANITIZE_ADDRESS__)
#define KILN_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define KILN_ASAN 1
#endif
#endif
#ifndef KILN_ASAN
#define KILN_ASAN 0
#endif

#if defined(__has_feature)
#if __has_feature(memory_sanitizer)
#define KILN_MSAN 1
#endif
#endif
#ifndef KILN_MSAN
#define KILN_MSAN 0
#endif

#if defined(__SANITIZE_THREAD__)
#define KILN_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define KILN_TSAN 1
#endif
#endif
#ifndef KILN_TSAN
#define KILN_TSAN 0
#endif

#define KILN_SANITIZED (KILN_ASAN || KILN_MSAN || KILN_TSAN)

/* Of what inlined functions read: it lies in their own library, but where tests share one
 * (meson.build). */
#if KILN_ASAN
#define KILN_HIDDEN
#else
#define KILN_HIDDEN __attribute__((visibility("hidden")))
#endif

#if KILN_ASAN
#include <sanitizer/asan_interface.h>
static inline void kiln_asan_poison(const void *data, size_t size) {
  __asan_poison_memory_region(data, size);
}
static inline void kiln_asan_unpoison(const void *data, size_t size) {
  __asan_unpoison_memory_region(data, size);
}
#else
static inline void kiln_asan_poison(const void *data, size_t size) { (void)data, (void)size; }
static inline void kiln_asan_unpoison(const void *data, size_t size) { (void)data, (void)size; }
#endif

/* What libraries without its instrumentation have written must be told to MemorySanitizer. Their
 * own blocks are left out by options in base/mem.c: ours all come from a kiln_mem. `check` reports
 * bytes that were never written. */
#if KILN_MSAN
#include <sanitizer/msan_interface.h>
static inline void kiln_msan_poison(const void *data, size_t size) { __msan_poison(data, size); }
static inline void kiln_msan_unpoison(const void *data, size_t size) {
  __msan_unpoison(data, size);
}
static inline void kiln_msan_check(const void *data, size_t size) {
  __msan_check_mem_is_initialized(data, size);
}
#else
static inline void kiln_msan_poison(const void *data, size_t size) { (void)data, (void)size; }
static inline void kiln_msan_unpoison(const void *data, size_t size) { (void)data, (void)size; }
static inline void kiln_msan_check(const void *data, size_t size) { (void)data, (void)size; }
#endif
