"""Short names for runs that people can read out and type."""

import secrets

ADJECTIVES = (
    "amber ashen brisk calm clear coral crisp dusky eager early fair fleet fresh gentle glad golden green "
    "hazel ivory jolly keen late level light lilac lively lucid mellow merry misty mossy neat noble olive "
    "opal pale plain proud quick quiet rapid rosy rustic sandy sharp silent silver sleek smooth snowy soft "
    "solar spry steady still sunny swift tidy tranquil vivid warm wide wild wise"
)
NOUNS = (
    "alder badger beaver birch bison bobbin brook cedar crane creek curlew dale dune egret elm falcon fern "
    "finch fjord flax fox glade grouse harbor hare hazel heron hill ibis iris jay juniper kestrel lake lark "
    "linden loom lotus lynx maple marten meadow merlin moor newt oak osprey otter owl pine plover quail "
    "raven reed robin shuttle spindle swan teal thistle thrush tern vale weaver willow wren yarrow"
)


def fresh_name() -> str:
    """A random name such as `amber-heron-42`; the caller makes sure that it is not taken."""
    adjective, noun = secrets.choice(ADJECTIVES.split()), secrets.choice(NOUNS.split())
    return f"{adjective}-{noun}-{secrets.randbelow(90) + 10}"


def owner_of(run: str) -> str:
    """The owner of the files that a run needs."""
    return f"run:{run}"
