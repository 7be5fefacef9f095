"""How libraries of attention write what a problem line of attnbench says: the one place for the facts of docs/conventions.md.

A fact that is run names the answer that its run must give (conventions_torch.py, conventions_jax.py, conventions_onnx.py; in
the order of these rows where a library has several for a question). The others name the source that says so."""

from dataclasses import dataclass

RUN = "run"

SDPA, FLEX, FLASH, ONNX, CUDNN, XFORMERS, LLAMA, JAX = (
    *("PyTorch SDPA", "FlexAttention", "FlashAttention", "ONNX Attention"),
    *("cuDNN", "xFormers", "llama.cpp", "JAX"),
)
NEEDS = {SDPA: "torch", FLEX: "torch", ONNX: "onnxruntime", JAX: "jax"}


@dataclass(frozen=True)
class Fact:
    library: str
    question: str
    asked: str  # how the library's caller writes it
    means: str  # what comes, in words of our line
    checked: str  # RUN or a key of SOURCES
    answer: str = ""  # of a run

    @property
    def needs(self):
        return NEEDS.get(self.library)


# Key, heading, what attnbench says.
QUESTIONS = [
    (
        "causal",
        "Causal, with as many queries as keys or not",
        "Ours: `causal` puts the diagonal's start top left (query 0 sees key 0 alone), `causal_bottom_right` its end bottom right "
        "(the last query sees every key). Where Tq = Tk they are one.",
    ),
    (
        "window",
        "Which end of a window is included",
        "Ours: `window:W` is i − W ≤ j ≤ i: W keys behind and the query's own, W + 1 in all; `band:L,R,OFFSET` is "
        "i + OFFSET − L ≤ j ≤ i + OFFSET + R, both ends included.",
    ),
    (
        "softcap",
        "Softcap",
        "Ours: `softcap:C` is C·tanh(s / C) of the scaled score, before bias and mask.",
    ),
    (
        "sinks",
        "Attention sinks",
        "Ours: `sink` is one float32 number for each query head, a score with no value: exp(sink) joins the sum of the softmax and of the "
        "log-sum-exp. It is not scaled, not capped and not the first tokens that StreamingLLM keeps.",
    ),
    (
        "lse",
        "Log-sum-exp",
        "Ours: `lse` is natural, float32, [B, H, Tq], of scores after scale, softcap, bias and mask; sinks included.",
    ),
    (
        "hidden",
        "A row that sees no key",
        "Ours: zeros, with a log-sum-exp of −inf (or the sink).",
    ),
    ("scale", "Scale where none is given", "Ours: 1/√D; `scale:x` takes any finite number, 0 and negative ones too."),
    (
        "heads",
        "Grouped heads",
        "Ours: `Hkv:N`; query head h reads key/value head h / (H / Hkv): neighbours share. h mod Hkv would be the other way.",
    ),
    (
        "lengths",
        "Keys that exist (padding)",
        "Ours: `lengths:a,b` says how many keys each entry has; `offsets:a,b` moves each entry's diagonal.",
    ),
    ("sense", "A boolean mask", "Ours: `mask:AXES`, 1 = may be seen."),
    (
        "poison",
        "NaN in a key or value that nobody sees",
        "Ours: what a row cannot see changes no bit of it; so garbage in the unused part of a cache does not matter. Elsewhere a weight "
        "of 0 times NaN is NaN: clear that part.",
    ),
    (
        "weights",
        "Weights of 16-bit problems, before they meet the values",
        "Ours: a kernel may round them to the type; one that says `ATTN_FLOAT32_WEIGHTS` does not, and is held to that.",
    ),
]

