"""What every kind of device must do; its author inherits from DeviceKindContract and gives devices.

```python
class TestAbacus(DeviceKindContract):
    def kind(self) -> DeviceKind:
        return KIND

    def device(self) -> DeviceEntry:
        return DeviceEntry(key="abacus", kind="abacus", options={"beads": 9})

    def absent(self) -> DeviceEntry:
        return DeviceEntry(key="abacus", kind="abacus", options={"beads": -1})
```
"""

import pickle

import pytest

from tuneloom.app.devices.base import DeviceEntry, DeviceKind, DeviceState, MachineCores
from tuneloom.app.devices.describing import MachineOrder, describe, device_kind
from tuneloom.model import LOCAL, Device

_HERE = MachineCores(name=LOCAL, host_cores=frozenset({0}), device_cores=frozenset({1}))
_THERE = MachineCores(name="there", host_cores=frozenset({0}), device_cores=frozenset({1}))


class DeviceKindContract:
    """Give `kind`, the entry of a device that can be used here, and of one that can't."""

    def kind(self) -> DeviceKind:
        raise NotImplementedError

    def device(self) -> DeviceEntry:
        """A device that can be used; override it with a skip where there is none."""
        raise NotImplementedError

    def absent(self) -> DeviceEntry:
        """A device that can't be used, which nothing but a look tells."""
        raise NotImplementedError

    def test_it_is_registered_under_the_name_that_its_entries_have(self) -> None:
        assert device_kind(self.absent().kind) is self.kind()

    def test_what_it_needs_is_among_what_may_be_said(self) -> None:
        kind = self.kind()
        assert {*kind.needed} <= {*kind.fields, "node", "target"}
        assert {*self.absent().options} <= {*kind.fields}

    def test_it_names_what_to_compile_for_in_one_word(self) -> None:
        assert self.kind().target.split() == [self.kind().target]

    def test_its_devices_have_the_key_of_their_entry_and_the_name_of_their_machine(self) -> None:
        entry = self.absent()
        here, there = (self.kind().offer(entry, machine) for machine in (_HERE, _THERE))
        for offer in (here, there):
            assert isinstance(offer.resource, Device) and offer.resource.key == entry.key
        assert there.resource.machine == "there"
        assert there.resource.name == f"there/{here.resource.name}"

    def test_an_offer_travels_to_another_process_unchanged(self) -> None:
        offer = self.kind().offer(self.absent(), _THERE)
        assert pickle.loads(pickle.dumps(offer)) == offer
        assert all(isinstance(text, str) for pair in offer.environment.items() for text in pair)

    def test_a_device_that_cannot_be_used_says_why_in_one_line(self) -> None:
        state = self.kind().look(self.absent())
        assert not state.usable and len(state.trouble.splitlines()) == 1

    def test_a_device_that_can_be_used_is_offered_with_locks_that_are_the_same_for_everybody(self) -> None:
        entry = self.device()
        assert self.kind().look(entry).usable
        (first,), (second,) = (
            [seen.offer for seen in describe(MachineOrder(devices=(entry,))).devices] for _ in range(2)
        )
        assert first.locks and first.locks == second.locks

    def test_facts_are_texts_for_people(self) -> None:
        state: DeviceState = self.kind().look(self.device())
        assert all(isinstance(text, str) for pair in state.facts.items() for text in pair)

    def test_devices_that_it_finds_are_its_own_and_different(self) -> None:
        kind, found = self.kind(), self.kind().found(1)
        if not found:
            pytest.skip("no such device is found without being listed")
        assert all(device_kind(entry.kind) is kind for entry in found)
        assert len({kind.called(entry) for entry in found}) == len(found)
