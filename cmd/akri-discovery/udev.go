package main

import (
	"github.com/spf13/pflag"

	"akri.sh/akri/discovery/embeddable"
	"akri.sh/akri/discovery/udev"
)

const udevManual = `udev runs the handler udev, which finds the devices of its own node by rules in udev's
syntax. Containers that use a device get its device file.

    discoveryHandler:
      name: udev
      discoveryDetails: |
        udevRules:
        - SUBSYSTEM=="tty", ATTRS{idVendor}=="10c4", ATTRS{idProduct}=="ea60"
        groupRecursive: false
        permissions: rwm
        properties:
          SERIAL: ENV{ID_SERIAL_SHORT}
        id: DEVPATH
        symlinks: false
        containerPath: /dev/zigbee

udevRules       A device is found if it matches one of the rules, that is, all conditions
                of the rule. Fields are DEVPATH, KERNEL, SUBSYSTEM, DRIVER, TAG,
                ATTR{name} and ENV{name}, and, for the device or any of its ancestors,
                KERNELS, SUBSYSTEMS, DRIVERS, TAGS and ATTRS{name}. Operators are == and
                !=. Values are shell globs, with alternatives separated by "|".
groupRecursive  Makes one device of a device and all below it.
permissions     What containers may do with the device file: r, w, m, rw, rm, rwm or wm.
properties      Additional properties: ENV{name}, ATTR{name}, ATTRS{name}, KERNEL,
                SUBSYSTEM, DRIVER or DEVPATH. Those that a device lacks are left out.
id              What the device's identity consists of. DEVPATH is the port that it is
                plugged in; with ENV{ID_SERIAL}, for example, it may use another one.
symlinks        Also gives containers the device file at udev's links, such as
                /dev/serial/by-id/...
containerPath   Also gives containers the device file at this path; with groupRecursive, the
                files have _0, _1 and so on at its end.

Properties are UDEV_DEVPATH, the path in sysfs; UDEV_DEVNODE, the device file, or, with
groupRecursive, UDEV_DEVNODE_0, UDEV_DEVNODE_1 and so on; and those in properties.

The handler needs no privileges. It reads sysfs, the database of udev if /run/udev is
mounted, and the kernel's events, which do not reach other user namespaces.

The environment variables in parentheses are the defaults of the flags.`

func udevCommand(func(string) string) command {
	var options udev.Options
	return command{
		use: "udev", short: "Find the devices of the node: USB adapters, cameras, disks", manual: udevManual,
		flags: func(flags *pflag.FlagSet) {
			flags.StringVar(&options.Sys, "sysfs-dir", udev.DefaultSys, "directory where sysfs is mounted")
			flags.StringVar(&options.Run, "udev-dir", udev.DefaultRun, "directory of udevd, with its database")
		},
		handler: func() (embeddable.Handler, error) { return embeddable.UDEV(options), nil },
	}
}
