#!/bin/sh
# The author of a kernel that takes little: causal attention, Tq = Tk, D 64 or 128, packed [B, T, H, D]. By README and --help alone:
# writes it, verifies it, breaks its head mapping and its tail, lets fuzz find and shrink that, and measures it beside others.
# `tests/walks/author.sh PROGRAM INCLUDES FOLDER`, FOLDER empty. Each command stands in front of what it prints. One in 100 problems is
# posed: what is looked at is the way.
set -eu
program=$1 includes=$2 folder=$3
cd "$folder"

fail() {
  cat said >&2
  echo "$1" >&2
  exit 1
}
# run STATUS COMMAND...: shows the command and what it prints, which is in said afterwards.
run() {
  wanted=$1
  shift
  echo "\$ $*"
  status=0
  "$@" >said 2>&1 || status=$?
  cat said
  echo
  [ "$status" = "$wanted" ] || fail "$1 $2: status $status instead of $wanted"
}
says() { # TEXT...
  for text; do grep -qF -- "$text" said || fail "that does not say '$text'"; done
}

cat >mine.c <<'SOURCE'
#include "attention.h"
#include <math.h>

static int is_packed(attn_layout layout, int64_t heads, int64_t length, int64_t width) {
  return layout.head == width && layout.position == heads * width && layout.batch == length * heads * width;
}

static const char *unsupported(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int64_t T = p->query_length, H = p->query_heads, Hkv = p->kv_heads, D = p->head_dim;
  if (p->left != ATTN_UNLIMITED || p->right != 0) return "is causal";
  if (T != p->key_length) return "takes as many queries as keys";
  if ((D != 64 && D != 128) || p->value_dim != D) return "takes heads of 64 or 128";
  if (!is_packed(p->query, H, T, D) || !is_packed(p->key, Hkv, T, D) || !is_packed(p->value, Hkv, T, D) ||
      !is_packed(p->output, H, T, D))
    return "takes packed [B, T, H, D]";
  return 0;
}

static void run(const attn_call *call) {
  const attn_problem *p = call->problem;
  const int64_t T = p->query_length, H = p->query_heads, Hkv = p->kv_heads, D = p->head_dim;
  for (int64_t n = 0; n < p->batch * T * H; n++) {
    const int64_t b = n / H / T, i = n / H % T, h = n % H;
    const int64_t kv = h / (H / Hkv);
    const float *q = (const float *)call->tensors.query + n * D;
    float *o = (float *)call->tensors.output + n * D, max = -INFINITY, sum = 0;
    for (int64_t d = 0; d < D; d++) o[d] = 0;
    for (int64_t j = 0; j <= i; j++) {
      const int64_t key = ((b * T + j) * Hkv + kv) * D;
      const float *k = (const float *)call->tensors.key + key, *v = (const float *)call->tensors.value + key;
      float score = 0, before = max, kept = 1;
      for (int64_t d = 0; d < D; d++) score += q[d] * k[d];
      score *= (float)p->scale;
      if (score == -INFINITY) continue;
      max = isnan(score) || isnan(max) ? NAN : fmaxf(max, score);
      if (max != before) kept = expf(before - max);
      sum = sum * kept + expf(score - max);
      for (int64_t d = 0; d < D; d++) o[d] = o[d] * kept + expf(score - max) * v[d];
    }
    for (int64_t d = 0; d < D && sum != 0; d++) o[d] /= sum;
  }
}

static const attn_variant mine = {
    .name = "mine",
    .summary = "causal, packed [B, T, H, D], heads of 64 or 128",
    .function = ATTN_SOFTMAX,
    .features = ATTN_BAND,
    .types = 1u << ATTN_FLOAT32,
    .time_exponent = 2,
    .unsupported = unsupported,
    .run = run,
};
static const attn_variant *const variants[] = {&mine};
const attn_table attn_plugin = {ATTN_INTERFACE_VERSION, 1, variants, 0};
SOURCE

build() { # SOURCE PLUGIN
  run 0 cc -O2 -shared -fPIC "-I$includes" "$1" -o "$2" -lm
}
replace() { # IN OUT TEXT NEW: one line of it
  sed "s|$3|$4|" "$1" >"$2"
  ! cmp -s "$1" "$2" || fail "the kernel has no '$3'"
}

build mine.c mine.so
run 0 "$program" verify --plugin ./mine.so --variant mine --every 100 --count 4
says passed 'fitted to what it takes' 'a band' '(all causal)' 'D 64 or 128' 'Tq = Tk' 'layout bthd'

# Query heads read each other's keys.
replace mine.c heads.c 'h / (H / Hkv)' 'h % Hkv'
build heads.c heads.so
run 1 "$program" verify --plugin ./heads.so --variant mine --every 100 --count 4 --fail-fast
says 'FAILED: output' 'rows: ' 'heads '

# Behind whole tiles of 64 the last key is left out.
replace mine.c tail.c 'j <= i;' 'j <= i - (i > 0 \&\& i >= T / 64 * 64);'
build tail.c tail.so
run 1 "$program" verify --plugin ./tail.so --variant mine --every 100 --count 4 --fail-fast
says 'FAILED: output' 'rows from '
run 1 "$program" fuzz --plugin ./tail.so --variant mine --seconds 300 --seed 3
says 'shrunk in' 'T % 64 matters: it fails where T is no multiple of 64' 'reproduce: attnbench verify'

# What fuzz says to type fails too.
eval "set -- $(sed -n 's/^reproduce: attnbench //p' said)"
run 1 "$program" "$@"
says 'FAILED: output'

run 0 "$program" help problem
says 'layout:NAME' 'mask:AXES'
run 0 "$program" bench --plugin ./mine.so --variant mine,fused --causal --kv-heads 2 --layout bthd \
  --lengths 64,128 --threads 1 --repetitions 4 --min-time 4x --instructions=false --quiet
says 'mine/causal/B:1/H:4/Hkv:2/D:64/T:128/layout:bthd'
tail -n 1 said | grep -q '^mine takes .* \[.*\] times as long as .*, the fastest other variant on the same points' ||
  fail "it does not end with a ratio"
