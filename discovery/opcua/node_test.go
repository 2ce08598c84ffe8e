package opcua

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"akri.sh/akri/discovery"
	"akri.sh/akri/internal/fulltest"
)

const (
	requiredVariable = "AKRI_TEST_REQUIRED"
	// namespaceVariable is set, to the directory of the npm packages, in the process that
	// has a network namespace of its own.
	namespaceVariable = "AKRI_OPCUA_NAMESPACE"
)

// nodePackages are another implementation of OPC UA, in JavaScript. The first brings the
// others, in the same version.
var nodePackages = []string{"node-opcua-server@2.186.4", "node-opcua-server-discovery@2.186.4"}

// TestNodeOPCUA runs the tests of inNamespace in a network namespace: the discovery server
// announces itself by mDNS.
func TestNodeOPCUA(t *testing.T) {
	fulltest.Only(t)
	if os.Geteuid() != 0 {
		unavailable(t, "network namespaces need root")
	}
	dir := npm(t, nodePackages...)
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestInNamespace$", "-test.v")
	command.Env = append(os.Environ(), namespaceVariable+"="+dir)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	output, err := command.CombinedOutput()
	t.Logf("%s", output)
	if err != nil {
		t.Fatal(err)
	}
}

// unavailable skips a test that cannot run here, and fails it where all tests must run.
func unavailable(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv(requiredVariable) == "1" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// npm returns a directory with npm packages, which are fetched once and kept there. Scripts
// of packages do not run.
func npm(t *testing.T, packages ...string) string {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			unavailable(t, "the peer node-opcua needs "+program+": "+err.Error())
		}
	}
	root, err := filepath.Abs("../../bin/peers")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, "npm-"+strings.NewReplacer("@", "-", "/", "-").Replace(strings.Join(packages, "-")))
	if err := npmOnce(t.Context(), dir, packages); err != nil {
		unavailable(t, fmt.Sprintf("cannot fetch the npm packages %s: %v", strings.Join(packages, ", "), err))
	}
	return dir
}

// npmOnce fetches into dir, unless that has been done. A lock makes other processes wait,
// and dir exists only when it is complete.
func npmOnce(ctx context.Context, dir string, packages []string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer lock.Close() // also unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "partial-")
	if err != nil {
		return err
	}
	arguments := []string{
		"install", "--prefix", partial, "--ignore-scripts", "--omit=dev", "--omit=optional", "--no-audit", "--no-fund",
		"--no-update-notifier",
	}
	command := exec.CommandContext(ctx, "npm", append(arguments, packages...)...)
	command.Dir = partial
	if output, err := command.CombinedOutput(); err != nil {
		return errors.Join(fmt.Errorf("npm install: %w: %s", err, output), os.RemoveAll(partial))
	}
	return os.Rename(partial, dir)
}

func TestInNamespace(t *testing.T) {
	dir := os.Getenv(namespaceVariable)
	if dir == "" {
		t.Skip("TestNodeOPCUA runs it")
	}
	for _, arguments := range []string{"link set lo up", "link set lo multicast on", "route add 224.0.0.0/4 dev lo"} {
		if output, err := exec.CommandContext(t.Context(), "ip", strings.Fields(arguments)...).CombinedOutput(); err != nil {
			t.Fatalf("ip %s: %v: %s", arguments, err, output)
		}
	}
	startNode(t, dir)
	t.Run("a discovery server", testNodeDiscoveryServer)
	t.Run("its network", testNodeNetwork)
	t.Run("each server", testNodeServers)
}

