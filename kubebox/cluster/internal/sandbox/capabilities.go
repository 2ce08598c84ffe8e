package sandbox

import "golang.org/x/sys/unix"

// MayRaiseLimits reports whether this process has CAP_SYS_RESOURCE. Without it, a
// container runtime must not lower out-of-memory scores.
func MayRaiseLimits() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}
