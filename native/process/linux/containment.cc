#include <sys/prctl.h>
#include <unistd.h>

#include "../process.h"
#include "landlock.h"
#include "pidfd.h"

namespace bridle {

ContainmentSupport probe_containment() {
  ContainmentSupport support;
  if (const UniqueFd self = open_pidfd(getpid())) {
    support.pidfd = true;
    support.pidfs = on_pidfs(self.get());
  }
  int subreaper = 0;
  support.subreaper = prctl(PR_GET_CHILD_SUBREAPER, &subreaper) == 0;
  support.landlock = landlock_version();
  return support;
}

}  // namespace bridle
