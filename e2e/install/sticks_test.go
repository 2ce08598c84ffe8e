package install

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"akri.sh/akri/charts/helm"
	"akri.sh/akri/e2e/akri"
	"akri.sh/akri/e2e/peers"
	"akri.sh/akri/kubebox/build"
	"akri.sh/akri/kubebox/cluster"
	"akri.sh/akri/kubebox/clustertest"
	"akri.sh/akri/kubebox/image"
)

const (
	// maxCommands bounds the commands from nothing to the stick in a Pod.
	maxCommands = 12
	// stickImage is the image of the Deployment on the page. Here, it contains a shell.
	stickImage = "ghcr.io/koenkk/zigbee2mqtt:2.6.1"
	// sysfsDir is the handler's sysfs on each node: kernels without USB have no sticks.
	sysfsDir = "/run/sticks"
)

// sticks are the values for a handler that sees the sticks of the test.
const sticks = `
image: {tag: dev}
handlers:
  udev:
    udevDir: ` + sysfsDir + `/udev
    args: [--sysfs-dir=` + sysfsDir + `/sys]
    extraVolumes: [{name: sysfs, hostPath: {path: ` + sysfsDir + `, type: DirectoryOrCreate}}]
    extraVolumeMounts: [{name: sysfs, mountPath: ` + sysfsDir + `, readOnly: true}]
`

// plug makes a stick in the sysfs of a node, as the driver cp210x does, and an entry in udev's
// database: $1 is its port, $2 its name, $3 the directory of its file in /dev, $4 its minor.
const plug = `
usb=/devices/pci0000:00/0000:00:14.0/usb1/1-$1
tty=$usb/1-$1:1.0/$2/tty/$2
mkdir -p sys$tty
touch sys$usb/uevent
echo 10c4 >sys$usb/idVendor
echo ea60 >sys$usb/idProduct
ln -s $PWD/sys/bus/usb sys$usb/subsystem
ln -s $PWD/sys$usb sys/bus/usb/devices/
printf 'MAJOR=188\nMINOR=%s\nDEVNAME=%s/%s\n' $4 $3 $2 >sys$tty/uevent
ln -s $PWD/sys/class/tty sys$tty/subsystem
echo E:ID_SERIAL=Sonoff_Zigbee_3.0_USB_Dongle_Plus_0001 >udev/data/c188:$4
ln -s $PWD/sys$tty sys/class/tty/
`

// guide is a cluster in which the commands of docs/usb-sticks.md run as they are printed.
type guide struct {
	*cluster.Cluster
	t        *testing.T
	shell    akri.Shell
	commands map[string][]string // by heading
	dev      string              // the directory of the sticks' files, below /dev
}

// TestUSBSticks does what the page says, from nothing to a Pod with /dev/zigbee, and then moves
// the stick.
func TestUSBSticks(t *testing.T) {
	clustertest.Full(t)
	g := newGuide(t)
	g.plug("node1", 1, "ttyUSB0", 0)
	g.count("Install Akri", "Find the stick", "Use it")
	// The first command publishes the images, which are in the nodes already.
	g.run(g.commands["Install Akri"][1:]...)
	g.run(g.commands["Find the stick"]...)
	g.assertStick(g.run(g.commands["Use it"]...), "node1", 0)

	move := func(what, node string, minor int) {
		instance := fmt.Sprintf("/dev/%s/%s/ttyUSB%d", g.dev, node, minor)
		clustertest.Eventually(t, timeout, what, func() string {
			files, err := g.Kubectl(t.Context(), "get", "akrii", "--output=jsonpath={.items[*].spec.brokerProperties.UDEV_DEVNODE}")
			if err != nil || string(files) != instance {
				return fmt.Sprintf("Instances have %s, want %s: %v", files, instance, err)
			}
			return ""
		})
		g.run(g.commands["When the stick moves"]...)
		use := g.commands["Use it"]
		_, look, _ := strings.Cut(use[len(use)-1], "\n") // without the patch
		g.assertStick(g.run(look), node, minor)
	}
	g.unplug("node1")
	g.plug("node1", 2, "ttyUSB1", 1)
	move("it is in another port, and has another name", "node1", 1)
	g.unplug("node1")
	g.plug("node2", 1, "ttyUSB0", 0)
	move("it is in another node", "node2", 0)
}

