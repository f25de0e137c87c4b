"""The bank tells a tenant what it may learn from, and nothing else."""

from support.contracts.store import CONV, HERE, measured
from tuneloom.store import TenantLimits

from .conftest import Served


def tune_something(served: Served, who: str) -> None:
    """A job of somebody with one record."""
    headers = served.headers(who)
    asked = {"model": "mock:tasks=1,size=16", "trials": 8}
    job = served.client.post("/api/v1/jobs", headers=headers, json=asked).json()["id"]
    served.store.add_tasks(f"{job}.1", [CONV], family=HERE.family, target=HERE.target)
    served.store.add_trial(f"{job}.1", CONV.key, measured("best", 0.002), HERE)


def test_statistics_and_search_are_those_of_the_tenant(served: Served) -> None:
    tune_something(served, "weavers")
    for who, count in (("weavers", 1), ("spinners", 0), ("root", 1)):
        rows = served.client.get("/api/v1/bank", headers=served.headers(who)).json()["rows"]
        page = served.client.get("/api/v1/bank/kernels", headers=served.headers(who)).json()
        assert (len(rows), len(page["kernels"])) == (count, count)
    served.store.change_tenant("weavers", TenantLimits(shares_records=True))
    (kernel,) = served.client.get("/api/v1/bank/kernels", headers=served.headers("spinners")).json()[
        "kernels"
    ]
    assert (kernel["key"], kernel["best_ms"], kernel["device_key"]) == (CONV.key, 2.0, HERE.device_key)


def test_kernels_are_searched_by_name_and_class_and_come_in_pages(served: Served) -> None:
    tune_something(served, "weavers")

    def found(query: str) -> list[str]:
        page = served.client.get(f"/api/v1/bank/kernels?{query}", headers=served.headers()).json()
        return [kernel["key"] for kernel in page["kernels"]]

    assert found(f"text={CONV.name[:4]}") == found(f"kernel_class={CONV.kernel_class}") == [CONV.key]
    assert found("text=%25") == found("kernel_class=nonesuch") == found(f"after={CONV.key}") == []
    first = served.client.get("/api/v1/bank/kernels?limit=1", headers=served.headers()).json()
    assert first["next"] == CONV.key
