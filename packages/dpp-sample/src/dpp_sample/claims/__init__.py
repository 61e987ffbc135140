"""The paper's claims, each with what it says, what was expected here, and how it is measured."""

from armillary.claims import Claim, Effort, Measured, NotMeasured

from .bounds import estimated_bias, kl_bound, kl_bound_of_triples
from .exactness import exact_sampler, refreshed_pools
from .open_ended import open_ended
from .tasks import sql, word_problem, word_problem_at_equal_quality


def _with_an_llm_as_judge(_: Effort) -> Measured:
    raise NotMeasured(
        "LLM selection needs a model that follows a selection prompt, larger than a laptop runs; "
        "baselines.llm_select takes any, and is never simulated"
    )


def _on_benchmarks(_: Effort) -> Measured:
    raise NotMeasured(
        "AMBROSIA and GSM8K are in no package, and need an instruction-tuned model of useful size; "
        "`dpp-sample select --ambrosia` and `--gsm8k` score a user's own candidates on them"
    )


CLAIMS = (
    Claim(
        "kl-bound",
        says="The bias of the pooled sampler, KL(P || mu_N), is bounded by O(1/N).",
        expected="The bound holds in every cell; N times it is within 25% of its limit at N = 48. "
        "Beyond the claim: KL itself falls as N^-2, total variation as 1/N.",
        measure=kl_bound,
        minutes=0.5,
    ),
    Claim(
        "kl-k3",
        says="The same for sets of three.",
        expected="The bound holds; seed 0: KL from 1.04e-1 at N = 8 to 1.14e-3 at N = 48.",
        measure=kl_bound_of_triples,
        minutes=0.2,
    ),
    Claim(
        "bias-diag",
        says="One pool tells its own bias (ours: the abstract has the bound alone).",
        expected="Right within 10% in large pools and upward in small ones; within 25% on average "
        "in a space of 2000 strings.",
        measure=estimated_bias,
        minutes=0.5,
    ),
    Claim(
        "refresh",
        says="Iterated pools remove the bias (ours, beyond the abstract).",
        expected="One round keeps P exactly; the second eigenvalue is .36 to .57, so that 5 rounds "
        "take total variation from .05-.18 to .0001-.01.",
        measure=refreshed_pools,
        minutes=0.1,
    ),
    Claim(
        "exact",
        says="Sets are drawn exactly from the pool's K-DPP.",
        expected="Marginals to 1e-12, chi-square p above 1e-3; to 1e-10 where log-weights have a "
        "standard deviation of 100 and heavy rows have copies.",
        measure=exact_sampler,
        minutes=0.2,
    ),
    Claim(
        "open-ended",
        says="A better quality-diversity frontier than temperature sampling, k-means, LLM "
        "selection and MMR on open-ended generation.",
        expected="MAP dominates more area than each baseline on the mean over prompts, with a 95% "
        "interval above 0 but for MMR (1 to 5%), and has more Vendi at the quality of "
        "temperature, k-means and diverse beam search in at least 7 of 8 prompts.",
        measure=open_ended,
        minutes=0.5,
    ),
    Claim(
        "sql",
        says="Better coverage of the readings of ambiguous SQL questions.",
        expected="With a kernel that sees results: coverage .78 at precision .79 (MAP, beta 2), "
        ".10 above sampling at T = 2, .25 above T = 1, not below MMR and k-means with the same "
        "features, nor diverse beam search. With text alone no gain.",
        measure=sql,
        minutes=2,
    ),
    Claim(
        "math",
        says="Higher pass@K on mathematical reasoning.",
        expected="At beta 1: pass@4 of the k-DPP .08 above sampling (.91 against .77), distinct "
        "answers .5 above it; MAP solves .97.",
        measure=word_problem,
        promised=False,
        minutes=2,
    ),
    Claim(
        "math-equal-quality",
        says="The same at equal quality.",
        expected="pass@4 of the k-DPP .08 above sampling where its sets are as probable.",
        measure=word_problem_at_equal_quality,
        minutes=2,
    ),
    Claim(
        "llm-selection",
        says="A better frontier than LLM-based selection.",
        expected="Cannot be shown at laptop scale.",
        measure=_with_an_llm_as_judge,
        promised=False,
    ),
    Claim(
        "benchmarks",
        says="Better coverage on AMBROSIA and higher pass@K on GSM8K, with a large model.",
        expected="Cannot be shown at laptop scale.",
        measure=_on_benchmarks,
        promised=False,
    ),
)
