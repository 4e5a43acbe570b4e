"""The public name of `stoker.doctor.software_gpu`, so that `import stoker.software_gpu` works."""

import sys

from stoker.doctor import software_gpu

sys.modules[__name__] = software_gpu
