// Package udevoracle compares the handler udev with systemd-udevd, and tries it with
// devices of the kernel, in namespaces of their own.
//
// The tests themselves are those of package discovery/udev that need such namespaces.
//
// Never: a change to the machine's /dev, /run or network.
package udevoracle
