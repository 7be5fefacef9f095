/* T5's buckets, as position.h has them: against powers of whole numbers, which nothing rounds, and against the reference's
 * definition where these are too large. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "reference/position.h"
#include "variants/attention.h"

__extension__ typedef unsigned __int128 whole;

static attn_problem problem_of(int64_t buckets, int64_t distance, bool both) {
  return (attn_problem){.features = ATTN_T5, .t5_buckets = buckets, .t5_distance = distance, .t5_both = both};
}

static whole power(int64_t base, int64_t exponent) {
  whole product = 1;
  for (int64_t n = 0; n < exponent; n++) product *= (whole)base;
  return product;
}

/* Of one direction: the most k with (n / exact)^w >= (most / exact)^k, which is n^w >= most^k exact^(w - k). */
static int64_t bucket_by_powers(int64_t buckets, int64_t most, int64_t n) {
  const int64_t exact = buckets / 2, w = buckets - exact;
  int64_t k = 0;
  if (n < exact) return n;
  if (n >= most) return buckets - 1;
  while (k + 1 < w && power(n, w) >= power(most, k + 1) * power(exact, w - k - 1)) k++;
  return exact + k;
}

static bool fits(int64_t buckets, int64_t most) {
  double size = 1;
  for (int64_t n = 0; n < buckets - buckets / 2; n++) size *= (double)most;
  return size < 0x1p127;
}

static void a_bucket_begins_where_powers_of_whole_numbers_say(void **state) {
  (void)state;
  int64_t asked = 0, whole_steps = 0;
  for (int64_t buckets = 2; buckets <= 40; buckets++)
    for (int64_t most = buckets / 2 + 1; most <= 260 && fits(buckets, most); most++) {
      const attn_problem p = problem_of(buckets, most, false);
      for (int64_t n = 0; n <= most + 2; n++, asked++) {
        const int64_t right = bucket_by_powers(buckets, most, n);
        if (attn_t5_bucket(&p, -n) != right || reference_t5_bucket(&p, -n) != right)
          fail_msg("%d buckets up to %d: %d is in %d, not in %d (reference: %d)", (int)buckets, (int)most,
                   (int)n, (int)right, (int)attn_t5_bucket(&p, -n), (int)reference_t5_bucket(&p, -n));
        const int64_t exact = buckets / 2, w = buckets - exact, k = right - exact;
        whole_steps += n > exact && n < most && power(n, w) == power(most, k) * power(exact, w - k);
      }
    }
  assert_true(asked > 300000 && whole_steps > 100); /* among them many whose steps are whole numbers */
}

static void directions_halve_the_buckets_or_leave_keys_ahead_in_the_first(void **state) {
  (void)state;
  for (int64_t half = 2; fits(half, 128); half++) {
    const attn_problem both = problem_of(2 * half, 128, true), one = problem_of(half, 128, false);
    for (int64_t n = 0; n <= 200; n++) {
      const int64_t bucket = bucket_by_powers(half, 128, n);
      assert_int_equal(attn_t5_bucket(&both, -n), bucket);
      assert_int_equal(attn_t5_bucket(&both, n), n > 0 ? half + bucket : 0);
      assert_int_equal(attn_t5_bucket(&one, n), 0);
    }
  }
}

/* The largest distances are 2^61 apart from a query, and the bucket is one that the table has. */
static void kernels_and_reference_agree_on_every_bucket(void **state) {
  (void)state;
  static const int64_t distances[] = {129, 800, 4097, 65536, 1 << 20};
  static const int64_t far[] = {ATTN_FARTHEST, 2 * ATTN_FARTHEST, (1 << 20) + 1};
  for (int64_t buckets = 4; buckets <= 1024; buckets += buckets < 64 ? 2 : 60)
    for (size_t d = 0; d < sizeof distances / sizeof *distances; d++)
      for (int turn = 0; turn < 2; turn++) {
        const attn_problem p = problem_of(buckets, distances[d], turn == 1);
        int64_t last = 0;
        if (p.t5_distance <= buckets / 2) continue;
        for (int64_t n = 0; n <= p.t5_distance; n += n < 3000 ? 1 : 997) {
          const int64_t bucket = attn_t5_bucket(&p, -n);
          assert_int_equal(bucket, reference_t5_bucket(&p, -n));
          assert_int_equal(attn_t5_bucket(&p, n), reference_t5_bucket(&p, n));
          assert_true(bucket >= last && bucket < buckets);
          last = bucket;
        }
        for (size_t n = 0; n < sizeof far / sizeof *far; n++) {
          assert_int_equal(attn_t5_bucket(&p, -far[n]), reference_t5_bucket(&p, -far[n]));
          assert_int_equal(attn_t5_bucket(&p, far[n]), p.t5_both ? buckets - 1 : 0);
        }
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_bucket_begins_where_powers_of_whole_numbers_say),
      cmocka_unit_test(directions_halve_the_buckets_or_leave_keys_ahead_in_the_first),
      cmocka_unit_test(kernels_and_reference_agree_on_every_bucket),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