// newGuide starts a cluster whose nodes have Akri's images, and a directory with the files that
// the page has, and the chart.
func newGuide(t *testing.T) *guide {
	t.Helper()
	programs, err := akri.Build(t.Context(), os.Stderr)
	if err == nil {
		err = akri.BuildHelm(t.Context(), programs.Root)
	}
	if err != nil {
		t.Fatal(err)
	}
	kubernetes, err := build.DefaultDir()
	if err != nil {
		t.Fatal(err)
	}
	g := &guide{Cluster: clustertest.Start(t, cluster.Config{Nodes: 2}), t: t, dev: fmt.Sprintf("akri-e2e-%d", os.Getpid())}
	dir := t.TempDir()
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join("/dev", g.dev)) }) // nothing waits for it
	for _, node := range []string{"node1", "node2"} {
		g.exec(node, "mkdir -p sys/class/tty sys/bus/usb/devices udev/data")
	}
	g.must(g.Load(t.Context(), append(programs.Images, writeStickImage(t, dir))...))
	_, err = helm.Package("v0.0.0-test", "", "", filepath.Join(dir, "bin"))
	g.must(err)
	// What a user does not have: the tag of the images, and a handler that sees the sticks.
	g.write(dir, "sticks.values", sticks)
	wrapper := fmt.Sprintf("#!/bin/sh\nexec %s \"$@\" --values=%s\n", filepath.Join(programs.Dir, "helm"), filepath.Join(dir, "sticks.values"))
	g.must(os.Mkdir(filepath.Join(dir, "path"), 0o755))
	g.write(filepath.Join(dir, "path"), "helm", wrapper)
	path := []string{filepath.Join(dir, "path"), programs.Dir, kubernetes, os.Getenv("PATH")}
	g.shell = akri.Shell{Dir: dir, Path: strings.Join(path, string(filepath.ListSeparator)), Kubeconfig: g.Kubeconfig()}

	g.commands, err = akri.Blocks(programs.Root, "usb-sticks.md", "sh")
	g.must(err)
	files, err := akri.Blocks(programs.Root, "usb-sticks.md", "yaml")
	g.must(err)
	name := regexp.MustCompile(`^# (\S+\.yaml)\n`)
	for _, blocks := range files {
		for _, block := range blocks {
			if match := name.FindStringSubmatch(block); match != nil {
				g.write(dir, match[1], block)
			}
		}
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(akri.Evidence(context.WithoutCancel(t.Context()), g, "default"))
		}
	})
	return g
}

// writeStickImage writes the image of the page's Deployment: Debian's busybox, which waits
// until it is stopped.
func writeStickImage(t *testing.T, dir string) (archive string) {
	t.Helper()
	busybox := filepath.Join(peers.Debian(t, "busybox-static"), "bin", "busybox")
	archive = filepath.Join(dir, "stick.tar")
	err := image.Write(archive, image.Image{
		Name: stickImage, Files: map[string]string{"/bin/sh": busybox, "/bin/ls": busybox, "/bin/sleep": busybox},
		Entrypoint: []string{"/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1; done"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func (g *guide) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *guide) write(dir, name, content string) {
	g.t.Helper()
	g.must(os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700))
}

// run runs commands of the page.
func (g *guide) run(blocks ...string) string {
	g.t.Helper()
	return g.shell.Run(g.t, strings.Join(blocks, ""))
}

// count checks that sections have commands, and not more than a reader has patience for.
func (g *guide) count(headings ...string) {
	g.t.Helper()
	commands := 0
	for _, heading := range headings {
		if len(g.commands[heading]) == 0 {
			g.t.Fatalf("the page has no commands below %q", heading)
		}
		for _, block := range g.commands[heading] {
			commands += strings.Count(block, "\n")
		}
	}
	if g.t.Logf("%d commands", commands); commands > maxCommands {
		g.t.Errorf("the page needs %d commands, want at most %d", commands, maxCommands)
	}
}

// plug plugs the stick into a port of a node.
func (g *guide) plug(node string, port int, name string, minor int) {
	g.t.Helper()
	dir := filepath.Join("/dev", g.dev, node)
	g.must(os.MkdirAll(dir, 0o755))
	g.must(unix.Mknod(filepath.Join(dir, name), unix.S_IFCHR|0o600, int(unix.Mkdev(188, uint32(minor)))))
	g.exec(node, fmt.Sprintf("set -- %d %s %s %d; %s", port, name, g.dev+"/"+node, minor, plug))
}

// exec runs a script in the handler's sysfs on a node.
func (g *guide) exec(node, script string) {
	g.t.Helper()
	script = fmt.Sprintf("set -eu; mkdir -p %s; cd %[1]s; %s", sysfsDir, script)
	g.must(g.Exec(g.t.Context(), cluster.Command{Node: node, Args: []string{"sh", "-c", script}}))
}

// unplug removes all sticks of a node.
func (g *guide) unplug(node string) {
	g.t.Helper()
	g.must(os.RemoveAll(filepath.Join("/dev", g.dev, node)))
	g.exec(node, "rm -r sys/devices sys/class/tty/* sys/bus/usb/devices/* udev/data/*")
}

// assertStick checks that a Pod on a node has the stick: ls prints its numbers.
func (g *guide) assertStick(output, node string, minor int) {
	g.t.Helper()
	if want := regexp.MustCompile(fmt.Sprintf(`(?m)^crw.* 188, +%d .*/dev/zigbee$`, minor)); !want.MatchString(output) {
		g.t.Errorf("the output is\n%s\nwant a match of %s", output, want)
	}
	out, err := g.Kubectl(g.t.Context(), "get", "pods", "--selector=app=zigbee2mqtt", "--output=jsonpath={.items[*].spec.nodeName}")
	if err != nil || string(out) != node {
		g.t.Errorf("the Pod is on %q (%v), want %s", out, err, node)
	}
}