// startNode runs testdata/servers.cjs until the test ends, and waits until it is ready.
func startNode(t *testing.T, dir string) {
	t.Helper()
	command := exec.CommandContext(context.WithoutCancel(t.Context()), "node", "testdata/servers.cjs", t.TempDir())
	command.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"))
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	command.WaitDelay = time.Second
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = command.Stdout
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ready, ended := make(chan string, 1), make(chan struct{})
	var log []string // complete when ended is closed
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(output); lines.Scan(); {
			log = append(log, lines.Text())
			if urls, ok := strings.CutPrefix(lines.Text(), "ready "); ok {
				ready <- urls
			}
		}
	}()
	t.Cleanup(func() {
		input.Close() // ends it
		<-ended
		if err := command.Wait(); err != nil && !t.Failed() {
			t.Errorf("node: %v: %s", err, strings.Join(log, "\n"))
		}
	})
	select {
	case urls := <-ready:
		var got []string
		if err := json.Unmarshal([]byte(urls), &got); err != nil || !slices.Equal(got, []string{nodeOven, nodePress, nodeSafe}) {
			t.Fatalf("the servers' URLs are %s: %v", urls, err)
		}
	case <-ended:
		t.Fatalf("node ended: %s", strings.Join(log, "\n"))
	case <-time.After(5 * time.Minute): // it makes keys, for a minute if the machine is busy
		t.Fatal("the servers of node-opcua are not ready")
	}
}

// The servers of testdata/servers.cjs.
const (
	nodeLDS   = "opc.tcp://127.0.0.1:4840"
	nodeOven  = "opc.tcp://127.0.0.1:4841/UA/Oven"
	nodePress = "opc.tcp://127.0.0.1:4842/UA/Press"
	nodeSafe  = "opc.tcp://127.0.0.1:4843/UA/Safe"
)

// nodeEndpoints are the security policies and modes of the servers.
var nodeEndpoints = map[string]string{
	nodeOven:  "None/None",
	nodePress: "Basic256Sha256/Sign,Basic256Sha256/SignAndEncrypt,None/None",
	nodeSafe: "Aes128_Sha256_RsaOaep/Sign,Aes128_Sha256_RsaOaep/SignAndEncrypt," +
		"Basic256Sha256/Sign,Basic256Sha256/SignAndEncrypt",
}

// checkNode checks the properties of devices.
func checkNode(t *testing.T, devices []discovery.Device) {
	t.Helper()
	for _, device := range devices {
		name := device.ID[strings.LastIndexByte(device.ID, '/')+1:]
		want := map[string]string{
			PropertyURL: device.ID, PropertyApplicationName: name, PropertyApplicationURI: "urn:plant:" + name,
			PropertyProductURI: "urn:product", PropertyEndpoints: nodeEndpoints[device.ID],
		}
		if fmt.Sprint(device.Properties) != fmt.Sprint(want) {
			t.Errorf("the properties are %v, want %v", device.Properties, want)
		}
	}
}

func testNodeDiscoveryServer(t *testing.T) {
	checkNode(t, discover(t, Options{}, oneURL, nodeLDS).expect(nodeOven, nodePress, nodeSafe))
	checkNode(t, discover(t, Options{}, "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['%s']}}, applicationTypes: [ClientAndServer]}",
		nodeLDS).expect(nodePress))
	found := discover(t, Options{}, "{opcuaDiscoveryMethod: {standard: {discoveryUrls: ['%s']}}, applicationTypes: [DiscoveryServer]}",
		nodeLDS).firstList()
	if len(found) != 1 || !strings.HasPrefix(found[0], nodeLDS) {
		t.Errorf("the discovery servers are %q, want %s", found, nodeLDS)
	}
}

// testNodeNetwork asks for what the discovery server has found by mDNS: records, whose
// names are not those of applications until the servers were asked.
func testNodeNetwork(t *testing.T) {
	checkNode(t, discover(t, Options{}, "{opcuaDiscoveryMethod: {network: {discoveryUrls: ['%s']}}, intervalSeconds: 1}",
		nodeLDS).expect(nodeOven, nodePress, nodeSafe))
}

// testNodeServers asks each server itself; one has no endpoint without security.
func testNodeServers(t *testing.T) {
	checkNode(t, discover(t, Options{}, "{opcuaDiscoveryMethod: {standard: {discoveryUrls: %s}}, intervalSeconds: 1}",
		quoted([]string{nodeOven, nodePress, nodeSafe})).expect(nodeOven, nodePress, nodeSafe))
}
