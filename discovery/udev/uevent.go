package udev

import "strings"

// devPathsOf returns the devices that a kernel's message is about: one, or two if a
// device got another name. The message is "ACTION@DEVPATH" and KEY=VALUE, each ended by
// a zero byte.
func devPathsOf(message []byte) []string {
	header, rest, ok := strings.Cut(string(message), "\x00")
	_, devPath, separated := strings.Cut(header, "@")
	if !ok || !separated || !isDevPath(devPath) {
		return nil // of a module, a driver or a bus, or not the kernel's format
	}
	devPaths := []string{devPath}
	for entry := range strings.SplitSeq(rest, "\x00") {
		if former, ok := strings.CutPrefix(entry, "DEVPATH_OLD="); ok && isDevPath(former) {
			devPaths = append(devPaths, former)
		}
	}
	return devPaths
}
