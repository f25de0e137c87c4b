"""Why a bundle does not run here, or not on these inputs."""


class Refused(Exception):  # noqa: N818 - the name is the message
    """The bundle can't run here, or not on these inputs; the text says why."""
