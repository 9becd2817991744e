#pragma once

// The one place that chooses the libfuse interface: 3.12 is offered by every supported distribution.
#define FUSE_USE_VERSION 312
#include <fuse_lowlevel.h>
