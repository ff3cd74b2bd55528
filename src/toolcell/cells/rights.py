"""What a tool may read in its workspace: a controller that is root must read no more for it.

A tool acts there as the workspace's owner, of no other group than the workspace's (see `plan`).
So where the controller is root, what it opens for a tool is measured by its modes, directories
as well as files. Any other controller has no more rights than its tools, and the kernel decides.
An access control list (acl(5)) that speaks of somebody else than the owner is not read: where
there is one, only the owner may.
"""

import os
import stat
from dataclasses import dataclass

READ = stat.S_IROTH
ENTER = stat.S_IROTH | stat.S_IXOTH
_ACL = "system.posix_acl_access"


@dataclass(frozen=True, slots=True)
class Rights:
    """The rights of a tool's user; `root` says that the kernel would not have them observed."""

    uid: int
    gid: int
    root: bool

    @classmethod
    def within(cls, workspace: int) -> "Rights":
        """Return the rights of the tools that an open workspace is lent to."""
        if os.geteuid() != 0:
            return cls(os.geteuid(), os.getegid(), root=False)
        facts = os.fstat(workspace)
        return cls(facts.st_uid, facts.st_gid, root=True)

    def permit(self, facts: os.stat_result, wanted: int) -> bool:
        """Whether the mode of a file or directory lets the tool do what is wanted."""
        if not self.root:
            return True
        if facts.st_uid == self.uid:
            return facts.st_mode >> 6 & wanted == wanted
        if facts.st_gid == self.gid:
            return facts.st_mode >> 3 & wanted == wanted
        return facts.st_mode & wanted == wanted

    def permit_open(self, fd: int, wanted: int) -> bool:
        """Whether the tool could have opened what is open."""
        if not self.root:
            return True
        facts = os.fstat(fd)
        return self.permit(facts, wanted) and (facts.st_uid == self.uid or not _has_list(fd))


def _has_list(fd: int) -> bool:
    try:
        return _ACL in os.listxattr(fd)
    except OSError:  # a file system without them
        return False
