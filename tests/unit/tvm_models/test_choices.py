"""Which proposal to leave a model to another runtime is taken, and what is said when none is."""

from tuneloom.model import Handover
from tuneloom.tuners.tvm.models.rivals.choosing import inexact, taken

TOLERANCE = 1e-3


def proposal(seconds: float, *, whole: bool = True, difference: float = 0.0) -> Handover:
    return Handover(
        left=("*",) if whole else ("y",),
        whole=whole,
        seconds=(seconds,),
        tvm_s=(1.0,),
        rival_s=(0.9,),
        difference=difference,
    )


def test_the_fastest_proposal_is_taken() -> None:
    whole, pieces = proposal(0.8), proposal(0.7, whole=False)
    assert taken([whole, pieces], TOLERANCE) is pieces
    assert taken([proposal(0.6), pieces], TOLERANCE) != pieces


def test_pieces_that_are_slower_than_onnx_runtime_alone_are_not_taken() -> None:
    assert taken([proposal(0.96, whole=False)], TOLERANCE) is None
    assert taken([proposal(0.89, whole=False)], TOLERANCE) is not None


def test_moments_in_which_neighbours_are_busy_do_not_decide() -> None:
    disturbed = Handover(
        left=("*",), whole=True, seconds=(0.8, 0.8, 3.0, 3.0), tvm_s=(1.0, 1.0, 1.0, 1.0), rival_s=(0.8,)
    )
    assert taken([disturbed], TOLERANCE) is disturbed


def test_a_proposal_that_is_faster_by_less_than_chance_is_not_taken() -> None:
    assert taken([proposal(0.995)], TOLERANCE) is None


def test_a_model_is_never_left_more_than_a_hundredth_slower_than_the_best_runtime() -> None:
    assert taken([proposal(0.99)], TOLERANCE) is not None


def test_a_proposal_with_other_outputs_is_not_taken_and_it_is_said() -> None:
    wrong = proposal(0.5, difference=0.2)
    assert taken([wrong], TOLERANCE) is None
    (note,) = inexact([wrong, proposal(1.5)], TOLERANCE)
    assert "differ by 2.0e-01" in note


def test_a_slow_proposal_with_other_outputs_is_not_worth_a_word() -> None:
    assert inexact([proposal(1.5, difference=0.2)], TOLERANCE) == []
