package offline_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"akri.sh/akri/cmd/kubectl-akri/cli"
	"akri.sh/akri/cmd/kubectl-akri/offline"
)

// variable matches what init replaces.
var variable = regexp.MustCompile(`\$(NAME|USB|HOST|HANDLER)\b`)

// option matches a line of YAML in a comment, which readers may use.
var option = regexp.MustCompile(`(?m)^( +)# ((?:- |  )?\{?[A-Za-z]+:(?: .*[^.])?)$`)

// TestInit lints and renders what init prints, as it is and with all that its comments offer.
func TestInit(t *testing.T) {
	for command, want := range map[string]string{
		"stick":                      `- SUBSYSTEM=="tty", SUBSYSTEMS=="usb"`,
		"stick --usb 10C4:ea60":      `- SUBSYSTEM=="tty", ATTRS{idVendor}=="10c4", ATTRS{idProduct}=="ea60"`,
		"stick --name zigbee":        `akri.sh/zigbee: "1"`,
		"serial --usb 0403:6010":     `ATTRS{idProduct}=="6010"`,
		"usb-camera":                 `SUBSYSTEM=="video4linux"`,
		"ip-camera --name gate":      "name: gate\n",
		"opcua --host plc":           "- opc.tcp://plc:4840/\n",
		"mqtt --host mosquitto.home": "url: tcp://mosquitto.home:1883\n",
	} {
		var text, out, note bytes.Buffer
		if err := run(cli.Streams{Out: &text, Err: &note}, strings.Fields("init "+command)); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(text.String(), want) || variable.MatchString(text.String()) {
			t.Errorf("%s: %q is not in\n%s", command, want, &text)
		}
		lint(t, command, text.Bytes())
		lint(t, command, option.ReplaceAll(text.Bytes(), []byte("$1$2")))
		if err := run(cli.Streams{In: &text, Out: &out, Err: &note}, strings.Fields("render -f -")); err != nil {
			t.Errorf("%s: render: %v\n%s", command, err, &note)
		}
		if !strings.HasPrefix(command, "stick") && strings.Count(out.String(), "kind: Deployment") != 2 {
			t.Errorf("%s: not a Deployment for each of two devices:\n%s", command, &out)
		}
	}
	found := offline.Initial("found", "$NAME", "devices", "$HANDLER", "name: debugEcho\n    discoveryDetails: 'descriptions: [a]'")
	lint(t, "found", []byte(found))
	lint(t, "found", option.ReplaceAll([]byte(found), []byte("$1$2")))
	for command, want := range map[string]string{
		"init":                           "accepts 1 arg(s)",
		"init camera":                    `invalid argument "camera"`,
		"init ip-camera --usb 10c4:ea60": "--usb is for stick, serial and usb-camera",
		"init serial --host broker":      "--host for opcua and mqtt",
		"init stick --usb /dev/ttyUSB0":  "use VENDOR:PRODUCT",
		"init stick --usb 10c4:\"a60":    "use VENDOR:PRODUCT",
		"init stick --name Stick":        `--name "Stick": use lower-case letters`,
		"init opcua --host plc:4840":     "without a port",
	} {
		if err := run(cli.Streams{}, strings.Fields(command)); err == nil || !strings.Contains(err.Error(), want) || cli.ExitCode(err) != 2 {
			t.Errorf("%s: %v", command, err)
		}
	}
}
