/* Scores and what becomes of them: the scale, features, the log-sum-exp, what is divided by, phi. */
#include "hint_mistake_rows.h"

static const double log2_e = 1.4426950408889634;

static bool no_scale(asked *a, int64_t n) { return (void)n, set(&a->scale, 1); }
static bool scale_twice(asked *a, int64_t n) { return (void)n, set(&a->scale, a->scale * a->scale); }
static bool scale_1_over_d(asked *a, int64_t n) {
  return (void)n, set(&a->scale, 1 / (double)a->problem->head_dim);
}
static bool scale_by_d(asked *a, int64_t n) {
  return (void)n, set(&a->scale, 1 / sqrt((double)a->problem->head_dim));
}
static bool scale_by_dv(asked *a, int64_t n) {
  return (void)n, set(&a->scale, 1 / sqrt((double)a->problem->value_dim));
}
static bool scale_inverse(asked *a, int64_t n) {
  return (void)n, a->scale != 0 && set(&a->scale, 1 / a->scale);
}
static bool scale_sign(asked *a, int64_t n) { return (void)n, a->scale != 0 && set(&a->scale, -a->scale); }
static bool base_2(asked *a, int64_t n) { return (void)n, set(&a->score_factor, 1 / log2_e); }
static bool base_2_twice(asked *a, int64_t n) { return (void)n, set(&a->score_factor, log2_e); }

static bool not_normalised(asked *a, int64_t n) { return (void)n, a->normalised = false, true; }
static bool weights_not_normalised(asked *a, int64_t n) {
  return (void)n, a->weights_normalised = false, true;
}
static bool normalised_anyway(asked *a, int64_t n) {
  return (void)n, a->problem->unnormalised && (a->normalised = true);
}
static bool no_epsilon(asked *a, int64_t n) { return (void)n, set(&a->epsilon, 0); }
static bool lse_base_2(asked *a, int64_t n) { return (void)n, set(&a->lse_factor, log2_e); }
static bool lse_times_ln_2(asked *a, int64_t n) { return (void)n, set(&a->lse_factor, 1 / log2_e); }
static bool lse_without_maximum(asked *a, int64_t n) { return (void)n, a->lse_without_maximum = true; }
static bool phi_is(asked *a, int64_t n) { return a->phi = (phi_use)n, true; }
static bool features_by(asked *a, int64_t n) {
  const int64_t whole = a->problem->head_dim / n * n;
  return move(&a->features, whole < a->problem->head_dim ? whole : a->problem->head_dim - 1);
}
static bool features_as_values(asked *a, int64_t n) {
  return (void)n, a->problem->value_dim < a->problem->head_dim && move(&a->features, a->problem->value_dim);
}

static bool has_state(const asked *a) { return a->problem->states.state.type != ATTN_ABSENT; }
static bool no_state(asked *a, int64_t n) { return (void)n, has_state(a) && (a->state_ignored = true); }
static bool state_not_in_sum(asked *a, int64_t n) {
  return (void)n, has_state(a) && a->normalised && (a->state_not_in_sum = true);
}
static bool state_never_fades(asked *a, int64_t n) {
  return (void)n, has_state(a) && a->problem->decay.type && (a->state_never_fades = true);
}

static const mistake table[] = {
    {"state", "the initial state is left out", LINEAR, ONCE, no_state},
    {"state", "the initial state is in the values and not in what they are divided by", 1u << ATTN_LINEAR,
     ONCE, state_not_in_sum},
    {"state", "the initial state does not decay", LINEAR, ONCE, state_never_fades},
    {"scale", "the scores are not scaled", SOFTMAX, ONCE, no_scale},
    {"scale", "the sign of the scale is lost", SOFTMAX, ONCE, scale_sign},
    {"scale", "the scale is applied twice", SOFTMAX, ONCE, scale_twice},
    {"scale", "the scale is 1/D", SOFTMAX, ONCE, scale_1_over_d},
    {"scale", "the scale is 1/sqrt(D), and not the problem's", SOFTMAX, ONCE, scale_by_d},
    {"scale", "the scale is 1/sqrt(Dv)", SOFTMAX, ONCE, scale_by_dv},
    {"scale", "scores are divided by the scale", SOFTMAX, ONCE, scale_inverse},
    {"scale", "exponentials are in base 2, and scores lack the factor log2(e)", SOFTMAX, ONCE, base_2},
    {"scale", "scores have the factor log2(e), and exponentials are in base e", SOFTMAX, ONCE, base_2_twice},
    {"features", "features of queries and keys behind whole vectors of %lld are left out of the scores", BOTH,
     WITH(1, 2, 4, 8, 16, 32), features_by},
    {"features", "scores are summed over Dv features in place of D", BOTH, ONCE, features_as_values},

    {"lse", "the log-sum-exp is in base 2", SOFTMAX, ONCE, lse_base_2},
    {"lse", "the log-sum-exp has the factor ln(2) too often", SOFTMAX, ONCE, lse_times_ln_2},
    {"lse", "the log-sum-exp lacks the row's maximum", SOFTMAX, ONCE, lse_without_maximum},
    {"sum", "the output is not divided by the sum of the weights", BOTH, ONCE, not_normalised},
    {"sum", "the attention weights are not divided by their sum", SOFTMAX, ONCE, weights_not_normalised},
    {"sum", "the output is divided by the sum of the weights", LINEAR, ONCE, normalised_anyway},
    {"sum", "epsilon is not added to the sum", LINEAR, ONCE, no_epsilon},
    {"function", "phi is elu without + 1", LINEAR, WITH(PHI_ELU), phi_is},
    {"function", "phi takes elu's wrong branch", LINEAR, WITH(PHI_X_BELOW_0), phi_is},
    {"function", "phi is elu + 1", LINEAR, WITH(PHI_ELU_1), phi_is},
    {"function", "phi is relu", LINEAR, WITH(PHI_RELU), phi_is},
    {"function", "phi is the identity", LINEAR, WITH(PHI_IDENTITY), phi_is},
};

const mistakes hint_mistakes_of_scores = MISTAKES(table);