FACTS = [
    Fact(SDPA, "causal", "`is_causal=True`", "`causal`", RUN, "top left"),
    Fact(SDPA, "causal", "`attn_mask=causal_lower_right(Tq, Tk)`", "`causal_bottom_right`", RUN, "bottom right"),
    Fact(FLEX, "causal", "`q_idx >= kv_idx` in `mask_mod`", "`causal`", RUN, "top left"),
    Fact(FLEX, "causal", "`q_idx + (Tk - Tq) >= kv_idx`", "`causal_bottom_right`", RUN, "bottom right"),
    Fact(FLASH, "causal", "`causal=True`", "`causal_bottom_right`; before 2.1 `causal`", "FA2"),
    Fact(ONNX, "causal", "`is_causal=1`, no cache", "`causal`, although the text calls it bottom-right", RUN, "top left"),
    Fact(ONNX, "causal", "`is_causal=1`, `past_key` of P keys", "`band:inf,0,P`: bottom right", RUN, "bottom right"),
    Fact(CUDNN, "causal", "right bound 0, `TOP_LEFT` (default)", "`causal`", "cuDNN"),
    Fact(
        *(CUDNN, "causal", "right bound 0, `BOTTOM_RIGHT`"),
        *("`causal_bottom_right`; refuses Tq > Tk unless sequence lengths are given", "cuDNN"),
    ),
    Fact(XFORMERS, "causal", "`LowerTriangularMask`", "`causal`", "xFormers"),
    Fact(XFORMERS, "causal", "`LowerTriangularFromBottomRightMask`", "`causal_bottom_right`", "xFormers"),
    Fact(LLAMA, "causal", "a mask made from positions", "key seen where its position ≤ the query's: bottom right of a full cache", "llama.cpp"),
    Fact(JAX, "causal", "`is_causal=True`", "`causal`", RUN, "top left"),
    Fact(FLEX, "window", "`(q_idx >= kv_idx) & (q_idx - kv_idx <= W)`", "`window:W`", RUN, "window:3"),
    Fact(FLASH, "window", "`window_size=(L, R)`", "`band:L,R,Tk-Tq`: both included, bottom right; −1: no limit", "FA2"),
    Fact(
        *(ONNX, "window", "`left_window_size=L, right_window_size=R` (from opset 25)"),
        *("`band:L,R,OFFSET`: both included; −1: no limit. By onnx's own reference: ONNX Runtime 1.31.1 refuses the attributes", RUN),
        "band:2,1",
    ),
    Fact(
        *(CUDNN, "window", "`set_diagonal_band_left_bound(W)`, right bound R"),
        *("`band:W-1,R`: the left end is **excluded**, the right included; also `set_sliding_window_length(W)`", "cuDNN"),
    ),
    Fact(XFORMERS, "window", "`LocalAttentionFromBottomRightMask(L, R)`", "`band:L,R,Tk-Tq`: both included", "xFormers"),
    Fact(
        *(XFORMERS, "window", "`LowerTriangularFromBottomRightLocalAttentionMask(W)`"),
        *("`band:W-1,0,Tk-Tq`: W counts the query's own key", "xFormers"),
    ),
    Fact(LLAMA, "window", "`n_swa = W`, type standard", "`window:W-1`: W counts the query's own key", "llama.cpp"),
    Fact(LLAMA, "window", "`n_swa = W`, type symmetric", "`band:W/2,W/2`, W/2 rounded down, both included", "llama.cpp"),
    Fact(JAX, "window", "`local_window_size=(L, R)`", "`band:L,R,0`: both included", RUN, "band:2,1"),
    Fact(JAX, "window", "`local_window_size=W`", "`band:W,W,0`: also W keys **ahead**", RUN, "band:W,W"),
    Fact(JAX, "window", "the same, Tq ≠ Tk", "top left", RUN, "top left"),
    Fact(
        *(FLEX, "softcap", "`C * torch.tanh(score / C) + bias` in `score_mod`"),
        *("`softcap:C`: the score is already scaled; `mask_mod` comes after", RUN, "scaled scores"),
    ),
    Fact(FLASH, "softcap", "`softcap=C`", "`softcap:C`: before ALiBi and mask", "FA2"),
    Fact(ONNX, "softcap", "`softcap=C`", "`softcap:C`: before bias and mask", RUN, "before the bias"),
    Fact(CUDNN, "softcap", "a score modifier of `attn_score_modifiers.h`", "where the caller's graph puts it", "cuDNN"),
    Fact(LLAMA, "softcap", "`logit_softcap`", "`softcap:C`: before mask and ALiBi", "llama.cpp"),
    Fact(FLEX, "sinks", "output · sigmoid(lse − sink), by the caller", "`sink`", RUN, "sink"),
    Fact(FLASH, "sinks", "`learnable_sink` ([H]) of `flash_attn.cute`; not in version 2", "`sink`", "FA4"),
    Fact(CUDNN, "sinks", "`set_sink_token`, [1, H, 1, 1], from 9.13", "`sink`; the statistics include it", "cuDNN"),
    Fact(LLAMA, "sinks", "`sinks`, float32 [H]", "`sink`", "llama.cpp"),
    Fact(
        *(SDPA, "lse", "none in public; `aten::_scaled_dot_product_flash_attention_for_cpu` gives one"),
        *("natural, float32 [B, H, Tq]; 0 and not −inf where a row sees no key", RUN, "natural"),
    ),
    Fact(
        *(FLEX, "lse", "`return_aux=AuxRequest(lse=True)`"),
        *("natural, float32 [B, H, Tq]", RUN, "natural"),
    ),
    Fact(FLASH, "lse", "`return_attn_probs=True`", "natural, float32 [B, H, Tq]", "FA2"),
    Fact(ONNX, "lse", "none", "", "ONNX"),
    Fact(CUDNN, "lse", "`set_generate_stats(true)`", "natural, [B, H, Tq, 1]", "cuDNN"),
    Fact(XFORMERS, "lse", "`memory_efficient_attention_forward_requires_grad`", "natural, [B, H, Tq]", "xFormers"),
    Fact(LLAMA, "lse", "none", "", "llama.cpp"),
    Fact(JAX, "lse", "`return_residual=True`", "natural, [B, **Tq, H**], in the **type of the keys** (8 bits for bfloat16)", RUN, "natural"),
    Fact(SDPA, "hidden", "`attn_mask` of False, or of −inf", "zeros, math and flash kernel alike", RUN, "zeros"),
    Fact(SDPA, "hidden", "`attn_mask` of `torch.finfo.min`", "the mean of **all** values, hidden or not", RUN, "mean of all values"),
    Fact(FLEX, "hidden", "by `mask_mod`", "zeros; log-sum-exp −inf", RUN, "zeros"),
    Fact(FLASH, "hidden", "causal with Tq > Tk, or a window", "zeros; log-sum-exp **+inf** (version 3: −inf)", "FA2"),
    Fact(ONNX, "hidden", "`attn_mask` of False", "zeros", RUN, "zeros"),
    Fact(CUDNN, "hidden", "", "zeros, in the reference that its tests use", "cuDNN"),
    Fact(XFORMERS, "hidden", "", "its docstring does not say; the formula given there makes NaN", "xFormers"),
    Fact(LLAMA, "hidden", "mask of −inf", "zeros, on the processor", "llama.cpp"),
    Fact(JAX, "hidden", "`mask` of False", "the mean of **all** values; log-sum-exp −2.4e38", RUN, "mean of all values"),
    Fact(SDPA, "scale", "`scale=None`", "1/√D", RUN, "1/sqrt(D)"),
    Fact(FLEX, "scale", "`scale=None`", "1/√D", RUN, "1/sqrt(D)"),
    Fact(FLASH, "scale", "`softmax_scale=None`", "1/√D", "FA2"),
    Fact(ONNX, "scale", "no `scale`", "1/√D; ONNX Runtime refuses 0 and negative scales", RUN, "1/sqrt(D)"),
    Fact(CUDNN, "scale", "no `set_attn_scale`", "**1**: `scale:1`", "cuDNN-docs"),
    Fact(XFORMERS, "scale", "`scale=None`", "1/√D", "xFormers"),
    Fact(LLAMA, "scale", "always given", "", "llama.cpp"),
    Fact(JAX, "scale", "`scale=None`", "1/√D", RUN, "1/sqrt(D)"),
    Fact(SDPA, "heads", "`enable_gqa=True`", "`Hkv:N`", RUN, "h / (H / Hkv)"),
    Fact(FLEX, "heads", "`enable_gqa=True`", "`Hkv:N`; `score_mod` and `mask_mod` see the query's head", RUN, "h / (H / Hkv)"),
    Fact(FLASH, "heads", "fewer heads in k and v", "`Hkv:N`", "FA2"),
    Fact(ONNX, "heads", "fewer heads in K and V", "`Hkv:N`", RUN, "h / (H / Hkv)"),
    Fact(CUDNN, "heads", "fewer heads in K and V", "`Hkv:N`", "cuDNN"),
    Fact(XFORMERS, "heads", "[B, T, Hkv, H/Hkv, D], k and v expanded by the caller", "`Hkv:N`", "xFormers"),
    Fact(LLAMA, "heads", "fewer heads in k and v", "`Hkv:N`", "llama.cpp"),
    Fact(JAX, "heads", "fewer heads in key and value", "`Hkv:N`", RUN, "h / (H / Hkv)"),
    Fact(SDPA, "lengths", "none: a mask", "", "SDPA-docs"),
    Fact(FLASH, "lengths", "`cu_seqlens_k`, `cache_seqlens`", "`lengths`; causal is bottom right of each entry's own lengths", "FA2"),
    Fact(
        *(ONNX, "lengths", "`nonpad_kv_seqlen` (from opset 24), causal"),
        *("`band:inf,0,0/lengths:n,.../offsets:n-Tq,...`: bottom right of each entry's own length", RUN, "bottom right"),
    ),
    Fact(CUDNN, "lengths", "`set_padding_mask`, `seq_len_q`, `seq_len_kv`", "`lengths`; `BOTTOM_RIGHT` follows each entry's own lengths", "cuDNN"),
    Fact(XFORMERS, "lengths", "`BlockDiagonalPaddedKeysMask`", "`lengths`", "xFormers"),
    Fact(LLAMA, "lengths", "−inf in the mask", "", "llama.cpp"),
    Fact(JAX, "lengths", "`key_value_seq_lengths`, causal", "`causal/lengths:...`: stays top left", RUN, "top left"),
    Fact(JAX, "lengths", "an entry of length 0", "the mean of all values, the padding's", RUN, "mean of all values"),
    Fact(SDPA, "sense", "bool `attn_mask`", "as ours; `nn.MultiheadAttention`'s `key_padding_mask` is the opposite", RUN, "True is seen"),
    Fact(FLEX, "sense", "`mask_mod`", "as ours", RUN, "True is seen"),
    Fact(FLASH, "sense", "none in version 2", "", "FA2"),
    Fact(ONNX, "sense", "bool `attn_mask`", "as ours", RUN, "True is seen"),
    Fact(XFORMERS, "sense", "none: `attn_bias` is added, −inf hides", "`bias`", "xFormers"),
    Fact(LLAMA, "sense", "none: the mask is added, −inf hides", "`bias`, times the ALiBi slope where there is one", "llama.cpp"),
    Fact(JAX, "sense", "bool `mask`", "as ours", RUN, "True is seen"),
    Fact(SDPA, "poison", "hidden by `attn_mask`", "NaN in the key reaches the output, and so does NaN in the value", RUN, "key and value"),
    Fact(FLEX, "poison", "hidden by `mask_mod`", "NaN in the value reaches the output, in the key it does not", RUN, "value"),
    Fact(ONNX, "poison", "hidden by `attn_mask`", "NaN in the key reaches the output, and so does NaN in the value", RUN, "key and value"),
    Fact(JAX, "poison", "hidden by lengths", "NaN in the value reaches the output, in the key it does not", RUN, "value"),
    Fact(SDPA, "weights", "bfloat16, flash kernel (the default)", "rounded", RUN, "rounded"),
    Fact(SDPA, "weights", "bfloat16, math kernel", "float32", RUN, "float32"),
    Fact(FLEX, "weights", "bfloat16, not compiled", "rounded", RUN, "rounded"),
    Fact(FLASH, "weights", "", "rounded, before they are divided by their sum", "FA2"),
    Fact(ONNX, "weights", "float16", "rounded; [scores too](findings.md)", RUN, "rounded"),
    Fact(LLAMA, "weights", "values in float16, on the processor", "float32; one row at a time it is the **sum** that is kept in float16", "llama.cpp"),
    Fact(JAX, "weights", "bfloat16", "rounded", RUN, "rounded"),
]

