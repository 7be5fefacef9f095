/* The attention shapes of real models. Heads and dimensions are those of one layer; the batch is 1. */
#include <math.h>
#include <string.h>

#include "workload.h"

/* What all presets share. */
#define COMMON                                                                                               \
  .function = ATTN_SOFTMAX, .batch = 1, .scale = NAN, .epsilon = 1e-6, .layout = LAYOUT_BHTD,                \
  .fill = FILL_UNIFORM, .seed = 1
#define LAYER(features, has_biases)                                                                          \
  .function = ATTN_LAYER, .batch = 1, .scale = NAN, .epsilon = 1e-6, .layout = LAYOUT_BHTD,                  \
  .fill = FILL_UNIFORM, .seed = 1, .model_dim = (features), .biases = (has_biases)
#define BAND(before, after) .left = (before), .right = (after)
#define HEADS(query, key_value, dim)                                                                         \
  .query_heads = (query), .kv_heads = (key_value), .head_dim = (dim), .value_dim = (dim)
#define LENGTHS(query, key) .query_length = (query), .key_length = (key)

static const preset presets[] = {
    /* Devlin et al. 2019, section 3: 12 layers of 768 features, 12 heads; sequences of 512 tokens. */
    {"bert-base",
     "BERT-base: 12 heads, D 64, T 512, every token sees every other",
     {COMMON, HEADS(12, 12, 64), LENGTHS(512, 512), BAND(ATTN_UNLIMITED, ATTN_UNLIMITED)}},
    /* Dosovitskiy et al. 2021, table 1 (Base: 768 features, 12 heads); a 224 x 224 picture in patches of
     * 16 x 16 is 196 tokens, and one class token. */
    {"vit-b16",
     "ViT-B/16: 12 heads, D 64, T 197, a picture of 224 x 224",
     {COMMON, HEADS(12, 12, 64), LENGTHS(197, 197), BAND(ATTN_UNLIMITED, ATTN_UNLIMITED)}},
    /* Radford et al. 2019, section 2.3 and table 2; the released 124M model: n_head 12, n_embd 768,
     * n_ctx 1024. */
    {"gpt2",
     "GPT-2 (124M): 12 heads, D 64, T 1024, causal",
     {COMMON, HEADS(12, 12, 64), LENGTHS(1024, 1024), BAND(ATTN_UNLIMITED, 0)}},
    /* Grattafiori et al. 2024 (The Llama 3 Herd of Models), table 3: 32 heads, 8 key/value heads, model
     * dimension 4096. Context 8192 in the first release; a quarter of it here. */
    {"llama3-8b",
     "Llama 3 8B, prompt: 32 heads on 8 key/value heads, D 128, T 2048, causal",
     {COMMON, HEADS(32, 8, 128), LENGTHS(2048, 2048), BAND(ATTN_UNLIMITED, 0)}},
    /* Jiang et al. 2023 (Mistral 7B), table 1: n_heads 32, n_kv_heads 8, head_dim 128, window_size 4096,
     * context_len 8192. A token sees itself and the 4095 before it. */
    {"mistral-7b",
     "Mistral 7B, prompt: 32 heads on 8 key/value heads, D 128, T 8192, window of 4096",
     {COMMON, HEADS(32, 8, 128), LENGTHS(8192, 8192), BAND(4095, 0)}},
    /* Almazrouei et al. 2023 (The Falcon Series of Open Language Models); config.json of
     * tiiuae/falcon-7b: num_attention_heads 71, multi_query, hidden_size 4544; sequences of 2048. */
    {"falcon-7b",
     "Falcon 7B, prompt: 71 heads on 1 key/value head, D 64, T 2048, causal",
     {COMMON, HEADS(71, 1, 64), LENGTHS(2048, 2048), BAND(ATTN_UNLIMITED, 0)}},
    /* Radford et al. 2022 (Whisper), table 1 (Large: width 1280, 20 heads) and section 2.2: 30 seconds of
     * sound are 1500 encoder positions; n_text_ctx 448 in the released models. */
    {"whisper-cross",
     "Whisper large, decoder on encoder: 20 heads, D 64, 448 tokens on 1500 positions",
     {COMMON, HEADS(20, 20, 64), LENGTHS(448, 1500), BAND(ATTN_UNLIMITED, ATTN_UNLIMITED)}},
    /* The shape of llama3-8b when it writes: one new token against a cache of its whole context. */
    {"llama3-8b-decode",
     "Llama 3 8B, one new token: 32 heads on 8 key/value heads, D 128, 8192 keys in the cache",
     {COMMON, HEADS(32, 8, 128), LENGTHS(1, 8192), BAND(ATTN_UNLIMITED, 0), .offset = 8191}},
    /* Child et al. 2019 (Generating Long Sequences with Sparse Transformers), section 4.2: each position and the last l
     * before it, and every l-th, with l near the square root of the length; in one head, as section 4.3 merges them. */
    {"sparse-transformer-strided",
     "Sparse Transformer, strided: 8 heads, D 64, T 4096, causal, every 64th key and the last 64",
     {COMMON, HEADS(8, 8, 64), LENGTHS(4096, 4096), BAND(ATTN_UNLIMITED, 0), .term_count = 2,
      .terms = {{ATTN_LOCAL, WORKLOAD_SQRT, 0, 0}, {ATTN_STRIDED, WORKLOAD_SQRT, 0, 0}}}},
    /* The same, the fixed pattern: l 128, of which the last c = 8 are seen by all that follow. */
    {"sparse-transformer-fixed",
     "Sparse Transformer, fixed: 8 heads, D 64, T 4096, causal, one's own 128 keys and the last 8 of each "
     "128",
     {COMMON, HEADS(8, 8, 64), LENGTHS(4096, 4096), BAND(ATTN_UNLIMITED, 0), .term_count = 1,
      .terms = {{ATTN_FIXED, 128, 8, 0}}}},
    /* Beltagy et al. 2020 (Longformer), sections 3.1 and 5 (base): a window of 512, half to each side; 12 heads, sequences
     * of 4096; one global token, as in classification. */
    {"longformer",
     "Longformer: 12 heads, D 64, T 4096, a window of 512 and one global token",
     {COMMON, HEADS(12, 12, 64), LENGTHS(4096, 4096), BAND(ATTN_UNLIMITED, ATTN_UNLIMITED), .term_count = 2,
      .terms = {{ATTN_LOCAL, 256, 256, 0}, {ATTN_GLOBAL, 1, 0, 0}}}},
    /* Zaheer et al. 2020 (Big Bird), section 2 and table 8 of the appendix (ITC base): blocks of 64, of which 3 random, 2
     * global and a window of 3; 12 heads, sequences of 4096. */
    {"bigbird",
     "BigBird: 12 heads, D 64, T 4096, blocks of 64: a window of 3, 2 global, 3 random",
     {COMMON, HEADS(12, 12, 64), LENGTHS(4096, 4096), BAND(ATTN_UNLIMITED, ATTN_UNLIMITED), .term_count = 3,
      .terms = {{ATTN_LOCAL, 96, 96, 0}, {ATTN_GLOBAL, 128, 0, 0}, {ATTN_RANDOM, 3, 64, 0}}}},
    /* Xiao et al. 2024 (Efficient Streaming Language Models with Attention Sinks), sections 3.2 and 4.1: the first 4 keys
     * and the last 1020, of Llama 2 7B: 32 heads of 128. */
    {"streaming-llm",
     "StreamingLLM on Llama 2 7B: 32 heads, D 128, T 4096, causal, the first 4 keys and the last 1020",
     {COMMON, HEADS(32, 32, 128), LENGTHS(4096, 4096), BAND(ATTN_UNLIMITED, 0), .term_count = 2,
      .terms = {{ATTN_LOCAL, 1019, 0, 0}, {ATTN_FIRST, 4, 0, 0}}}},
    /* Krell et al. 2021 (Efficient Sequence Packing without Cross-contamination); the shape of llama3-8b, whose section 3.2
     * masks documents of one sequence from each other. */
    {"packed-documents",
     "Llama 3 8B, packed: 32 heads on 8 key/value heads, D 128, T 8192, causal, documents of 1024 on average",
     {COMMON, HEADS(32, 8, 128), LENGTHS(8192, 8192), BAND(ATTN_UNLIMITED, 0), .document_length = 1024}},
    /* Whole layers. Vaswani et al. 2017, sections 3.2.2 and 3.2.3 and table 3 (base): d_model 512, 8 heads of 64, no
     * biases in the formula. An encoder block, and a decoder block's attention to what the encoder made of as many
     * tokens; the paper names no length, and its batches hold sentences of all of them (section 5.1). */
    {"transformer-encoder-layer",
     "Transformer base, encoder block: d_model 512, 8 heads of 64, T 512",
     {LAYER(512, false), HEADS(8, 8, 64), LENGTHS(512, 512), BAND(ATTN_UNLIMITED, ATTN_UNLIMITED)}},
    {"transformer-decoder-layer",
     "Transformer base, decoder block: d_model 512, 8 heads of 64, 512 tokens on the encoder's 512",
     {LAYER(512, false), .memory = true, HEADS(8, 8, 64), LENGTHS(512, 512),
      BAND(ATTN_UNLIMITED, ATTN_UNLIMITED)}},
    /* Devlin et al. 2019, section 3 (H 768, A 12) and appendix A.2 (at most 512 tokens): an encoder block. Here and
     * below biases are those of the released weights. */
    {"bert-base-layer",
     "BERT-base, encoder block: d_model 768, 12 heads of 64, T 512",
     {LAYER(768, true), HEADS(12, 12, 64), LENGTHS(512, 512), BAND(ATTN_UNLIMITED, ATTN_UNLIMITED)}},
    /* Radford et al. 2019, section 2.3 (1024 tokens) and table 2 (d_model 768): a decoder block. */
    {"gpt2-layer",
     "GPT-2 (124M), decoder block: d_model 768, 12 heads of 64, T 1024, causal",
     {LAYER(768, true), HEADS(12, 12, 64), LENGTHS(1024, 1024), BAND(ATTN_UNLIMITED, 0)}},
    /* Dosovitskiy et al. 2021, table 1 (Base) and section 3.1 (16 x 16 patches and a class token), as above. */
    {"vit-b16-layer",
     "ViT-B/16, encoder block: d_model 768, 12 heads of 64, T 197",
     {LAYER(768, true), HEADS(12, 12, 64), LENGTHS(197, 197), BAND(ATTN_UNLIMITED, ATTN_UNLIMITED)}},
    /* Tan and Bansal 2019 (LXMERT), section 2.2 (cross-attention both ways; here words on objects) and 3.3 (hidden
     * size 768, that of BERT-base, whose 12 heads its code has; 36 objects of a picture); its code cuts questions to
     * 20 tokens (src/tasks/vqa_model.py). */
    {"lxmert-cross-layer",
     "LXMERT, cross-modal: d_model 768, 12 heads of 64, 20 words on 36 objects of a picture",
     {LAYER(768, true), HEADS(12, 12, 64), LENGTHS(20, 36), BAND(ATTN_UNLIMITED, ATTN_UNLIMITED)}},
    {.name = NULL},
};

const preset *preset_list(void) { return presets; }

const preset *preset_find(const char *name) {
  for (const preset *p = presets; p->name; p++)
    if (strcmp(p->name, name) == 0) return p;
  return NULL;
}
