// Package udev is the discovery handler for the devices of a node: USB adapters, cameras,
// disks and everything else that the Linux kernel knows. It reads sysfs and the database
// of udev, and does without libudev and cgo.
//
// The reading order is handler.go (the loop), finder.go (which devices match), device.go
// and tree.go (sysfs), reader.go (drivers that are slow), database.go (udev's data),
// group.go (what agents get to know) and netlink.go (the kernel's events). Rules are in
// package details.
//
// Always: a lost event delays a change until the next full scan, at most. Files are read
// up to a bound, and those of sysfs with a deadline. A device that cannot be read stays as
// it was until its directory is gone. Never: a write below /sys, /run or /dev.
package udev