SOURCES = {
    "FA2": "Dao-AILab/flash-attention, commit 0251105 (2026-08-15): flash_attn/flash_attn_interface.py, `flash_attn_func`; "
    "csrc/flash_attn/src/mask.h, softmax.h (`normalize_softmax_lse`), flash_fwd_kernel.h; hopper/softmax.h for version 3; "
    "README.md, section 2.1",
    "FA4": "the same commit: flash_attn/cute/interface.py and softmax.py (`finalize`)",
    "ONNX": "onnx 1.23.2, operator Attention, opsets 23 to 25, as `onnx.defs.get_schema` prints it",
    "cuDNN": "NVIDIA/cudnn-frontend, commit 3929da2 (four after v1.23.0): include/cudnn_frontend/utils/attn_score_modifiers.h, "
    "graph_properties.h, node/scaled_dot_product_flash_attention.h; test/python/sdpa/fp16_ref.py",
    "cuDNN-docs": "docs.nvidia.com/deeplearning/cudnn/frontend/v1.14.1/operations/Attention.html, attn_scale",
    "xFormers": "facebookresearch/xformers, v0.0.32 (commit ac00641): xformers/ops/fmha/\\_\\_init\\_\\_.py, attn_bias.py and "
    "tests/test_mem_eff_attention.py. At commit ca6d2aa (2026-04-21) they come from the package mslk",
    "llama.cpp": "ggml-org/llama.cpp: ggml/src/ggml-cpu/ops.cpp at 0049e3c (`ggml_compute_forward_flash_attn_ext_*`), "
    "src/llama-hparams.h at 027d575 (`is_masked_swa`), src/llama-kv-cache.cpp at 001d906 (`set_input_kq_mask`)",
    "SDPA-docs": "PyTorch 2.15.0, the text of `torch.nn.functional.scaled_dot_product_attention`",
}
